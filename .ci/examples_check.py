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
    shown, learnt = re.findall(r"```text\n(.*?)```", (EXAMPLES / "README.md").read_text(), re.S)
    found = "0.54 m away: the charger is by the window\n"
    for name in ("python", "experience", "rust", "shell"):
        with tempfile.TemporaryDirectory() as folder:
            endpoint = f"tcp/127.0.0.1:{free_port()}"
            path = f"{omir.parent}:{os.environ['PATH']}"
            environment = {**os.environ, "OMIR_CONNECT": endpoint, "OMIRD_DATA": f"{folder}/data", "PATH": path}
            words = ["--robot", "rover", "--data", f"{folder}/data", "--listen", endpoint, "--http", "127.0.0.1:0"]
            with running(str(omird), *words, told=(line := [])):
                match name:
                    case "python":
                        example = EXAMPLES / "python/remember_and_recall.py"
                        printed = run(folder, environment, sys.executable, example, "rover", endpoint)
                        assert printed == shown, printed
                    case "experience":
                        scopes = ["--scope", "experience:read", "--scope", "experience:write"]
                        # Through the socket of the daemon, so that it is in force at once.
                        made = [omir, "token", "add", "loop", *scopes]
                        environment["TOKEN"] = run(folder, environment, *made).strip()
                        url = "http://" + re.search(r"http=(\S+)", line[0]).group(1)
                        printed = run(folder, environment, sys.executable, EXAMPLES / "python/learn_from_tasks.py", url)
                        assert printed == learnt, printed
                    case "rust":
                        printed = run(folder, environment, rust, "rover", endpoint)
                        assert printed == "stored durably: true\n" + found, printed
                    case "shell":
                        printed = run(folder, environment, EXAMPLES / "shell/patrol.sh", "patrol.omir")
                        assert "door 3 sticks" in printed, printed
                        exported = pathlib.Path(folder, "patrol.omir").read_text()
                        assert "door 3" in exported and "spill" not in exported
    print("4 examples run")


main()
