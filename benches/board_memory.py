#!/usr/bin/env python3
"""Resident memory of the daemon on an emulated board: benches/board_memory.py OMIRD OMIR [--host DIR]

OMIRD and OMIR are programs for aarch64, as `.ci/boards build aarch64` makes them. A store of as many records is made
beside it by the programs of this machine (--host, target/release; a store is the same on every machine), or by those
under qemu-user where there are none. Then `qemu-system-aarch64 -M virt -cpu cortex-a72` starts Debian's kernel, and the
program on the store; what /proc says of it there is printed: at the ready line (the start just over), after some
recalls, the most it ever had (VmHWM), and how much of it the kernel gave as huge pages. Also the same without a store.

Needs to be root: mmdebstrap, qemu-system-aarch64 and, without --host, qemu-user-static.
"""

import argparse
import json
import math
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile

# The board: what /init prints is read from its serial port.
INIT = """#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox ip link set lo up
export PATH=/bin RUST_LOG=warn @ENVIRONMENT@
cd /
omird --robot board --data /data --listen tcp/127.0.0.1:7448 > /ready &
pid=$!
until /bin/busybox grep -q ^ready /ready; do /bin/busybox sleep 1; done
/bin/busybox sleep 5
values() { /bin/busybox sed -n 's/^\\(VmRSS\\|VmHWM\\|AnonHugePages\\):[ \\t]*\\([0-9]*\\) kB/\\1=\\2/p' /proc/$pid/$1; }
say() { echo "@ $1" $(values status) $(values smaps_rollup); }
say start
i=0
while [ $i -lt @RECALLS@ ]; do
  omir recall --robot board "w$((i * 37 % 400)) w$((i % 90))" > /dev/null || echo "@ failed"
  i=$((i + 1))
done
say recalls
/bin/busybox poweroff -f
"""
RECALLS = 20


def environment():
    """What the service is started with."""
    unit = pathlib.Path(__file__).resolve().parent.parent / "config/omird.service"
    lines = unit.read_text().splitlines()
    return " ".join(line.split("=", 1)[1] for line in lines if line.startswith("Environment="))


def words(rng):
    """Ranks by Zipf's law, s = 1, over 5000 words."""
    weights = [1 / rank for rank in range(1, 5001)]
    total = 0.0
    sums = [total := total + weight for weight in weights]
    names = [f"w{number}" for number in range(5000)]
    while True:
        yield from rng.choices(names, cum_weights=sums, k=10000)


def bundle(count, path):
    """Records like those of benches/src/records.rs: about 480 bytes of CBOR."""
    rng = random.Random(1)
    draw = words(rng)
    x = y = yaw = 0.0
    entities = [
        {"resourceType": "Entity", "id": f"thing-{n}", "name": f"thing {n}"} for n in range(64)
    ]
    entry = []
    for number in range(count):
        yaw += rng.gauss(0, 0.2)
        x, y = x + 0.3 * math.cos(yaw), y + 0.3 * math.sin(yaw)
        first, mentions = rng.randrange(64), rng.randrange(3)
        seconds = 1_767_225_600 + number * 3
        stamp = f"{{}}T{seconds % 86400 // 3600:02}:{seconds % 3600 // 60:02}:{seconds % 60:02}Z"
        day = (seconds - 1_767_225_600) // 86400
        record = {
            "resourceType": "MemoryRecord",
            "id": f"obs-{rng.getrandbits(64):016x}",
            "content": " ".join(next(draw) for _ in range(rng.randrange(8, 21))),
            "createdAt": stamp.format(f"2026-01-{day + 1:02}"),
            "eventTime": stamp.format(f"2026-01-{day + 1:02}"),
            "importance": round(min(1.0, max(0.0, rng.gauss(0.4, 0.2))), 2),
            "confidence": {"calibrated": round(rng.uniform(0.5, 1.0), 2)},
            "decay": {"halfLifeHours": 24.0 * rng.randrange(1, 15), "accessCount": 1},
            "extension": [{
                "url": "https://omir.io/spec/R1/extension/spatial-pose",
                "valueJson": {
                    "frame": "map", "position": [round(x, 3), round(y, 3), 0.0],
                    "orientation": [0.0, 0.0, math.sin(yaw / 2), math.cos(yaw / 2)],
                },
            }],
        }  # fmt: skip
        if mentions:
            record["entityRefs"] = [
                {"ref": f"Entity/thing-{(first + 7 * n) % 64}"} for n in range(mentions)
            ]
        entry.append(record)
    document = {"resourceType": "Bundle", "omirVersion": "R1"}
    document["entry"] = entities + entry
    path.write_text(json.dumps(document))


def fill(count, folder, omird, omir):
    """A data folder with so many records, after a clean stop."""
    with tempfile.TemporaryDirectory() as scratch:
        file = pathlib.Path(scratch) / "records.omir"
        bundle(count, file)
        at = ["--robot", "board"]
        endpoint = "tcp/127.0.0.1:17449"
        daemon = subprocess.Popen(
            [*omird, *at, "--data", folder, "--listen", endpoint], stdout=subprocess.PIPE
        )
        try:
            assert daemon.stdout.readline().startswith(b"ready")
            subprocess.run(
                [*omir, *at, "--connect", endpoint, "import", "--in-parts", file],
                check=True, stdout=subprocess.DEVNULL,
            )  # fmt: skip
            said = pathlib.Path(f"/proc/{daemon.pid}/status").read_text()
            print(f"{count} records, filled here:", *(
                line for line in said.splitlines() if line.startswith(("VmRSS", "VmHWM"))
            ))  # fmt: skip
        finally:
            daemon.send_signal(signal.SIGTERM)
            daemon.wait()


def board(system, omird, omir, store):
    """What the board printed of the program with `store`."""
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch) / "root"
        for folder in ["bin", "proc", "dev", "data", "lib", "tmp"]:
            (root / folder).mkdir(parents=True)
        (root / "init").write_text(
            INIT.replace("@RECALLS@", str(RECALLS))
            .replace("@ENVIRONMENT@", environment())
        )
        (root / "init").chmod(0o755)
        shutil.copy(system / "bin/busybox", root / "bin")
        shutil.copy(omird, root / "bin/omird")
        shutil.copy(omir, root / "bin/omir")
        libraries = [*system.glob("lib/aarch64-linux-gnu/*.so*"), *system.glob("lib/ld-linux-*")]
        for library in libraries:
            if library.name.split(".so")[0] in ("libc", "libm", "libgcc_s", "ld-linux-aarch64"):
                shutil.copy(library, root / "lib")
        if store:
            shutil.copytree(store, root / "data", dirs_exist_ok=True)
        archive = pathlib.Path(scratch) / "initramfs"
        with archive.open("wb") as out:
            names = subprocess.run(["find", "."], cwd=root, check=True, stdout=subprocess.PIPE)
            subprocess.run(
                ["cpio", "--quiet", "-o", "-H", "newc"],
                cwd=root, input=names.stdout, stdout=out, check=True,
            )  # fmt: skip
        kernel = next((system / "boot").glob("vmlinuz-*"))
        done = subprocess.run(
            ["qemu-system-aarch64", "-M", "virt", "-cpu", "cortex-a72", "-smp", "2", "-m", "1024",
             "-nographic", "-no-reboot", "-nic", "none", "-kernel", kernel, "-initrd", archive,
             "-append", "console=ttyAMA0 quiet panic=-1 rdinit=/init"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=1500, check=True,
        )  # fmt: skip
        said = [line for line in done.stdout.decode(errors="replace").splitlines() if "@ " in line]
        if len(said) != 2:
            sys.exit(f"the board said:\n{done.stdout.decode(errors='replace')[-3000:]}")
        return [line.strip() for line in said]


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("omird", type=pathlib.Path)
    options.add_argument("omir", type=pathlib.Path)
    options.add_argument("--host", type=pathlib.Path, help="omird and omir of this machine")
    options.add_argument("--records", type=int, nargs="+", default=[0, 10_000, 100_000])
    options.add_argument("--system", type=pathlib.Path, default="target/arm/board")
    given = options.parse_args()
    if not given.system.exists():
        subprocess.run(
            ["mmdebstrap", "--quiet", "--variant=extract", "--architectures=arm64",
             "--include=linux-image-arm64,busybox-static,libgcc-s1", "bookworm", given.system],
            check=True,
        )  # fmt: skip
    emulated = ["qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"]
    for count in given.records:
        with tempfile.TemporaryDirectory() as scratch:
            store = None
            if count:
                store = os.path.join(scratch, "data")
                if given.host:
                    fill(count, store, [given.host / "omird"], [given.host / "omir"])
                else:
                    fill(count, store, [*emulated, given.omird], [*emulated, given.omir])
            for line in board(given.system, given.omird, given.omir, store):
                print(f"{count} records, board: {line.removeprefix('@ ')} (kB)")
            sys.stdout.flush()


main()
