"""Runs the console sessions of the documents and compares what is printed with what the page shows.

A session is a block marked `console` whose first line begins with `$ `. Lines with `$ ` are typed, one after the other,
into one shell for each page; the lines below each are its output. A line `...` stands for any lines. What differs from
run to run or by machine (ids, dates, times, sizes, scores, folders, columns' widths) is compared by its kind alone. Blocks without a `$ ` are
not run: they need hardware, root or ROS.
The shell has an empty home, and a configuration that moves the daemon to free ports, of Zenoh and of HTTP. A page that starts no daemon
finds one that serves. A page may say `omird … &`, then the check waits until it serves.
Usage: sessions_check.py FOLDER_OF_PROGRAMS PAGE…
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from omird_process import free_port

PATIENCE = 60
# Lies where each page's shell begins.
RECORDING = pathlib.Path(__file__).parent.parent / "ros2/tests/data/recordings/drive.mcap"
END = "the-command-has-ended"
# The order matters: the first that fits names the kind.
KINDS = [
    (r"\bjust now\b|\b\d+ \S+ ago\b", "<age>"),
    (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?( ?UTC|Z)?", "<date>"),
    (r"\b[0-9a-f]{32}\b", "<id>"),
    (r"(?<![\w.-])[0-9a-f]{4,16}(?![\w.-])", "<id>"),
    (r"\b\d+(\.\d+)? (ns|µs|ms|s|min|h|d|B|bytes|KiB|MiB|GiB|kB|MB|GB)\b", "<measure>"),
    (r"\b[01]\.\d\d+\b", "<score>"),
    (r"set, not known to be synchronised \(coarse\)|\b(coarse|synchronised)\b", "<trust>"),
    (r"\bdata=\S+", "data=<folder>"),
]


class Shell:
    """One shell for a page, with job control, so that `%1` means what it means to a person."""

    def __init__(self, programs, home):
        self.home, self.port, self.http = home, free_port(), free_port()
        config = pathlib.Path(home, ".omird-check.toml")
        config.write_text(
            f'data = "{home}/.local/state/omird"\nlog = "warn"\n[network]\nlisten = ["tcp/127.0.0.1:{self.port}"]\n'
            f'[http]\nlisten = "127.0.0.1:{self.http}"\n'
        )
        environment = {
            "HOME": home,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "OMIRD_CONFIG": str(config),
            # Of root it would be another one.
            "OMIRD_DATA": f"{home}/.local/state/omird",
            "OMIR_CONNECT": f"tcp/127.0.0.1:{self.port}",
            "COLUMNS": "100",
            "LC_ALL": "C.UTF-8",
        }
        work = pathlib.Path(home, "work")
        work.mkdir()
        shutil.copy(RECORDING, work)
        self.process = subprocess.Popen(
            ["timeout", "300", "bash"],
            cwd=work, env=environment, text=True, bufsize=1,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        self.type("set -m")

    def type(self, command):
        """The lines that a command prints."""
        command = command.replace("127.0.0.1:7449", f"127.0.0.1:{self.http}")
        # A command must not read the lines that come after it.
        ends = command.rstrip().endswith("&")
        typed = command if ends else f"{{ {command}\n}} < /dev/null"
        self.process.stdin.write(f"{typed}\necho; echo {END}\n")
        lines, serves, ended = [], not ends, False
        while not (serves and ended):
            line = self.process.stdout.readline()
            assert line, f"{command}: the shell ended\n{''.join(lines)}"
            serves |= line.startswith("ready robot=")
            if line.strip() == END:
                ended = True
            else:
                lines.append(line)
        told = "".join(lines).replace(str(self.port), "7448").replace(str(self.http), "7449").replace(self.home, "/home/you")
        return [line for line in told.splitlines() if line.strip() and not shells_own(line)]

    def close(self):
        self.process.stdin.write("kill $(jobs -p) 2>/dev/null; wait; exit\n")
        self.process.stdin.close()
        self.process.stdout.read()
        self.process.wait(PATIENCE)


def shells_own(line):
    """Of jobs that begin and end a shell tells in its own way."""
    return re.match(r"(bash: line \d+|\[\d+\][+-]?)\s*:?\s*\d* ?(Killed|Terminated|Done|\d+$)?.*", line)


def by_kind(line):
    for pattern, kind in KINDS:
        line = re.sub(pattern, kind, line)
    return " ".join(line.split())


def fits(shown, came):
    """Whether lines are what the page shows, where `...` stands for any of them."""
    if not shown:
        return not came
    if shown[0] == "...":
        return any(fits(shown[1:], came[skipped:]) for skipped in range(len(came) + 1))
    return bool(came) and shown[0] == came[0] and fits(shown[1:], came[1:])


def commands(page):
    """Each command of a page's sessions, and the lines below it."""
    for block in re.findall(r"^```console\n(\$ .*?)^```", page, re.M | re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            # A command goes on in lines that begin with `> `, as a shell shows it.
            command = re.match(r".*\n(?:> .*\n)*", part).group(0)
            below = part[len(command):].splitlines()
            typed = command.rstrip("\n").replace("\n> ", "\n")
            yield typed, [line for line in below if line.strip()]


def check(programs, path):
    found = list(commands(pathlib.Path(path).read_text()))
    wrong = []
    with tempfile.TemporaryDirectory() as home:
        shell = Shell(programs, home)
        if found and not any(re.match(r"omird .*&$", command) for command, _ in found):
            shell.type("omird --robot rover &")
        for command, shown in found:
            came = shell.type(re.sub(r"\s+#.*", "", command) if "\n" not in command else command)
            if not fits([by_kind(line) for line in shown], [by_kind(line) for line in came]):
                wrong.append("\n".join([f"{path}: $ {command}", "shown:", *shown, "came:", *came, ""]))
        shell.close()
    return len(found), wrong


def main():
    programs, pages = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]
    total, wrong = 0, []
    for page in pages:
        count, faults = check(programs, page)
        total += count
        wrong += faults
    print("\n".join(wrong) or f"{total} commands of {len(pages)} pages print what the pages show")
    sys.exit(bool(wrong) or not total)


main()
