#!/usr/bin/env python3
"""Checks that bags as `rosbags` writes them are read, whatever their storage and compression.

    bags_check.py OMIR

The same messages are written as each kind of bag that rosbags makes, in two splits, and read by OMIR
(target/debug/omir) without being told what they are: every message is read, and each kind makes the same memories.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

START = 1_780_000_000_000_000_000
SECOND = 1_000_000_000
store = get_typestore(Stores.ROS2_JAZZY)
store.register(get_types_from_msg("string room\nfloat64[] levels", "house_msgs/msg/Noise"))
T = store.types


def messages():
    """Topic, type, time, message."""
    text, noise = T["std_msgs/msg/String"], T["house_msgs/msg/Noise"]
    for n in range(200):
        yield "/chatter", "std_msgs/msg/String", START + n * SECOND, text(f"passing door {n}" + "." * 200)
    import numpy

    for n in range(10):
        yield "/noise", "house_msgs/msg/Noise", START + n * SECOND, noise("hall", numpy.array([float(n)]))


def write(folder, found, storage, mode, version):
    writer = Writer(folder, version=version, storage_plugin=storage)
    if mode != CompressionMode.NONE:
        writer.set_compression(mode, CompressionFormat.ZSTD)
    with writer:
        connections = {}
        for topic, ty, nanos, message in found:
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, ty, typestore=store)
            writer.write(connections[topic], nanos, store.serialize_cdr(message, ty))


def main():
    (omir,) = sys.argv[1:]
    found = sorted(messages(), key=lambda one: one[2])
    half = len(found) // 2
    rules = "[ros2]\n" + "".join(
        f"[[ros2.topic]]\ntopic = '{topic}'\ntext = '{text}'\nkeep = {{}}\nmerge = false\n"
        for topic, text in [("/chatter", "{data}"), ("/noise", "{room} {levels[0]:.1}")]
    )
    first = None
    with tempfile.TemporaryDirectory() as top:
        top = Path(top)
        (top / "omird.toml").write_text(rules)
        kinds = [
            (storage, mode, version)
            for storage in StoragePlugin
            for mode in CompressionMode
            for version in (8, 9)
            if not (storage == StoragePlugin.SQLITE3 and mode == CompressionMode.STORAGE)
        ]
        for storage, mode, version in kinds:
            bag = top / f"{storage.name}_{mode.name}_{version}"
            splits = [bag / "a", bag / "b"]
            for split, part in zip(splits, (found[:half], found[half:])):
                write(split, part, storage, mode, version)
            out = top / f"{bag.name}.omir"
            words = [omir, "--json", "import", "--rules", top / "omird.toml", "-o", out, *splits]
            run = subprocess.run([*map(str, words)], capture_output=True, text=True)
            assert run.returncode == 0, (bag.name, run.stderr)
            told = json.loads(run.stdout)
            read = {topic["topic"]: (topic["messages"], topic["unusable"]) for topic in told["topics"]}
            assert read == {"/chatter": (200, None), "/noise": (10, None)}, (bag.name, told)
            made = sorted(map(json.dumps, json.loads(out.read_text())["entry"]))
            assert len(made) == 210, (bag.name, len(made))
            first = first or made
            assert made == first, f"{bag.name} makes other memories"
    print(f"bags: {len(kinds)} kinds of rosbags make the same {len(first)} memories")


if __name__ == "__main__":
    main()
