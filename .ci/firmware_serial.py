"""The firmware example hands its memory to a real daemon: an emulated UART, a relay that spoils what it
carries, a pseudo-terminal, and omird with a `[[serial]]` port.

The node lives, is cut, and lives on. It hands over through noise, is killed in the middle of that and started
again, then the daemon is killed. What the node says at last it has must be in the daemon, the same and rightly
dated, each once. What comes later waits until the daemon's clock can be trusted. A node that calls and is not
answered goes on to sense; and a second node, of the same image and the same readings, loses nothing to the first.

Invariant 31 of ARCHITECTURE.md.
Usage: .ci/arm.sh PYTHON .ci/firmware_serial.py OMIRD OMIR     (PYTHON with cbor2)
"""

import contextlib
import datetime
import json
import os
import pathlib
import random
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
import tty

import cbor2

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import omird_process  # noqa: E402
from firmware import FLASH, MACHINES, cargo, command, start  # noqa: E402

# As a cable of 115200 baud: bytes a second, and what becomes of them.
PACE = 11520
FLIP, LOSE = 1e-4, 5e-4
# Of dates, in seconds: for what an answer takes on a busy machine.
TOLERANCE = 3
PATIENCE = 120
# How long the last node waits for the time, seconds.
WAITS = 6


class Relay:
    """Between the emulator's socket and the daemon's terminal."""

    def __init__(self, folder):
        self.socket_name, self.port = folder / "uart", folder / "port"
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.socket_name))
        self.listener.listen()
        # Our end of the terminal; the other one is held open, so that it does not hang up.
        self.master, self.held = os.openpty()
        tty.setraw(self.held)
        self.port.symlink_to(os.ttyname(self.held))
        self.random = random.Random(7)
        self.noisy = True
        # Bytes of the node until something happens, and what.
        self.fuse = None
        threading.Thread(target=self.run, daemon=True).start()

    def after(self, count, deed):
        """Does this when the node has sent so many bytes more."""
        self.fuse = (count, deed)

    def spoil(self, data):
        if not self.noisy:
            return data
        bits = (sum(1 << bit for bit in range(8) if self.random.random() < FLIP) for _ in data)
        return bytes(byte ^ flipped for byte, flipped in zip(data, bits) if self.random.random() >= LOSE)

    def run(self):
        node = None
        while True:
            there = [self.listener, self.master] + ([node] if node else [])
            for ready in select.select(there, [], [])[0]:
                if ready is self.listener:
                    node = self.listener.accept()[0]
                elif ready is self.master:
                    data = os.read(self.master, 64)
                    with contextlib.suppress(OSError):
                        # What nobody listens to is lost.
                        if node:
                            node.sendall(self.spoil(data))
                else:
                    try:
                        data = node.recv(64)
                    except OSError:
                        data = b""
                    if not data:
                        node = None
                        break
                    os.write(self.master, self.spoil(data))
                    self.burn(len(data))
                time.sleep(64 / PACE)

    def burn(self, count):
        if self.fuse:
            left, deed = self.fuse
            self.fuse = (left - count, deed) if left > count else None
            if self.fuse is None:
                deed()


class Daemon:
    def __init__(self, omird, omir, folder, port):
        self.config = folder / "omird.toml"
        self.endpoint = f"tcp/127.0.0.1:{omird_process.free_port()}"
        # While this is there, the clock can be trusted.
        self.synchronised = folder / "synchronised"
        self.synchronised.touch()
        self.config.write_text(
            f'robot = "rover"\n[clock]\nsynchronised_file = "{self.synchronised}"\n'
            f'[[serial]]\nport = "{port}"\naccess = "write"\n'
        )
        self.omird, self.omir_program, self.data = omird, omir, folder / "data"
        self.start()

    def start(self):
        words = [self.omird, "--config", self.config, "--data", self.data, "--listen", self.endpoint]
        self.process = omird_process.start(*words, stderr=subprocess.DEVNULL)

    def kill_and_start(self):
        self.process.kill()
        self.process.wait()
        self.start()

    def stop(self):
        omird_process.stop(self.process)

    def everything(self):
        """Its records, by their ids; asking for them so leaves them as they are."""
        file = self.data.parent / "everything.omir"
        self.omir("export", "--output", str(file))
        records = json.loads(file.read_text())["entry"]
        names = [record["id"] for record in records]
        assert len(set(names)) == len(names), names
        return dict(zip(names, records))

    def omir(self, *words):
        done = subprocess.run(
            [self.omir_program, *words, "--json", "--robot", "rover", "--connect", self.endpoint],
            capture_output=True, text=True, timeout=PATIENCE,
        )  # fmt: skip
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout


class Node:
    """One start of the board, with its UART."""

    def __init__(self, target, folder, relay, *words):
        self.process = subprocess.Popen(
            command(target, "node", *words, uart=relay.socket_name),
            cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.lines, self.began = [], None
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            if line.startswith("up "):
                boot, micros = map(int, line.split()[1:])
                self.began = boot, time.time() - micros / 1e6
            if line.endswith("\n"):
                self.lines.append(line.split())

    def wait(self):
        try:
            code = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            sys.exit(f"the node still tries after {PATIENCE} s: {self.lines[-3:]}")
        self.reader.join()
        return code

    def until(self, line):
        """Until it said that."""
        end = time.monotonic() + PATIENCE
        while line not in self.lines:
            assert time.monotonic() < end and self.process.poll() is None, (line, self.lines[-3:])
            time.sleep(0.1)

    def finish(self):
        assert self.wait() == 0, (self.lines, self.process.stderr.read())
        return self.lines


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def same(told, held, path=""):
    """Whether all that was told is held."""
    if isinstance(told, dict):
        assert isinstance(held, dict) and told.keys() <= held.keys(), (path, told, held)
        return all(same(told[key], held[key], f"{path}/{key}") for key in told)
    if isinstance(told, list):
        assert len(told) == len(held), (path, told, held)
        return all(same(*pair, f"{path}/{at}") for at, pair in enumerate(zip(told, held)))
    if path.endswith(("createdAt", "lastAccess")):
        told, held = seconds(told), seconds(held)
    assert told == held, (path, told, held)
    return True


class Story:
    """What the node said over all its starts at the UART."""

    def __init__(self):
        self.names, self.used, self.handed, self.starts = {}, set(), {}, {}

    def add(self, node):
        """A start is over."""
        self.starts[node.began[0]] = node.began[1]
        for what, number, *rest in node.lines:
            if what in ("held", "kept"):
                self.names[number] = rest[0]
            elif what == "used" and len(self.starts) > 1:
                # There may be two copies by then, and what is done to this one is not told.
                self.used.add(self.names[number])
            elif what == "memory":
                memory = cbor2.loads(bytes.fromhex(rest[0]))
                self.handed.setdefault(memory["id"], memory)

    def check(self, daemon, node):
        """What it said at last is in the daemon, the same and dated right; and nothing that it never had."""
        there = {name: held for name, held in daemon.everything().items() if name.startswith(f"{node}-")}
        assert self.handed.keys() <= there.keys() <= set(self.names.values()), (self.names, there.keys())
        for name, memory in self.handed.items():
            same({key: memory[key] for key in memory if key != "decay" or name not in self.used}, there[name])
            assert there[name].get("version", 1) == 1, there[name]
            _, _, boot, uptime = name.split("-")
            # A start that nobody told the time is dated to the beginning of the next one that was.
            known = min(start for start in self.starts if start >= int(boot))
            expected = self.starts[known] + (int(uptime) if known == int(boot) else 0)
            off = seconds(memory["createdAt"]) - expected
            assert -TOLERANCE < off < 1 + TOLERANCE, (name, off)


def run(target, omird, omir):
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = pathlib.Path(name)
        pathlib.Path(folder, "flash.img").write_bytes(bytes(at * 89 & 0xFF for at in range(FLASH)))
        relay = Relay(folder)
        daemon = Daemon(omird, omir, folder, relay.port)
        stack.callback(lambda: daemon.process.kill())

        # Starts that learn no time, the first of them cut.
        start(target, "node", "cut=900", "readings=40", cwd=folder)
        start(target, "node", "readings=14", cwd=folder)

        def node(*words):
            one = Node(target, folder, relay, *words)
            stack.callback(lambda: one.process.kill())
            return one

        story = Story()
        # In the middle of the first message, and behind it.
        for turn, count in enumerate((1500, 4200)):
            one = node("readings=4", f"serial={turn + 1}")
            relay.after(count, one.process.kill)
            assert one.wait() != 0, "it was killed"
            story.add(one)

        one = node("readings=0", "serial=3")
        relay.after(700, daemon.kill_and_start)
        one.finish()
        story.add(one)
        story.check(daemon, "n7")
        count = len(story.handed)

        # What comes later goes alone, and waits for the time.
        relay.noisy = False
        daemon.synchronised.unlink()
        told = threading.Timer(WAITS, daemon.synchronised.touch)
        told.start()
        one = node("readings=9", "serial=4")
        handed = [int(word) for line in one.finish() if line[0] == "handed" for word in line[1:]]
        story.add(one)
        assert not told.is_alive(), "nobody knew the time"
        story.check(daemon, "n7")
        new = len(story.handed) - count
        assert handed == [new, 0, 0, 0] and new > 0, (handed, new)
        print(f"    {count} memories through noise, kills and cuts, then {new} more")

        # Nobody is at the other end, and the node goes on; then somebody is.
        daemon.stop()
        one = node("readings=0", "serial=5", "more=5")
        one.until(["sensed", "0"])
        daemon.start()
        one.finish()
        story.add(one)
        story.check(daemon, "n7")

        # Its first start senses what the first start of the other one did.
        other = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        pathlib.Path(other, "flash.img").write_bytes(bytes(FLASH))
        one = Node(target, other, relay, "node=8", "readings=14", "serial=6")
        stack.callback(lambda: one.process.kill())
        handed = [int(word) for line in one.finish() if line[0] == "handed" for word in line[1:]]
        story = Story()
        story.add(one)
        story.check(daemon, "n8")
        names = {name.removeprefix("n8") for name in story.handed}
        both = len(names & {name.removeprefix("n7") for name in daemon.everything()})
        assert handed == [len(names), 0, 0, 0] and both > 0, (handed, both)
        print(f"    {len(names)} of a second node, {both} of them by names of the first but for its own")

        # Last: who asks so uses what is found.
        found = json.loads(daemon.omir("recall", "ran into something", "--limit", "3"))["hits"]
        assert found and all("-b-" in hit["resource"]["id"] for hit in found), found
        daemon.stop()


def main(omird, omir):
    for target, (machine, core) in MACHINES.items():
        print(f"{core} ({machine})")
        cargo("build", "--release", "--features", "board", "--bin", "node", "--target", target)
        run(target, omird, omir)


if __name__ == "__main__":
    main(*sys.argv[1:])
