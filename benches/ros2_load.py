"""Odometry at 1 kHz and detections at 30 Hz into a daemon: what is kept, and what it costs.

Messages are made by rosbags and sent by Zenoh's Python package, as rmw_zenoh would; how many poses the rule
keeps (a metre apart) is counted here as well. Needs what `.ci/run` installs into target/ci-python.
Usage: ros2_load.py OMIRD [SECONDS]
"""

import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / ".ci"))
from omird_process import free_port  # noqa: E402
from ros2_client import interfaces  # noqa: E402

SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 60.0
CONFIG = """
robot = "rover"
[ros2]
[[ros2.topic]]
topic = "/odom"
queue_depth = 1000
[[ros2.topic]]
topic = "/detections"
type = "vision_msgs/msg/Detection3DArray"
queue_depth = 100
"""
def main(program):
    folder = tempfile.mkdtemp()
    shelf = pathlib.Path(folder) / "interfaces"; shelf.mkdir(); interfaces(shelf)
    port = free_port(); config = pathlib.Path(folder) / "omird.toml"; config.write_text(CONFIG)
    daemon = subprocess.Popen([program, "--config", config, "--data", f"{folder}/data", "--listen", f"tcp/127.0.0.1:{port}"], stdout=subprocess.PIPE, text=True)
    print(daemon.stdout.readline().strip())
    os.environ["ZENOH_CONFIG_OVERRIDE"] = "listen/endpoints=[];scouting/gossip/enabled=false"
    at = dict(router_ip="127.0.0.1", router_port=port, domain_id=0)
    import zenoh_ros2_sdk as sdk
    from zenoh_ros2_sdk.session import ZenohSession
    from ros2_memory import zero
    from rosbags.typesys.base import Nodetype
    odom = sdk.ROS2Publisher("/odom", "nav_msgs/msg/Odometry", **at)
    seen = sdk.ROS2Publisher("/detections", "vision_msgs/msg/Detection3DArray", **at)
    time.sleep(2)
    store = ZenohSession.get_instance().store; session = ZenohSession.get_instance().session
    make = lambda kind: zero(store, (Nodetype.NAME, kind))
    o = make("nav_msgs/msg/Odometry"); o.header.frame_id = "map"; o.child_frame_id = "base_link"; o.pose.pose.orientation.w = 1.0
    o.pose.pose.position.x = 1234.5678; o.header.stamp.sec = 77777
    raw = bytearray(store.serialize_cdr(o, "nav_msgs/msg/Odometry"))
    px = raw.index(struct.pack("<d", 1234.5678)); ps = raw.index(struct.pack("<i", 77777))
    d = make("vision_msgs/msg/Detection3DArray"); d.header.frame_id = "map"; d.header.stamp.sec = 77777
    for n in range(3):
        one = make("vision_msgs/msg/Detection3D"); one.header.frame_id = "map"; one.header.stamp.sec = 77777
        one.bbox.center.position.x = float(n * 5); one.bbox.center.orientation.w = 1.0; one.id = f"thing{n}"
        r = make("vision_msgs/msg/ObjectHypothesisWithPose"); r.hypothesis.class_id = ["cup", "chair", "door"][n]; r.hypothesis.score = 0.9
        r.pose.pose.position.x = float(n * 5); r.pose.pose.orientation.w = 1.0
        one.results.append(r); d.detections.append(one)
    det = bytearray(store.serialize_cdr(d, "vision_msgs/msg/Detection3DArray"))
    stamps = [i for i in range(len(det)) if det[i:i+4] == struct.pack("<i", 77777)]
    gid = bytes(16)
    def cpu():
        f = open(f"/proc/{daemon.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(f[11]) + int(f[12])) / os.sysconf("SC_CLK_TCK")
    begin = time.time(); c0 = cpu(); sent = dets = 0; last = None; expected = 0; late = 0
    while True:
        now = time.time() - begin
        if now >= SECONDS: break
        if now * 1000 < sent: time.sleep(0.0003); continue
        x = sent * 0.002  # 2 m/s
        stamp = begin + sent / 1000
        struct.pack_into("<iI", raw, ps, int(stamp), int(stamp % 1 * 1e9)); struct.pack_into("<d", raw, px, x)
        if last is None or x - last > 1.0 + 1e-12 or abs(x - last) >= 1.0: expected += 1; last = x
        session.put(odom.keyexpr, bytes(raw), attachment=struct.pack("<qqB16s", sent + 1, int(stamp * 1e9), 16, gid))
        if sent % 33 == 0:
            for s in stamps: struct.pack_into("<iI", det, s, int(stamp), int(stamp % 1 * 1e9))
            session.put(seen.keyexpr, bytes(det), attachment=struct.pack("<qqB16s", dets + 1, int(stamp * 1e9), 16, gid)); dets += 1
        sent += 1
    took = time.time() - begin
    time.sleep(3); c1 = cpu()

    def ask(what):
        return json.loads(bytes(next(iter(session.get(f"omir/rover/{what}"))).ok.payload))
    status = ask("status"); ros2 = status["ros2"]
    print(json.dumps(ros2, indent=1)[:2500])
    recall = ask("recall?type=MemoryRecord;limit=1000;touch=false;q=")
    print("sent", sent, "odometry,", dets, "detections in", round(took, 1), "s; expected kept", expected, "records", recall["total"], status["counts"]["types"])
    print("CPU", round(100 * (c1 - c0) / took, 1), "% of one core; rss", open(f"/proc/{daemon.pid}/status").read().split("VmRSS:")[1].split("\n")[0].strip())
    daemon.terminate(); daemon.wait(30); sys.stdout.flush(); os._exit(0)
main(sys.argv[1])
