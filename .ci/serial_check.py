"""Takes a dump over a serial line with programs of others: rz of lrzsz, and minicom driven by keystrokes.

A daemon serves a pseudo-terminal; its other end is wired to one that rz or minicom has. Usage: serial_check.py OMIRD OMIR
"""

import json
import os
import pathlib
import pty
import random
import select
import subprocess
import sys
import tempfile
import termios
import threading
import time
import tty

from omird_process import running

OMIRD, OMIR = (os.path.abspath(path) for path in sys.argv[1:3])
MEMORIES = 1500
PATIENCE = 120


class Line:
    """Two pseudo-terminals, and a thread that carries bytes between them."""

    def __init__(self, folder):
        self.ends, self.names = [], []
        for name in ("daemon", "terminal"):
            master, slave = pty.openpty()
            tty.setraw(slave)
            os.set_blocking(master, False)
            path = folder / name
            path.symlink_to(os.ttyname(slave))
            # The slave stays open here, so that a program that ends does not hang the line up.
            self.ends.append((master, slave))
            self.names.append(path)
        self.seen = bytearray()
        self.changed = threading.Condition()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        daemon, terminal = self.ends[0][0], self.ends[1][0]
        while True:
            ready, _, _ = select.select([daemon, terminal], [], [])
            for source in ready:
                data = os.read(source, 512)
                if source == daemon:
                    with self.changed:
                        self.seen += data
                        self.changed.notify_all()
                to, view = (terminal if source == daemon else daemon), memoryview(data)
                while view:
                    try:
                        view = view[os.write(to, view) :]
                    except BlockingIOError:
                        time.sleep(0.001)

    def type(self, keys):
        os.write(self.ends[0][0], keys)

    def until(self, text, patience=PATIENCE):
        """Waits until the daemon has said this; what came up to its end."""
        with self.changed:
            if not self.changed.wait_for(lambda: text in self.seen, patience):
                raise AssertionError(f"{text} did not come: ...{bytes(self.seen[-400:])}")
            at = self.seen.index(text) + len(text)
            said, self.seen[:at] = bytes(self.seen[:at]), b""
            return said

    def forget(self):
        with self.changed:
            self.seen.clear()


def served(folder, port):
    """A daemon with that port."""
    config = folder / "omird.toml"
    config.write_text(f'[[serial]]\nport = "{port}"\nbaud = 921600\naccess = "write"\ncpu_share = 1.0\n')
    return running(OMIRD, "--config", config, "--robot", "r2", "--data", folder / "data")


def omir(*args):
    ran = subprocess.run([OMIR, *map(str, args)], capture_output=True, text=True, timeout=PATIENCE)
    assert ran.returncode == 0, (args, ran.returncode, ran.stdout, ran.stderr)
    return ran.stdout


def resources(path):
    entries = json.loads(path.read_text())["entry"]
    return {f"{entry['resourceType']}/{entry['id']}": entry for entry in entries}


def memories(folder):
    document = {
        "resourceType": "Bundle",
        "omirVersion": "R1",
        "id": "some",
        "generatedAt": "2026-01-01T00:00:00Z",
        "source": "serial_check",
        "entry": [
            {
                "resourceType": "MemoryRecord",
                "id": f"m{n}",
                "createdAt": "2026-01-01T00:00:00Z",
                "content": f"saw küche {random.Random(n).randbytes(40).hex()}",
            }
            for n in range(MEMORIES)
        ],
    }
    path = folder / "some.omir"
    path.write_text(json.dumps(document))
    return path


def receive(line, folder, name, *args):
    """Types `sz`, and lets rz take what comes, as a terminal program does."""
    into = folder / name
    into.mkdir()
    line.forget()
    line.type(b"sz\r")
    line.until(b"**\x18B00")
    began = time.monotonic()
    end = line.ends[1][1]
    done = subprocess.run(["rz", *args], stdin=end, stdout=end, stderr=subprocess.PIPE, cwd=into, timeout=PATIENCE)
    assert done.returncode == 0, done
    said = line.until(b"r2> ")
    assert b"\r\nsent\r\n" in said, said[-200:]
    termios.tcflush(end, termios.TCIFLUSH)
    print(f"  {name}: {(into / 'r2.omir').stat().st_size} bytes in {time.monotonic() - began:.1f} s")
    return into / "r2.omir"


def check(path, expected):
    omir("validate", path)
    assert resources(path) == expected, "the file holds other memories"


def minicom(line, folder, expected):
    """A person at minicom, which starts rz by itself when it sees what `sz` says first."""
    home = folder / "minicom"
    home.mkdir()
    (home / ".minirc.dfl").write_text(
        f"pu port {line.names[1]}\npu baudrate 115200\npu rtscts No\npu xonxoff No\npu downdir {home}\n"
    )
    pid, screen = pty.fork()
    if pid == 0:
        environment = os.environ | {"HOME": str(home), "TERM": "vt100", "LANG": "C"}
        os.execvpe("minicom", ["minicom", "-o"], environment)
    os.set_blocking(screen, False)
    shown = bytearray()

    def until(text, patience=PATIENCE):
        end = time.monotonic() + patience
        while text not in shown:
            assert time.monotonic() < end, f"minicom does not show {text}: {bytes(shown[-600:])}"
            if select.select([screen], [], [], 0.2)[0]:
                shown.extend(os.read(screen, 4096))
        del shown[: shown.index(text) + len(text)]

    until(b"Welcome to minicom")
    time.sleep(1)
    os.write(screen, b"\rstatus\r")
    until(f"MemoryRecord {MEMORIES}".encode())
    os.write(screen, b"sz\r")
    until(b"any key")
    os.write(screen, b" ")
    # The console is back, and does what is typed next.
    os.write(screen, b"\rget MemoryRecord/m7\r")
    until(b'"id": "m7"')
    check(home / "r2.omir", expected)
    os.write(screen, b"\x01q")
    time.sleep(0.5)
    os.write(screen, b"\r")
    end = time.monotonic() + 20
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        assert time.monotonic() < end, "minicom does not leave"
        if select.select([screen], [], [], 0.1)[0]:
            try:
                os.read(screen, 4096)
            except OSError:
                pass
    os.close(screen)


def main():
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = pathlib.Path(name)
        line = Line(folder)
        with served(folder, line.names[0]):
            omir("push", "--port", line.names[1], "--baud", 921600, memories(folder))
            omir("pull", "--port", line.names[1], "--baud", 921600, "-o", folder / "pulled.omir")
            expected = resources(folder / "pulled.omir")
            assert len(expected) == MEMORIES

            check(receive(line, folder, "clean"), expected)
            check(receive(line, folder, "small buffer", "--bufsize", "2048", "--escape"), expected)

            # A file of that name is there already: rz does not take it.
            line.forget()
            line.type(b"sz\r")
            line.until(b"**\x18B00")
            end = line.ends[1][1]
            subprocess.run(["rz"], stdin=end, stdout=end, stderr=subprocess.PIPE, cwd=folder / "clean", timeout=PATIENCE)
            said = line.until(b"r2> ")
            assert b"does not want it" in said, said

            # Five CAN in the middle of it: the daemon ends, and so does who listens.
            into = folder / "cancelled"
            into.mkdir()
            line.type(b"sz\r")
            line.until(b"**\x18B00")
            rz = subprocess.Popen(["rz"], stdin=end, stdout=end, stderr=subprocess.DEVNULL, cwd=into)
            line.until(b'"entry"')
            line.type(b"\x18" * 5)
            line.until(b"\r\ncancelled\r\n")
            line.until(b"r2> ")
            rz.wait(timeout=PATIENCE)
            termios.tcflush(end, termios.TCIFLUSH)

            # Who hears nothing of a receiver asks for it to end.
            line.forget()
            line.type(b"sz\r")
            line.until(b"**\x18B00")
            line.type(b"\x03")
            line.until(b"cancelled\r\nr2> ")
            line.type(b"get MemoryRecord/m7\r")
            line.until(b'"id": "m7"')
            termios.tcflush(end, termios.TCIFLUSH)

            minicom(line, folder, expected)
    print("6 passed, 0 failed")


if __name__ == "__main__":
    main()
