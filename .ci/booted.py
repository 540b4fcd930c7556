#!/usr/bin/env python3
"""Tries a package in a Debian that has booted, as root: .ci/booted.py ARCHITECTURE PACKAGE [OMIR]

In an emulated machine, systemd in charge: the service as its unit file confines
it, a USB serial adapter that comes, goes and comes again, the power cut while memories are acknowledged, a start with
the clock in 1970, an upgrade and a purge. The other end of the adapter's cable is on this machine, and there the omir
of the package is run, or OMIR where this machine cannot run that: qemu-user opens no terminal. .ci/boards calls this,
and installs what it needs.
"""

import atexit
import datetime
import json
import os
import pathlib
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import time

ARCHITECTURE, PACKAGE = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
OMIR = sys.argv[3:4]
SUITE = os.environ.get("SUITE", "bookworm")
MIRROR = os.environ.get("MIRROR", "http://deb.debian.org/debian")
# What Debian's kernel of the architecture is called, and the machine that runs it.
KERNEL, MACHINE = {
    "amd64": ("amd64", ["qemu-system-x86_64", "-M", "q35", "-cpu", "max"]),
    "arm64": ("arm64", ["qemu-system-aarch64", "-M", "virt", "-cpu", "cortex-a72"]),
    # This kernel has no addresses above 4 GiB, where the machine has its PCI by default.
    "armhf": ("armmp", ["qemu-system-arm", "-M", "virt,highmem=off", "-cpu", "cortex-a15"]),
}[ARCHITECTURE]
# Seconds that anything may take: an emulated kernel alone needs a minute. Not KVM: where the machine that this runs on
# is a virtual one it may be offered and hang.
PATIENCE = 900
CUTS = 3
TOKEN = "the word at the cable"

# A root shell on a port of its own, where nothing else is printed.
SHELL = """[Unit]
Description=The trial's shell
[Service]
ExecStart=/bin/sh -c 'exec sh <>/dev/virtio-ports/trial >&0 2>&0'
Restart=always
[Install]
WantedBy=multi-user.target
"""
# FTDI's numbers: what QEMU's usb-serial says it is.
RULE = 'SUBSYSTEM=="tty", ATTRS{idVendor}=="0403", ENV{OMIRD_PORT}="console"\n'
SERIAL = f'\n[[serial]]\nport = "/dev/omird-console"\ntoken = "{TOKEN}"\n'


def fail(what):
    sys.exit(f".ci/booted.py: {what}")


def until(what, holds):
    """What `holds()` returns, as soon as that is something."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := holds():
            return found
        time.sleep(0.2)
    fail(f"not within {PATIENCE} s: {what}")


def run(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode != 0:
        fail(f"{shlex.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def install(folder):
    """A Debian with systemd and the package lying in /srv, not installed; returns kernel, initrd and disk."""
    root, disk = folder / "root", folder / "disk"
    include = f"systemd-sysv,udev,libgcc-s1,init-system-helpers,initramfs-tools,linux-image-{KERNEL}"
    run(
        "mmdebstrap", "--quiet", "--variant=minbase", f"--architectures={ARCHITECTURE}", f"--include={include}",
        SUITE, root, f"deb {MIRROR} {SUITE} main",
    )  # fmt: skip
    (root / "etc/systemd/system/trial.service").write_text(SHELL)
    wants = root / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True, exist_ok=True)
    (wants / "trial.service").symlink_to("/etc/systemd/system/trial.service")
    (root / "etc/fstab").write_text("/dev/vda / ext4 defaults 0 1\n")
    (root / "etc/hostname").write_text("board\n")
    (root / "etc/udev/rules.d/69-omird-ports.rules").write_text(RULE)
    (root / "srv/omird.deb").write_bytes(PACKAGE.read_bytes())
    run("mke2fs", "-q", "-t", "ext4", "-d", root, disk, "3G")
    [kernel] = (root / "boot").glob("vmlinuz-*")
    [initrd] = (root / "boot").glob("initrd.img-*")
    return kernel, initrd, disk


class Line:
    """A socket of the emulator's, read line by line."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.rest = b""

    def send(self, text):
        self.socket.sendall(text.encode())

    def line(self, patience=PATIENCE):
        """The next line, or None if none comes."""
        self.socket.settimeout(patience)
        while b"\n" not in self.rest:
            try:
                more = self.socket.recv(65536)
            except TimeoutError:
                return None
            if not more:
                raise EOFError
            self.rest += more
        line, self.rest = self.rest.split(b"\n", 1)
        return line.decode(errors="replace").rstrip("\r")


class Board:
    """The machine from one start to the next, with a shell in it."""

    def __init__(self, folder, installed, clock="utc"):
        kernel, initrd, disk = installed
        console = "ttyS0" if ARCHITECTURE == "amd64" else "ttyAMA0"
        shell, control = folder / "shell", folder / "control"
        for path in (shell, control):
            path.unlink(missing_ok=True)
        self.process = subprocess.Popen(
            MACHINE + [
                "-smp", "2", "-m", "1024", "-display", "none", "-no-reboot", "-nic", "none", "-rtc", f"base={clock}",
                "-kernel", kernel, "-initrd", initrd,
                "-append", f"root=/dev/vda rw console={console} panic=-1",
                "-drive", f"file={disk},format=raw,if=virtio,cache=writeback",
                "-device", "virtio-serial-pci",
                "-chardev", f"socket,id=shell,path={shell},server=on,wait=off",
                "-device", "virtserialport,chardev=shell,name=trial",
                "-device", "qemu-xhci,id=usb",
                "-serial", f"file:{folder}/console.log", "-qmp", f"unix:{control},server=on,wait=off",
            ],
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        atexit.register(self.process.kill)
        until("the emulator listens", lambda: shell.exists() and control.exists() or self.process.poll())
        if self.process.poll() is not None:
            fail(f"the emulator ended with {self.process.returncode}")
        self.control, self.shell = Line(control), Line(shell)
        self.control.line()
        self.ask("qmp_capabilities")
        # What is sent before the shell listens is lost, or answered late: the answer to one of these is waited for.
        until("the shell answers", self.awake)
        self.do("systemctl is-system-running --wait || true")

    def awake(self):
        mark = f"awake {time.monotonic_ns()}"
        self.shell.send(f"echo {mark}\n")
        while line := self.shell.line(5):
            if line == mark:
                return True
        return False

    def ask(self, command, **arguments):
        """Of the emulator, in its own protocol (QMP)."""
        self.control.send(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        while line := self.control.line():
            answer = json.loads(line)
            if "error" in answer:
                fail(f"{command}: {answer['error']}")
            if "return" in answer:
                return answer["return"]
        fail(f"no answer to {command}")

    def lines(self, command):
        """What the command prints, line by line; the last is how it ended."""
        self.shell.send(f"{{ {command}\n}} 2>&1 </dev/null; echo \"@@$?\"\n")
        while (line := self.shell.line()) is not None:
            yield line
            if re.fullmatch(r"@@\d+", line):
                return
        fail(f"no end of: {command}")

    def do(self, command, expect=""):
        *printed, ended = self.lines(command)
        printed = "\n".join(printed)
        if ended != "@@0" or expect not in printed:
            journal = "\n".join(self.lines("journalctl -b -u omird --no-pager | tail -n 40"))
            fail(f"{command}: {ended}, expected {expect!r}\n{printed}\n{journal}")
        return printed

    def holds(self, command):
        return [*self.lines(command)][-1] == "@@0"

    def serves(self):
        """Waits until the service answers."""
        until("omird answers", lambda: self.holds("omir status >/dev/null"))

    def plug(self):
        """An adapter with a cable, the other end of which is the device that is returned."""
        end = self.ask("chardev-add", id="cable", backend={"type": "pty", "data": {}})["pty"]
        plug = {"driver": "usb-serial", "bus": "usb.0", "chardev": "cable", "id": "adapter"}
        # There without anybody at the other end, as an adapter is.
        self.ask("device_add", **plug, **{"always-plugged": True})
        return end

    def unplug(self):
        self.ask("device_del", id="adapter")
        until("the adapter is gone", lambda: self.holds("! test -e /dev/omird-console"))
        self.ask("chardev-remove", id="cable")

    def cut(self):
        """What the kernel in there did not write is lost, as when a battery is pulled."""
        self.process.kill()
        self.process.wait()


def memories(document):
    entries = json.loads(document)["entry"]
    return {e["content"]: e for e in entries if e["resourceType"] == "MemoryRecord"}


def pulled(omir, end, folder):
    """What omir on this machine gets over the cable."""
    path = folder / "pulled.omir"
    path.unlink(missing_ok=True)
    run(*omir, "pull", "--port", end, "-o", path, timeout=PATIENCE)
    return memories(path.read_text())


def step(what):
    print(f"-- {what}", flush=True)


def exported(board):
    """Every memory of the board by its content."""
    board.do("omir export -o /tmp/all.omir && omir validate /tmp/all.omir")
    return memories(board.do("cat /tmp/all.omir"))


def trial(folder):
    step("install a Debian")
    installed = install(folder)
    run("dpkg-deb", "-x", PACKAGE, folder / "package")
    omir = OMIR or [folder / "package/usr/bin/omir"]

    step("the service")
    board = Board(folder, installed)
    board.do("dpkg -i /srv/omird.deb")
    board.serves()
    board.do("systemctl is-active omird", "active")
    board.do("systemctl is-enabled omird", "enabled")
    board.do("omir remember 'door 3 sticks' --at 4.2,-1.0,0", "MemoryRecord/")
    print(board.do("systemd-analyze security --no-pager omird | tail -n 1"))

    step("a USB adapter that comes and goes")
    board.do(f"printf %s {shlex.quote(SERIAL)} >> /etc/omird/omird.toml && systemctl restart omird")
    board.serves()
    end = board.plug()
    until("the rule names it", lambda: board.holds("test -e /dev/omird-console"))
    board.do("stat -L -c '%a %G' /dev/omird-console", "660 dialout")
    if "door 3 sticks" not in pulled(omir, end, folder):
        fail("the memory did not come over the cable")
    board.unplug()
    board.do("omir remember 'the cable was pulled'", "MemoryRecord/")
    end = board.plug()
    if "the cable was pulled" not in pulled(omir, end, folder):
        fail("the memory of the time without a cable did not come")

    kept = {"door 3 sticks", "the cable was pulled"}
    for cut in range(CUTS):
        step(f"power cut {cut + 1} of {CUTS}")
        # Each number that is printed was acknowledged before.
        notes = f'i=0; while omir remember "note {cut} $i" >/dev/null; do echo $i; i=$((i + 1)); done'
        for number, line in enumerate(board.lines(notes)):
            kept.add(f"note {cut} {line}")
            if number == 25:
                break
        board.cut()
        # The last start has no battery for its clock.
        board = Board(folder, installed, "1970-01-01T00:05:00" if cut + 1 == CUTS else "utc")
        board.serves()
        if lost := kept - exported(board).keys():
            fail(f"lost: {sorted(lost)}")

    step("a clock that is set later")
    board.do("omir remember 'before the clock was set'", "MemoryRecord/")
    print("the clock said", board.do("date -u"))
    # As timesyncd does when it has the time.
    board.do(f"date -s @{time.time()} && mkdir -p /run/systemd/timesync && touch /run/systemd/timesync/synchronized")

    def dated():
        created = datetime.datetime.fromisoformat(exported(board)["before the clock was set"]["createdAt"])
        return abs(created.timestamp() - time.time()) < PATIENCE

    until("a memory of before is dated", dated)

    step("an upgrade, and a purge")
    board.do("dpkg -i /srv/omird.deb")
    board.serves()
    if lost := kept - exported(board).keys():
        fail(f"lost over the upgrade: {sorted(lost)}")
    board.do("dpkg --purge omird", "memories in /var/lib/omird are kept")
    board.do("! systemctl is-active omird && ! pidof omird && ls /var/lib/omird/")
    board.cut()


if os.getuid() != 0:
    fail("needs to be root")
with tempfile.TemporaryDirectory() as scratch:
    # What a power cut left of processes ends with this one.
    trial(pathlib.Path(scratch))
print(f"{PACKAGE.name}: booted, used, unplugged, cut and purged in {SUITE} for {ARCHITECTURE}")
