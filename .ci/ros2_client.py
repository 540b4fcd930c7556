"""Another implementation of ROS 2 over Zenoh meets a node of ours: it finds it and uses all it has.

zenoh-ros2-sdk has its own tokens, keys, hashes, attachments and CDR (rosbags). It reads the interface
files of this repository and must not fetch any.
Usage: ros2_client.py NODE        NODE is the built example ros2_echo of omir-ros2
"""

import contextlib
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from omird_process import free_port  # noqa: E402

ROS2 = pathlib.Path(__file__).resolve().parent.parent / "ros2"
DOMAIN = 3
WAIT = 20.0


def interfaces(folder):
    """A folder with all packages side by side, as the SDK wants them."""
    for package in [*(ROS2 / "interfaces").iterdir(), ROS2 / "omir_msgs"]:
        if package.is_dir():
            (pathlib.Path(folder) / package.name).symlink_to(package)
    from zenoh_ros2_sdk import _cache, message_registry

    def refused(name, *_args, **_kwargs):
        raise RuntimeError(f"{name} would have been fetched")

    _cache.clone_to_cache = message_registry.clone_to_cache = refused
    message_registry.get_registry(folder)


def eventually(what, holds):
    until = time.monotonic() + WAIT
    while time.monotonic() < until:
        found = holds()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within {WAIT} s: {what}")


class Graph:
    """What the SDK sees of the graph."""

    def __init__(self, at):
        self.at = at

    def services(self):
        from zenoh_ros2_sdk.discovery import get_service_names_and_types

        return dict(get_service_names_and_types(**self.at))

    def service(self, name):
        from zenoh_ros2_sdk.discovery import get_service_info

        return get_service_info(name, verbose=True, **self.at)

    def topic(self, name):
        from zenoh_ros2_sdk.discovery import get_topic_info

        return get_topic_info(name, verbose=True, **self.at)


def finds(graph):
    services = eventually("the node is found", lambda: graph.services() or None)
    assert services["/echo/set"] == ["std_srvs/srv/SetBool"], services
    described = "type_description_interfaces/srv/GetTypeDescription"
    assert services["/echo/get_type_description"] == [described], services
    server = graph.service("/echo/set").servers[0]
    assert (server.node_name, server.qos) == ("echo", "::,10:,:,:,,"), server
    pong = graph.topic("/pong")
    assert pong.publisher_count == 1 and pong.topic_types == ["std_msgs/msg/String"], pong
    assert pong.publishers[0].qos == ":1:,3:,:,:,,", pong
    return pong.publishers[0].type_hash


def speaks(at, announced):
    import zenoh_ros2_sdk as sdk
    from zenoh_ros2_sdk.qos import QosDurability, QosProfile

    publisher = sdk.ROS2Publisher("/ping", "std_msgs/msg/String", **at)
    assert publisher.type_hash == announced, "two implementations, one hash"
    heard, kept = [], []
    live = sdk.ROS2Subscriber("/pong", "std_msgs/msg/String", lambda m: heard.append(m.data), **at)
    time.sleep(0.5)
    for text in ["eins", "zwei", "drei", "vier"]:
        publisher.publish(data=text)
    eventually("all is repeated before anyone comes late", lambda: "vier" in heard)
    # The SDK asks for what was kept, but lets Zenoh drop all but the newest of it.
    latched = QosProfile(durability=QosDurability.TRANSIENT_LOCAL, history_depth=3)
    late = sdk.ROS2Subscriber(
        "/pong", "std_msgs/msg/String", lambda m: kept.append(m.data), qos=latched, **at
    )
    eventually("the last one comes to who is late", lambda: kept[:1] == ["vier"])
    theirs, all_kept = advanced(live.session_mgr.session, live.keyexpr, text_of)
    eventually("the last three come", lambda: all_kept == ["zwei", "drei", "vier"])
    publisher.publish(data="fünf")
    eventually("what is said is repeated", lambda: "fünf" in heard and "fünf" in kept)
    eventually("and comes after the rest", lambda: all_kept == ["zwei", "drei", "vier", "fünf"])
    theirs.undeclare()
    for end in (late, live, publisher):
        end.close()
    return live.keyexpr, publisher.keyexpr


def advanced(session, key, read):
    """A latched subscription as rmw_zenoh_cpp makes it (rmw_subscription_data.cpp)."""
    from zenoh import ext

    came = []
    subscriber = ext.declare_advanced_subscriber(
        session,
        key,
        lambda sample: came.append(read(sample)),
        history=ext.HistoryConfig(detect_late_publishers=True, max_samples=3),
        recovery=ext.RecoveryConfig(heartbeat=True),
        subscriber_detection=True,
    )
    return subscriber, came


def text_of(sample):
    size, = struct.unpack_from("<I", bytes(sample.payload), 4)
    return bytes(sample.payload)[8 : 8 + size - 1].decode()


def as_text(text):
    data = text.encode() + b"\0"
    return struct.pack("<4BI", 0, 1, 0, 0, len(data)) + data


def latches(program, pong, ping):
    """A latched publisher as rmw_zenoh_cpp makes it was there before the node."""
    import zenoh
    from zenoh import ext

    port = free_port()
    config = zenoh.Config()
    for key, value in {
        "mode": '"peer"',
        "listen/endpoints": "[]",
        "connect/endpoints": f'["tcp/127.0.0.1:{port}"]',
        "connect/timeout_ms": "-1",
        "connect/exit_on_failure": "false",
        "scouting/multicast/enabled": "false",
        "scouting/gossip/enabled": "false",
        "open/return_conditions/connect_scouted": "false",
    }.items():
        config.insert_json5(key, value)
    with zenoh.open(config) as session:
        publisher = ext.declare_advanced_publisher(
            session,
            ping,
            cache=ext.CacheConfig(3),
            publisher_detection=True,
            sample_miss_detection=ext.MissDetectionConfig(sporadic_heartbeat=0.5),
        )

        def publish(number):
            attachment = struct.pack("<qqB16s", number, time.time_ns(), 16, b"g" * 16)
            publisher.put(as_text(str(number)), attachment=attachment)

        for number in range(1, 6):
            publish(number)
        with started(program, port):
            _, came = advanced(session, pong, text_of)
            eventually("it asks for what was kept", lambda: came == ["3", "4", "5"])
            publish(6)
            eventually("and hears the rest, once", lambda: came == ["3", "4", "5", "6"])


def asks(at):
    import zenoh_ros2_sdk as sdk

    client = sdk.ROS2ServiceClient("/echo/set", "std_srvs/srv/SetBool", timeout=WAIT, **at)
    for data, text in [(True, "set to true"), (False, "set to false")]:
        response = client.call(data=data)
        assert (response.success, response.message) == (data, text), response
    client.close()


def describes(graph):
    """A type is described as rosbags has it, and by the hash that rosbags makes of it."""
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore
    from zenoh_ros2_sdk.keyexpr import topic_keyexpr
    from zenoh_ros2_sdk.session import ZenohSession
    from zenoh_ros2_sdk.utils import ros2_to_dds_type

    store = get_typestore(Stores.ROS2_JAZZY)
    package = "type_description_interfaces"
    ask, told = "lab_msgs/msg/Asked", "lab_msgs/msg/Told"
    # The request and the response, as messages.
    store.register(get_types_from_msg("string type\nstring hash\nbool sources", ask))
    store.register(get_types_from_msg(
        "bool successful\nstring failure_reason\n"
        f"{package}/TypeDescription type_description\n"
        f"{package}/TypeSource[] sources\n{package}/KeyValue[] more",
        told,
    ))
    server = graph.service("/echo/get_type_description").servers[0]
    kind = f"{package}/srv/GetTypeDescription"
    name = "/echo/get_type_description"
    key = topic_keyexpr(DOMAIN, name, ros2_to_dds_type(kind), server.type_hash)
    attachment = struct.pack("<qqB16s", 1, 1, 16, b"c" * 16)

    def described(type_, hash_):
        request = bytes(store.serialize_cdr(store.types[ask](type_, hash_, False), ask))
        session = ZenohSession.get_instance().session
        (reply,) = session.get(key, payload=request, attachment=attachment, timeout=WAIT)
        assert bytes(reply.ok.attachment)[:8] == attachment[:8], "the request's number comes back"
        return store.deserialize_cdr(bytes(reply.ok.payload), told)

    for type_ in ("std_msgs/msg/String", "geometry_msgs/msg/PoseWithCovarianceStamped"):
        hash_ = store.hash_rihs01(type_)
        one = described(type_, hash_)
        assert one.successful, one.failure_reason
        names = [field for field, _ in store.fielddefs[type_][1]]
        main = one.type_description.type_description
        assert (main.type_name, [field.name for field in main.fields]) == (type_, names), main
    assert [ref.type_name for ref in one.type_description.referenced_type_descriptions] == [
        "builtin_interfaces/msg/Time",
        *(f"geometry_msgs/msg/{part}" for part in ("Point", "Pose", "PoseWithCovariance", "Quaternion")),
        "std_msgs/msg/Header",
    ]
    other = described("std_msgs/msg/String", "RIHS01_" + "0" * 64)
    assert not other.successful and store.hash_rihs01("std_msgs/msg/String") in other.failure_reason
    assert not described("lab_msgs/msg/Nothing", "").successful


def acts(graph, at):
    """An action by its services. The SDK knows no actions: in CDR a goal is its id and its fields."""
    import numpy
    import zenoh_ros2_sdk as sdk

    def client(part, kind, request, response):
        name = f"/echo/count/_action/{part}"
        hash_ = eventually(name, lambda: graph.service(name)).servers[0].type_hash
        return sdk.ROS2ServiceClient(
            name, kind, request, response, type_hash=hash_, timeout=WAIT, **at
        )

    send = client(
        "send_goal", "lab_msgs/action/Count_SendGoal",
        "uint8[16] goal_id\nuint32 until", "bool accepted\nint32 sec\nuint32 nanosec",
    )
    get = client(
        "get_result", "lab_msgs/action/Count_GetResult",
        "uint8[16] goal_id", "int8 status\nuint32 counted",
    )
    cancel = client(
        "cancel_goal", "action_msgs/srv/CancelGoal",
        "uint8[16] goal_id\nint32 sec\nuint32 nanosec", "int8 return_code",
    )
    goal = lambda n: numpy.full(16, n, dtype=numpy.uint8)
    assert not send.call(goal_id=goal(1), until=0).accepted
    accepted = send.call(goal_id=goal(1), until=5)
    assert accepted.accepted and abs(accepted.sec - time.time()) < 60, accepted
    result = get.call(goal_id=goal(1))
    assert (result.status, result.counted) == (4, 5), result
    assert send.call(goal_id=goal(2), until=1_000_000).accepted
    assert canceled(cancel, goal(2)) == (0, 1)
    assert get.call(goal_id=goal(2)).status == 5
    for end in (send, get, cancel):
        end.close()


def canceled(client, goal_id):
    """Cancels a goal: the return code, and how many goals are cancelled; what these are, is left."""
    request = struct.pack("<4B16BiI", 0, 1, 0, 0, *goal_id, 0, 0)
    (reply,) = client.session_mgr.session.get(
        client.keyexpr, payload=request, attachment=client._create_attachment(1, 1), timeout=WAIT
    )
    return struct.unpack_from("<b3xI", bytes(reply.ok.payload), 4)


def is_refused(at, node):
    """What cannot be read is answered with the reason, and another definition is told."""
    import zenoh_ros2_sdk as sdk

    client = sdk.ROS2ServiceClient("/echo/set", "std_srvs/srv/SetBool", timeout=WAIT, **at)
    session = client.session_mgr.session
    attachment = client._create_attachment(1, 1)
    for payload, attached, word in [
        (b"\x00\x01\x00\x00", attachment, b"byte"),
        (b"\x00\x01\x00\x00\x01", b"", b"attachment"),
        (b"\x00\x07\x00\x00\x01", attachment, b"00 07"),
    ]:
        replies = list(session.get(client.keyexpr, payload=payload, attachment=attached, timeout=WAIT))
        assert len(replies) == 1 and replies[0].err is not None, replies
        assert word in bytes(replies[0].err.payload), bytes(replies[0].err.payload)
    client.close()
    changed = sdk.ROS2Publisher(
        "/ping", "std_msgs/msg/String", type_hash="RIHS01_" + "1" * 64, **at
    )
    told = []
    for line in node.stdout:
        told.append(line)
        if "the definitions of that type differ" in line:
            break
    assert sum("refused what cannot be read" in line for line in told) == 3, told
    changed.close()


@contextlib.contextmanager
def started(program, port):
    """The node, which ends by itself when its input does."""
    node = subprocess.Popen(
        [program, f"tcp/127.0.0.1:{port}", str(DOMAIN)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )
    try:
        assert node.stdout.readline() == "ready\n"
        yield node
        node.stdin.close()
        assert node.wait(WAIT) == 0
    finally:
        node.kill()


def main():
    program, port = sys.argv[1], free_port()
    os.environ["ZENOH_CONFIG_OVERRIDE"] = "listen/endpoints=[];scouting/gossip/enabled=false"
    at = dict(router_ip="127.0.0.1", router_port=port, domain_id=DOMAIN)
    graph = Graph(at)
    with tempfile.TemporaryDirectory() as folder:
        with started(program, port) as node:
            interfaces(folder)
            announced = finds(graph)
            pong, ping = speaks(at, announced)
            asks(at)
            describes(graph)
            acts(graph, at)
            is_refused(at, node)
        eventually("the node is gone", lambda: graph.service("/echo/set") is None)
        latches(program, pong, ping)
    from zenoh_ros2_sdk.session import ZenohSession

    ZenohSession.get_instance().close()
    print("ros2_client: the node is found, spoken with, asked, and refuses what it must")


if __name__ == "__main__":
    main()
