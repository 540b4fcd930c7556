"""Runs the examples beside a real daemon. Python's must print what examples/README.md shows.

Usage: examples_check.py OMIRD OMIR RUST_EXAMPLE
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

from omird_process import free_port, running

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples"


def run(folder, environment, *words):
    ran = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, f"{words}: status {ran.returncode}\n{ran.stdout}{ran.stderr}"
    return ran.stdout


def main():
    omird, omir, rust = (pathlib.Path(path).resolve() for path in sys.argv[1:4])
    shown = re.search(r"```text\n(.*?)```", (EXAMPLES / "README.md").read_text(), re.S).group(1)
    found = "0.54 m away: the charger is by the window\n"
    for name in ("python", "rust", "shell"):
        with tempfile.TemporaryDirectory() as folder:
            endpoint = f"tcp/127.0.0.1:{free_port()}"
            path = f"{omir.parent}:{os.environ['PATH']}"
            environment = {**os.environ, "OMIR_CONNECT": endpoint, "PATH": path}
            with running(str(omird), "--robot", "rover", "--data", f"{folder}/data", "--listen", endpoint):
                match name:
                    case "python":
                        example = EXAMPLES / "python/remember_and_recall.py"
                        printed = run(folder, environment, sys.executable, example, "rover", endpoint)
                        assert printed == shown, printed
                    case "rust":
                        printed = run(folder, environment, rust, "rover", endpoint)
                        assert printed == "stored durably: true\n" + found, printed
                    case "shell":
                        printed = run(folder, environment, EXAMPLES / "shell/patrol.sh", "patrol.omir")
                        assert "door 3 sticks" in printed, printed
                        exported = pathlib.Path(folder, "patrol.omir").read_text()
                        assert "door 3" in exported and "spill" not in exported
    print("3 examples run")


main()
