#!/usr/bin/env python3
"""Checks the timeline that `omir export --format mcap` writes with the mcap libraries of others.

    mcap_check.py OMIR RECORDING

A recording is imported into the daemon of the demo with OMIR (target/debug/omir), exported again, and read
by mcap and mcap-ros2-support: every resource is there as JSON, every placed one as a SceneUpdate that
says the same, in the order of time.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory

from omird_process import free_port, running

POSE = "https://omir.io/spec/R1/extension/spatial-pose"


def pose_of(resource):
    for extension in resource.get("extension", []):
        if extension["url"] == POSE:
            return extension["valueJson"]
    return None


def check(resources, file):
    """How many resources the file shows; an assertion fails where it is wrong."""
    with file.open("rb") as stream:
        reader = make_reader(stream, decoder_factories=[DecoderFactory()], validate_crcs=True)
        statistics = reader.get_summary().statistics
        records, scenes, times = {}, {}, []
        for schema, channel, message in reader.iter_messages(log_time_order=False):
            times.append(message.log_time)
            if channel.topic == "/omird/records":
                assert (schema.encoding, channel.message_encoding) == ("jsonschema", "json")
                assert json.loads(schema.data)["type"] == "object"
                one = json.loads(message.data)
                records[f"{one['resourceType']}/{one['id']}"] = one
        assert times == sorted(times), "not in the order of time"
        assert statistics.message_count == len(times)
        for schema, channel, message, update in reader.iter_decoded_messages(topics=["/omird/memories"]):
            assert (schema.name, schema.encoding) == ("foxglove_msgs/msg/SceneUpdate", "ros2msg")
            assert not update.deletions
            (entity,) = update.entities
            seconds = entity.timestamp.sec * 1_000_000_000 + entity.timestamp.nanosec
            assert seconds == message.log_time, entity
            assert (entity.lifetime.sec, entity.lifetime.nanosec) == (0, 0)
            scenes[entity.id] = entity
    assert records == resources, "the records are not those of the Bundle"
    placed = {name: pose_of(one) for name, one in resources.items() if pose_of(one)}
    assert scenes.keys() == placed.keys(), (scenes.keys(), placed.keys())
    for name, pose in placed.items():
        entity, resource = scenes[name], resources[name]
        assert entity.frame_id == pose["frame"], (name, entity.frame_id, pose)
        (sphere,) = entity.spheres
        at = [getattr(sphere.pose.position, axis) for axis in "xyz"]
        stated = pose["position"]
        stated = [stated[axis] for axis in "xyz"] if isinstance(stated, dict) else stated
        assert all(abs(a - b) < 1e-9 for a, b in zip(at, stated)), (name, at, stated)
        assert len(entity.arrows) == (1 if pose.get("orientation") else 0), name
        metadata = {pair.key: pair.value for pair in entity.metadata}
        assert len(metadata) == len(entity.metadata)
        if resource["resourceType"] == "MemoryRecord":
            assert metadata["content"] == resource["content"]
            (text,) = entity.texts
            assert resource["content"].startswith(text.text.rstrip("…")[:20])
    return len(placed)


def main():
    omir, recording = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        endpoint = f"tcp/127.0.0.1:{free_port()}"
        at = ["--listen", endpoint, "--data", folder / "data"]
        with running(omir, "__daemon", "--robot", "r1", *at):

            def run(*words):
                words = [omir, "--connect", endpoint, *map(str, words)]
                return subprocess.run(words, check=True, capture_output=True, text=True).stdout

            run("import", "--format", "mcap", recording)
            bundle = folder / "all.omir"
            run("export", "-o", bundle)
            entries = json.loads(bundle.read_text())["entry"]
            resources = {f"{one['resourceType']}/{one['id']}": one for one in entries}
            for options in ([], ["--uncompressed"]):
                file = folder / "timeline.mcap"
                run("export", "--format", "mcap", *options, "-o", file)
                placed = check(resources, file)
                assert placed > 5, placed
                print(f"mcap: {len(resources)} resources, {placed} to be seen, {file.stat().st_size} bytes")


if __name__ == "__main__":
    main()
