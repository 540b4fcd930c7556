"""Runs the README's Python example and a few checks against a real daemon.

Nothing in here is ours: Zenoh's own client speaks to the daemon, cbor2 reads what it left on disk.
Usage: outside_client.py OMIRD README
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

import cbor2

from omird_process import running


def main():
    program, readme = sys.argv[1], pathlib.Path(sys.argv[2]).read_text()
    example = re.search(r"```python\n(.*?)```", readme, re.S).group(1)
    assert len(example.strip().splitlines()) <= 15, "the example has grown"
    with tempfile.TemporaryDirectory() as data:
        with running(program, "--robot", "rover", "--data", data):
            ran = subprocess.run(
                [sys.executable, "-c", example], capture_output=True, text=True, timeout=60
            )
        print(ran.stdout, ran.stderr)
        assert ran.returncode == 0
        first, second = ran.stdout.strip().splitlines()
        assert json.loads(first)["durable"] is True
        assert second.startswith("omir/rover/recall ") and "door 3 sticks" in second

        segments = sorted(pathlib.Path(data, "segments").glob("*.omirb"))
        assert segments, "a clean stop seals what there is"
        for path in segments:
            with path.open("rb") as file:
                bundle = cbor2.load(file)
                assert file.read(1) == b"", "one CBOR item and nothing behind it"
            assert bundle["resourceType"] == "Bundle" and bundle["omirVersion"] == "R1"
            assert any(entry.get("content") == "door 3 sticks" for entry in bundle["entry"])
    print("3 passed, 0 failed")


main()
