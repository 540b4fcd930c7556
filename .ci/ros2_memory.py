"""The memory as another implementation of ROS 2 over Zenoh meets it: services, topics, transforms, events.

zenoh-ros2-sdk has its own tokens, keys, hashes, attachments and CDR (rosbags). It reads the interface
files of this repository and must not fetch any.
Usage: ros2_memory.py OMIRD
"""

import json
import math
import os
import pathlib
import struct
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from omird_process import free_port, running  # noqa: E402
from ros2_client import eventually, interfaces  # noqa: E402

CONFIG = """
robot = "rover"
[ros2]
keyframes = ["kf_*"]
[[ros2.topic]]
topic = "/chatter"
[[ros2.topic]]
topic = "/seen"
type = "geometry_msgs/msg/PoseStamped"
text = "a cup at {pose.position.x:.1} ahead of the camera"
[[ros2.topic]]
topic = "/battery"
type = "sensor_msgs/msg/BatteryState"
[[ros2.topic]]
topic = "/odd"
"""


def message(name):
    from zenoh_ros2_sdk import get_message_class

    return get_message_class(name)


def main(program):
    with tempfile.TemporaryDirectory() as folder:
        shelf = pathlib.Path(folder) / "interfaces"
        shelf.mkdir()
        interfaces(shelf)
        port = free_port()
        config = pathlib.Path(folder) / "omird.toml"
        config.write_text(CONFIG)
        listen = f"tcp/127.0.0.1:{port}"
        words = ["--config", config, "--data", f"{folder}/data", "--listen", listen, "--http", "127.0.0.1:0"]
        with running(program, *words, told=(line := [])):
            told = dict(word.split("=", 1) for word in line[0].split()[1:])
            at = {"router_ip": "127.0.0.1", "router_port": port, "domain_id": 0}
            meets(at, folder, f"http://{told['http']}/api/v0")


def meets(at, folder, experience):
    import zenoh_ros2_sdk as sdk
    from zenoh_ros2_sdk.discovery import get_service_names_and_types
    from zenoh_ros2_sdk.qos import QosDurability, QosProfile

    services = eventually("the node is found", lambda: dict(get_service_names_and_types(**at)) or None)
    for name in ("Remember", "Recall", "Forget", "Anchor", "Feedback", "Export", "Rebase"):
        assert services[f"/omird/{name.lower()}"] == [f"omir_msgs/srv/{name}"], services
    assert "/omird/import/_action/send_goal" in services, services

    os.environ["ZENOH_CONFIG_OVERRIDE"] = "listen/endpoints=[];scouting/gossip/enabled=false"

    def client(name):
        return sdk.ROS2ServiceClient(f"/omird/{name.lower()}", f"omir_msgs/srv/{name}", timeout=20.0, **at)

    clients = {name: client(name) for name in ("Remember", "Recall", "Forget", "Anchor", "Feedback", "Export", "Rebase")}
    heard = []
    events = sdk.ROS2Subscriber("/omird/events", "omir_msgs/msg/MemoryEvent", heard.append, **at)
    time.sleep(1.0)

    # A resource as JSON, and the answer.
    door = {"resourceType": "MemoryRecord", "id": "door", "content": "the door is open", "createdAt": "2026-05-30T11:42:05Z"}
    Remember = {"records": [], "entities": [], "relationships": [], "episodes": [], "merge": ""}
    stored = clients["Remember"].call(**Remember, json=json.dumps(door))
    assert stored.status.ok and stored.durable and stored.stored[0].ref == "MemoryRecord/door", stored
    event = eventually("the event comes", lambda: next((e for e in heard if e.ref == "MemoryRecord/door"), None))
    assert event.kind == "recorded" and event.resource.record[0].content == "the door is open", event

    refused = clients["Remember"].call(**Remember, json='{"resourceType":"MemoryRecord","id":"x"}')
    assert not refused.status.ok and refused.status.code == "INVALID_RESOURCE" and refused.status.path, refused

    recall = recaller(clients["Recall"])
    hits = recall(text="door")
    assert [hit.resource.record[0].id for hit in hits] == ["door"], hits

    anchored = clients["Anchor"].call(ref="MemoryRecord/door", anchored=True)
    assert anchored.status.ok and anchored.version == 2, anchored
    believed = clients["Feedback"].call(ref="MemoryRecord/door", outcome="confirmed", weight=0.0)
    assert believed.status.ok and believed.confidence.calibrated[0] > 0.5, believed
    bundle = clients["Export"].call(filter=empty_filter())
    assert json.loads(bundle.bundle)["resourceType"] == "Bundle" and bundle.count == 1, bundle

    token = pathlib.Path(folder, "data/keys/local.token").read_text().strip()
    topics(at, recall, sdk, QosDurability, QosProfile, (experience, token))
    rebases(clients["Rebase"], recall)
    refuses(at, sdk)
    parameters(at, sdk)
    imports(at, sdk, folder)

    gone = clients["Forget"].call(refs=["MemoryRecord/door", "MemoryRecord/never"])
    assert gone.status.ok and gone.forgotten == 1, gone
    eventually("that is told too", lambda: any(e.kind == "forgotten" for e in heard))
    for one in clients.values():
        one.close()
    events.close()


def empty_filter(**given):
    Filter = message("omir_msgs/msg/Filter")
    import dataclasses

    point = message("geometry_msgs/msg/Point")
    values = {}
    for field in dataclasses.fields(Filter):
        if field.name == "__msgtype__":
            continue
        values[field.name] = default(field.name, Filter)
    values.update(given)
    return Filter(**values)


def default(name, of):
    from zenoh_ros2_sdk.session import ZenohSession

    store = ZenohSession.get_instance().store
    kind = dict(store.fielddefs[of.__msgtype__][1])[name]
    return zero(store, kind)


def zero(store, kind):
    from rosbags.typesys.base import Nodetype
    import numpy

    what, args = kind
    if what == Nodetype.BASE:
        return {"string": "", "bool": False}.get(args[0], 0.0 if args[0].startswith("float") else 0)
    if what == Nodetype.NAME:
        return store.types[args](**{n: zero(store, k) for n, k in store.fielddefs[args][1]})
    if what == Nodetype.ARRAY:
        (inner, inner_args), length = args
        if inner == Nodetype.BASE and inner_args[0] != "string":
            return numpy.zeros(length, dtype=inner_args[0])
        return [zero(store, args[0]) for _ in range(length)]
    (inner, inner_args), _ = args
    if inner == Nodetype.BASE and inner_args[0] != "string":
        return numpy.zeros(0, dtype=inner_args[0] if inner_args[0] != "octet" else "uint8")
    return []


def recaller(client):
    def recall(near=None, frame="", radius=0.0, **given):
        if near:
            Point = message("geometry_msgs/msg/Point")
            given["near"] = [Point(*map(float, near))]
        filter_ = empty_filter(frame=frame, **given)
        if near:
            field = filter_.radius
            filter_.radius = __import__("numpy").array([float(radius)])
        answer = client.call(filter=filter_, limit=0, offset=0, untouched=True, explain=False)
        assert answer.status.ok, answer.status
        return answer.hits
    return recall


def pose_of(store, kind):
    return zero(store, (2, kind))


def topics(at, recall, sdk, QosDurability, QosProfile, experience):
    from rosbags.typesys.base import Nodetype
    from zenoh_ros2_sdk.session import ZenohSession

    latched = QosProfile(durability=QosDurability.TRANSIENT_LOCAL, history_depth=10)
    tf_static = sdk.ROS2Publisher("/tf_static", "tf2_msgs/msg/TFMessage", qos=latched, **at)
    tf = sdk.ROS2Publisher("/tf", "tf2_msgs/msg/TFMessage", **at)
    chatter = sdk.ROS2Publisher("/chatter", "std_msgs/msg/String", **at)
    seen = sdk.ROS2Publisher("/seen", "geometry_msgs/msg/PoseStamped", **at)
    time.sleep(1.5)
    store = ZenohSession.get_instance().store
    make = lambda kind: zero(store, (Nodetype.NAME, kind))

    def transform(parent, child, stamp, x, y, yaw):
        one = make("geometry_msgs/msg/TransformStamped")
        one.header.frame_id, one.child_frame_id = parent, child
        one.header.stamp.sec, one.header.stamp.nanosec = int(stamp), int(stamp % 1 * 1e9)
        one.transform.translation.x, one.transform.translation.y = x, y
        one.transform.rotation.z, one.transform.rotation.w = math.sin(yaw / 2), math.cos(yaw / 2)
        return one

    tf_static.publish(transforms=[transform("base_link", "camera", 0, 0.5, 0.0, math.pi / 2), transform("map", "kf_1", 0, 4.0, 0.0, 0.0)])
    begin = time.time()
    # A robot on a circle of 5 m around the origin, seen at 50 Hz; every 0.2 s its camera sees a cup.
    angle = lambda t: (t - begin) * 0.8
    where = lambda t: (5 * math.cos(angle(t)), 5 * math.sin(angle(t)), angle(t) + math.pi / 2)
    expected = {}
    next_cup = begin + 0.31
    while time.time() < begin + 4:
        now = time.time()
        tf.publish(transforms=[transform("map", "base_link", now, *where(now))])
        if now > next_cup:
            next_cup += 0.2
            stamp = now - 0.013
            cup = make("geometry_msgs/msg/PoseStamped")
            cup.header.frame_id = "camera"
            cup.header.stamp.sec, cup.header.stamp.nanosec = int(stamp), int(stamp % 1 * 1e9)
            stamp = cup.header.stamp.sec + cup.header.stamp.nanosec / 1e9
            cup.pose.position.x, cup.pose.position.y = 1.0 + len(expected), 0.25
            cup.pose.orientation.w = 1.0
            x, y, yaw = where(stamp)
            # camera: half a metre ahead of base_link, looking to the left.
            cx, cy = x + 0.5 * math.cos(yaw), y + 0.5 * math.sin(yaw)
            look = yaw + math.pi / 2
            px, py = cup.pose.position.x, cup.pose.position.y
            expected[f"a cup at {px:.1f} ahead"] = (
                cx + px * math.cos(look) - py * math.sin(look),
                cy + px * math.sin(look) + py * math.cos(look), look)
            seen.publish(header=cup.header, pose=cup.pose)
        time.sleep(0.02)
    for text in ("the lamp is on", "the lamp is off"):
        chatter.publish(data=text)
        time.sleep(1.2)
    hits = eventually("what was said is remembered", lambda: [h for h in recall(text="lamp")] if len(recall(text="lamp")) == 2 else None)
    assert {h.resource.record[0].content for h in hits} == {"the lamp is on", "the lamp is off"}, hits
    def cups():
        found = recall(text="cup")
        return found
    worst = (0.0, 0.0)
    eventually("cups are remembered", lambda: len(cups()) >= 10)
    hits = cups()
    checked = 0
    for hit in hits:
        record = hit.resource.record[0]
        for words, (x, y, look) in expected.items():
            if words in record.content:
                assert record.pose.header.frame_id == "map", record
                at_ = record.pose.pose.pose
                off = math.hypot(at_.position.x - x, at_.position.y - y)
                turn = 2 * math.atan2(at_.orientation.z, at_.orientation.w) - look
                turn = abs(math.degrees(math.atan2(math.sin(turn), math.cos(turn))))
                worst = (max(worst[0], off), max(worst[1], turn)); checked += 1
                assert all(f'"frame":"{frame}"' in record.json for frame in ("camera", "kf_1")), record.json
    print(f"{checked} of {len(expected)} cups, worst {worst[0]*1000:.3f} mm, {worst[1]:.4f} degrees")
    assert checked >= 10 and worst[0] < 1e-3 and worst[1] < 0.1
    last = time.time()
    # Near the robot: where it is by the latest transform.
    tf.publish(transforms=[transform("map", "base_link", time.time(), *where(last))])
    time.sleep(0.5)
    x, y, yaw = where(last)
    name, (cx, cy, _) = next(reversed(expected.items()))
    dx, dy = cx - x, cy - y
    own = (dx * math.cos(-yaw) - dy * math.sin(-yaw), dx * math.sin(-yaw) + dy * math.cos(-yaw), 0.0)
    near = recall(near=own, frame="base_link", radius=0.3)
    assert any(name in h.resource.record[0].content for h in near), (name, near)
    rides_along(*experience, (x, y))
    for publisher in (tf, tf_static, chatter, seen):
        publisher.close()


def rides_along(url, token, place):
    """A task is recorded where the robot stands, and hints are asked near there."""
    def ask(path, body):
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        try:
            request = urllib.request.Request(url + path, json.dumps(body).encode(), headers)
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            return refused.code, json.load(refused)

    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    record = {
        "request_id": "r", "task_id": "dock", "title": "Dock at station 2", "result": {"summary": "docked", "success": True},
        "nodes_used": [{"type": "tool", "ref": "nav2", "outcome": "success"}], "timestamps": {"started_at": now, "finished_at": now},
    }
    assert ask("/record", record)[0] == 200
    hints = {"request_id": "h", "query_type": "intent", "intent": "dock", "deadline_ms": 5000}
    near = "/hints?near={:.3f},{:.3f}&radius={}"
    for path, status in [
        (near.format(*place, 0.1), 200),
        (near.format(place[0] + 3, place[1], 1), 404),
        ("/hints?near=0,0&frame=base_link&radius=0.1", 200),
        ("/hints?near=3,0&frame=base_link&radius=1", 404),
    ]:
        found = ask(path, hints)
        assert found[0] == status, (path, found)
    print("the pose of the robot rides along with a task")


def rebases(client, recall):
    from zenoh_ros2_sdk.session import ZenohSession
    from rosbags.typesys.base import Nodetype

    store = ZenohSession.get_instance().store
    pose = zero(store, (Nodetype.NAME, "geometry_msgs/msg/Pose"))
    pose.position.x, pose.position.y, pose.orientation.w = 4.0, 100.0, 1.0
    before = {h.resource.record[0].id: h for h in recall(text="cup")}
    asked = dict(frame="map", reason="loop closure", undo="", dry_run=False)
    moved = client.call(keyframes=["kf_1"], poses=[pose], **asked)
    assert moved.status.ok and moved.moved >= 10, moved
    y = lambda h: h.resource.record[0].pose.pose.pose.position.y
    after = {h.resource.record[0].id: h for h in recall(text="cup")}
    assert all(abs(y(after[i]) - y(before[i]) - 100) < 1e-9 for i in after if i in before)
    back = client.call(keyframes=[], poses=[], frame="", reason="", undo=moved.ref, dry_run=False)
    assert back.status.ok and back.moved == moved.moved, back
    again = {h.resource.record[0].id: h for h in recall(text="cup")}
    assert all(y(again[i]) == y(before[i]) for i in again if i in before)


def refuses(at, sdk):
    """What is no message, and another type under the same name, are told under the topic with the reason."""
    battery = sdk.ROS2Publisher("/battery", "sensor_msgs/msg/BatteryState", **at)
    session = battery.session_mgr.session
    attachment = struct.pack("<qqB16s", 1, time.time_ns(), 16, b"g" * 16)

    def told(count):
        (reply,) = session.get("omir/rover/status", timeout=20.0)
        topic = json.loads(bytes(reply.ok.payload))["ros2"]["topics"].get("/battery", {})
        return topic.get(count) and topic["lastRefused"]["why"]

    session.put(battery.keyexpr, b"\x00\x01\x00\x00\x01", attachment=attachment)
    why = eventually("it is malformed", lambda: told("malformed"))
    assert "BatteryState" in why and "at byte" in why, why
    changed = sdk.ROS2Publisher(
        "/battery", "sensor_msgs/msg/BatteryState", type_hash="RIHS01_" + "1" * 64, **at
    )
    why = eventually("it has another hash", lambda: told("otherTypes"))
    assert "the definitions of that type differ" in why, why
    changed.close()
    battery.close()


def imports(at, sdk, folder):
    """The action, by its services and topics: the SDK knows none. In CDR a goal is its id and its fields."""
    import numpy
    from zenoh_ros2_sdk.discovery import get_service_info, get_topic_info

    RESULT = (
        "int8 status\nbool ok\nstring code\nstring message\nstring path\n"
        "uint64 stored\nuint64 unchanged\nuint64 dropped\nbool durable\nstring json"
    )
    part = lambda name: f"/omird/import/_action/{name}"

    def client(name, kind, request, response):
        offered = eventually(name, lambda: get_service_info(part(name), verbose=True, **at).servers)
        return sdk.ROS2ServiceClient(
            part(name), kind, request, response, type_hash=offered[0].type_hash, timeout=20.0, **at
        )

    send = client(
        "send_goal", "omir_msgs/action/Import_SendGoal",
        "uint8[16] goal_id\nstring path\nstring format\nstring merge\nstring json",
        "bool accepted\nint32 sec\nuint32 nanosec",
    )
    get = client("get_result", "omir_msgs/action/Import_GetResult", "uint8[16] goal_id", RESULT)
    publishers = get_topic_info(part("feedback"), verbose=True, **at).publishers
    told = []
    feedback = sdk.ROS2Subscriber(
        part("feedback"), "omir_msgs/action/Import_FeedbackMessage", told.append,
        "uint8[16] goal_id\nuint64 bytes_done\nuint64 bytes_total\nuint64 read\nuint64 stored",
        type_hash=publishers[0].type_hash, **at,
    )
    time.sleep(1.0)
    entities = [{"resourceType": "Entity", "id": f"door{n}", "name": f"door {n} of the house"} for n in range(1000)]
    file = pathlib.Path(folder) / "doors.omir"
    file.write_text(json.dumps({"resourceType": "Bundle", "omirVersion": "R1", "entry": entities}))
    size = file.stat().st_size
    goal = numpy.full(16, 7, dtype=numpy.uint8)
    assert send.call(goal_id=goal, path=str(file), format="", merge="", json="").accepted
    result = get.call(goal_id=goal)
    assert (result.status, result.ok, result.stored) == (4, True, 1000), result
    eventually("it is told what was stored", lambda: told and told[-1].stored == 1000)
    assert (told[0].bytes_done, told[0].bytes_total) == (0, size), told
    assert all(list(one.goal_id) == [7] * 16 for one in told) and told[-1].bytes_done == size, told
    print(f"{len(told)} feedbacks for {size} bytes")
    for end in (send, get, feedback):
        end.close()


def parameters(at, sdk):
    """Tools ask every node for its parameters, and some wait for all answers."""
    # Of these services the one whose fields the SDK can read: it looks for nested types in `srv/msg`.
    client = sdk.ROS2ServiceClient(
        "/omird/get_parameter_types", "rcl_interfaces/srv/GetParameterTypes", timeout=20.0, **at
    )
    answer = client.call(names=["use_sim_time", "robot_description"])
    assert list(answer.types) == [1, 0], answer
    client.close()


if __name__ == "__main__":
    import traceback
    try:
        main(sys.argv[1])
        print("ok")
    except BaseException:
        traceback.print_exc(); sys.stderr.flush(); os._exit(1)
    sys.stdout.flush(); os._exit(0)
