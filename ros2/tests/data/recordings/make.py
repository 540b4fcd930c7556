"""Makes the recordings beside this file, with libraries of others: mcap writes the files, rosbags the
messages, numpy knows where things are.

    pip install mcap==1.6.0 rosbags==0.11.9 numpy lz4 zstandard
    python make.py

A robot drives a circle for twelve seconds. `map` to `odom` changes once a second, `odom` to `base_link`
ten times; the camera's place on it is told late, by /tf_static. What it detects is told in the camera's
frame, 50 ms after the image, and 200 ms before the transforms of that moment are recorded.
`expected.json` has where these things are in `map`.
"""

import io
import json
import random
import shutil
import sqlite3
import tempfile
from pathlib import Path

import numpy as np
from mcap.writer import CompressionType, IndexType, Writer
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin
from rosbags.rosbag2 import Writer as BagWriter
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

HERE = Path(__file__).parent
INTERFACES = HERE.parents[2] / "interfaces"
START = 1_780_000_000_000_000_000
SECOND = 1_000_000_000

store = get_typestore(Stores.ROS2_JAZZY)
added = {}
for path in sorted((INTERFACES / "vision_msgs/msg").glob("*.msg")):
    added.update(get_types_from_msg(path.read_text(), f"vision_msgs/msg/{path.stem}"))
added.update(get_types_from_msg(
    "string dock_name\nuint8 tries\nfloat64 error_m\nfloat64[3] offset\nint32[<=4] codes",
    "my_robot_msgs/msg/DockResult"))
store.register(added)
T = store.types
# The type of the same name, as a robot of another distribution has it: one field more.
other = get_typestore(Stores.EMPTY)
other.register(get_types_from_msg("string data\nuint8 level", "std_msgs/msg/String"))

DOCK_IDL = """================================================================================
IDL: my_robot_msgs/msg/DockResult
// generated from rosidl_adapter/resource/msg.idl.em
// with input from my_robot_msgs/msg/DockResult.msg

module my_robot_msgs {
  module msg {
    typedef double double__3[3];
    struct DockResult {
      string dock_name;
      uint8 tries;
      @unit (value="m")
      double error_m;
      double__3 offset;
      sequence<int32, 4> codes;
    };
  };
};
"""


def time(nanos):
    return T["builtin_interfaces/msg/Time"](nanos // SECOND, nanos % SECOND)


def header(nanos, frame):
    return T["std_msgs/msg/Header"](time(nanos), frame)


def about_z(angle):
    return np.array([0.0, 0.0, np.sin(angle / 2), np.cos(angle / 2)])


def product(a, b):
    (x, y, z, w), (p, q, r, s) = a, b
    return np.array([w * p + x * s + y * r - z * q, w * q - x * r + y * s + z * p,
                     w * r + x * q - y * p + z * s, w * s - x * p - y * q - z * r])


def rotate(q, v):
    return product(product(q, [*v, 0.0]), [-q[0], -q[1], -q[2], q[3]])[:3]


def between(a, b, ratio):
    """Positions in a straight line, rotations along the great circle, as tf2 has it."""
    (pa, qa), (pb, qb) = a, b
    dot = float(np.dot(qa, qb))
    if dot < 0:
        qb, dot = -qb, -dot
    angle = np.arccos(min(dot, 1.0))
    if angle < 1e-9:
        q = qa
    else:
        q = (np.sin((1 - ratio) * angle) * qa + np.sin(ratio * angle) * qb) / np.sin(angle)
    return pa + ratio * (pb - pa), q


def then(a, b):
    return a[0] + rotate(a[1], b[0]), product(a[1], b[1])


def odom_to_base(second):
    angle = second / 4
    return np.array([3 * np.cos(angle), 3 * np.sin(angle), 0.0]), about_z(angle + np.pi / 2)


def map_to_odom(second):
    return np.array([10 + 0.02 * second, -4.0, 0.1]), about_z(0.3 + 0.005 * second)


BASE_TO_CAMERA = (np.array([0.2, 0.05, 0.9]),
                  product(about_z(0.1), [-0.5, 0.5, -0.5, 0.5] / np.float64(1.0)))


def at(function, second, step):
    """What a listener that interpolates between samples finds."""
    low = np.floor(second / step + 1e-9) * step
    return between(function(low), function(low + step), (second - low) / step)


def inverse(pose):
    turned = np.array([-pose[1][0], -pose[1][1], -pose[1][2], pose[1][3]])
    return -rotate(turned, pose[0]), turned


def stamped(parent, child, nanos, pose):
    (x, y, z), q = pose
    transform = T["geometry_msgs/msg/Transform"](
        T["geometry_msgs/msg/Vector3"](x, y, z), T["geometry_msgs/msg/Quaternion"](*q))
    return T["geometry_msgs/msg/TransformStamped"](header(nanos, parent), child, transform)


def tf(*transforms):
    return T["tf2_msgs/msg/TFMessage"](list(transforms))


def pose_of(pose):
    (x, y, z), q = pose
    return T["geometry_msgs/msg/Pose"](
        T["geometry_msgs/msg/Point"](x, y, z), T["geometry_msgs/msg/Quaternion"](*q))


def nothing(shape):
    return np.zeros(shape)


def odometry(nanos, second):
    still = T["geometry_msgs/msg/Twist"](
        T["geometry_msgs/msg/Vector3"](0.75, 0.0, 0.0), T["geometry_msgs/msg/Vector3"](0.0, 0.0, 0.25))
    return T["nav_msgs/msg/Odometry"](
        header(nanos, "odom"), "base_link",
        T["geometry_msgs/msg/PoseWithCovariance"](pose_of(odom_to_base(second)), nothing(36)),
        T["geometry_msgs/msg/TwistWithCovariance"](still, nothing(36)))


def detection(nanos, seen):
    unturned = np.array([0.0, 0.0, 0.0, 1.0])
    all = []
    for name, score, position in seen:
        hypothesis = T["vision_msgs/msg/ObjectHypothesisWithPose"](
            T["vision_msgs/msg/ObjectHypothesis"](name, score),
            T["geometry_msgs/msg/PoseWithCovariance"](pose_of((np.zeros(3), unturned)), nothing(36)))
        box = T["vision_msgs/msg/BoundingBox3D"](
            pose_of((position, unturned)), T["geometry_msgs/msg/Vector3"](0.1, 0.1, 0.1))
        all.append(T["vision_msgs/msg/Detection3D"](header(nanos, "camera"), [hypothesis], box, ""))
    return T["vision_msgs/msg/Detection3DArray"](header(nanos, "camera"), all)


THINGS = {"cup": np.array([11.5, -2.0, 0.8]), "chair": np.array([8.0, -5.5, 0.4])}


def messages():
    """Topic, type, log time, CDR."""
    found, expected = [], []

    def add(topic, ty, nanos, message, types=store):
        found.append((topic, ty, nanos, bytes(types.serialize_cdr(message, ty))))

    def moment(second):
        return START + round(second * SECOND)

    add("/tf_static", "tf2_msgs/msg/TFMessage", moment(3.1),
        tf(stamped("base_link", "camera", moment(3.0), BASE_TO_CAMERA)))
    for tick in range(121):
        second = tick / 10
        all = [stamped("odom", "base_link", moment(second), odom_to_base(second))]
        if tick % 10 == 0:
            all.append(stamped("map", "odom", moment(second), map_to_odom(second)))
        add("/tf", "tf2_msgs/msg/TFMessage", moment(second + 0.25), tf(*all))
    for tick in range(24):
        second = tick / 2 + 0.03
        add("/odom", "nav_msgs/msg/Odometry", moment(second + 0.01), odometry(moment(second), second))
    # The cup all the time, the chair now and then and not always sure.
    for tick in range(20):
        second = 0.52 + tick / 2
        camera = then(then(at(map_to_odom, second, 1.0), at(odom_to_base, second, 0.1)), BASE_TO_CAMERA)
        back = inverse(camera)
        seen = [("cup", 0.9, then(back, (THINGS["cup"], about_z(0)))[0])]
        if tick % 3 == 0:
            sure = 0.4 if tick % 2 else 0.8
            seen.append(("chair", sure, then(back, (THINGS["chair"], about_z(0)))[0]))
        stamp = moment(second)
        add("/camera/detections", "vision_msgs/msg/Detection3DArray", stamp + 50_000_000,
            detection(stamp, seen))
    for name, position in THINGS.items():
        expected.append({"content": f"saw {name}", "frame": "map", "position": list(position)})
    log = T["rcl_interfaces/msg/Log"]
    for second, level, text in [(1.0, 20, "started"), (2.0, 30, "wheel 3 slips"),
                                (5.0, 30, "wheel 4 slips"), (9.0, 40, "no path to the dock")]:
        add("/rosout", "rcl_interfaces/msg/Log", moment(second + 0.001),
            log(time(moment(second)), level, "planner", text, "plan.cpp", "plan", 7))
    for second, text in [(0.9, "hello"), (1.9, "hello"), (6.0, "on my way"), (11.9, "there")]:
        add("/chatter", "std_msgs/msg/String", moment(second),
            other.types["std_msgs/msg/String"](text, 3), other)
    add("/docking/result", "my_robot_msgs/msg/DockResult", moment(11.0),
        T["my_robot_msgs/msg/DockResult"]("north", 2, 0.013, np.array([1.0, 2.0, 3.0]),
                                          np.array([7, 8], dtype=np.int32)))
    # Cut off, and longer than its type.
    whole = next(data for topic, _, _, data in found if topic == "/camera/detections")
    found.append(("/camera/detections", "vision_msgs/msg/Detection3DArray", moment(7.7), whole[:40]))
    found.append(("/odom", "nav_msgs/msg/Odometry", moment(8.8), whole))
    # As a recorder does it: in nearly the order in which they came.
    found.sort(key=lambda one: one[2])
    order = random.Random(5)
    for index in range(0, len(found) - 3, 3):
        part = found[index:index + 3]
        order.shuffle(part)
        found[index:index + 3] = part
    return found, expected


def definition(ty):
    if ty == "my_robot_msgs/msg/DockResult":
        return "ros2idl", DOCK_IDL
    types = other if ty == "std_msgs/msg/String" else store
    return "ros2msg", types.generate_msgdef(ty, ros_version=2)[0]


def write(name, found, **options):
    out = io.BytesIO()
    writer = Writer(out, **options)
    writer.start(profile="ros2", library="made for tests")
    channels = {}
    for sequence, (topic, ty, nanos, data) in enumerate(found):
        if topic not in channels:
            encoding, text = definition(ty)
            schema = writer.register_schema(ty, encoding, text.encode())
            channels[topic] = writer.register_channel(topic, "cdr", schema)
        writer.add_message(channels[topic], nanos, data, nanos, sequence)
    writer.finish()
    (HERE / name).write_bytes(out.getvalue())
    print(name, len(out.getvalue()), "bytes,", len(found), "messages")


def bag(folder, found, mode=CompressionMode.NONE, storage=StoragePlugin.SQLITE3):
    """A bag of rosbag2 as rosbags writes it; the file with the messages."""
    writer = BagWriter(folder, version=9, storage_plugin=storage)
    if mode != CompressionMode.NONE:
        writer.set_compression(mode, CompressionFormat.ZSTD)
    with writer:
        connections = {}
        for topic, ty, nanos, data in found:
            if topic not in connections:
                encoding, text = definition(ty)
                digest = (other if ty == "std_msgs/msg/String" else store).hash_rihs01(ty)
                connections[topic] = writer.add_connection(topic, ty, msgdef=text, rihs01=digest)
            writer.write(connections[topic], nanos, data)


def keep(made, name):
    shutil.copyfile(made, HERE / name)
    print(name, (HERE / name).stat().st_size, "bytes")


def older(path):
    """A bag as Humble and before write it: without definitions."""
    with sqlite3.connect(path) as database:
        database.executescript("""
            DROP TABLE message_definitions; DROP TABLE schema; DROP TABLE metadata;
            ALTER TABLE topics DROP COLUMN type_description_hash; VACUUM;""")
    database.close()


found, expected = messages()
write("drive.mcap", found, chunk_size=6000)
few = [one for one in found if one[0] != "/odom"]
write("lz4.mcap", few, chunk_size=6000, compression=CompressionType.LZ4)
fewer = [one for one in found if one[0] in ("/rosout", "/chatter", "/docking/result")]
write("unchunked.mcap", fewer, use_chunking=False, index_types=IndexType.NONE, repeat_channels=False,
      repeat_schemas=False, use_statistics=False, use_summary_offsets=False)
# Small enough for the fuzzer to change.
write("../../../../tests/fuzz/corpus/recording/small",
      found[20:26] + [one for one in fewer if one[0] != "/rosout"], chunk_size=800)
(HERE / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
with tempfile.TemporaryDirectory() as folder:
    folder = Path(folder)
    bag(folder / "plain", found)
    keep(folder / "plain/plain.db3", "drive.db3")
    bag(folder / "messages", few, CompressionMode.MESSAGE)
    keep(folder / "messages/messages.db3", "message_zstd.db3")
    bag(folder / "packed", few, CompressionMode.MESSAGE, StoragePlugin.MCAP)
    keep(folder / "packed/packed.mcap", "message_zstd.mcap")
    bag(folder / "file", few, CompressionMode.FILE)
    keep(next((folder / "file").glob("*.zstd")), "file.db3.zstd")
    known = [one for one in fewer if one[0] == "/rosout"] + [one for one in found if one[0] == "/docking/result"]
    bag(folder / "older", known)
    older(folder / "older/older.db3")
    keep(folder / "older/older.db3", "older.db3")
    with sqlite3.connect(folder / "older/older.db3") as database:
        database.executescript("PRAGMA page_size = 512; VACUUM;")
    database.close()
    keep(folder / "older/older.db3", "../../../../tests/fuzz/corpus/recording/bag")
