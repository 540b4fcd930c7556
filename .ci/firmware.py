#!/usr/bin/env python3
"""Builds the firmware example and runs it in an emulator: `.ci/arm.sh .ci/firmware.py check`.

check          clippy has nothing to say; the golden numbers are those of this machine, to the last bit; a life of
               many starts, cut at a different step of the flash each time and killed once, loses nothing; and
               record, decay, pose and encoding keep to the room they are to have; and golden proofs are verified by their
               key, and refused where a byte is changed
sizes          prints the table of sizes of docs/microcontroller.md
sizes --write  puts it there

Invariant 30 of ARCHITECTURE.md.
"""

import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIRMWARE = ROOT / "core-nostd" / "firmware"
DOCUMENT = ROOT / "docs" / "microcontroller.md"
BUILD = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "firmware"

# The machine that the emulator has for a target, and what the core's own is called.
MACHINES = {
    "thumbv7em-none-eabihf": ("mps2-an386", "Cortex-M4F"),
    "thumbv6m-none-eabi": ("microbit", "Cortex-M0"),
}
FLASH = 6 * 1024
# Each start is cut that many steps later than the one before it.
CUTS = range(0, 460, 13)
TIME = 1_780_141_325

# What is in the image beside the entry, and the features that put it there.
PARTS = [
    ("nothing but the start-up code", ""),
    ("retrievability, access, tier", "decay"),
    ("poses", "pose"),
    ("record, encoded", "encode"),
    ("record, encoded and decoded", "encode,read"),
    ("**record, decay, pose, encode**", "decay,pose,encode"),
    ("all of it, and the ring in flash", "decay,pose,encode,read,journal"),
    ("that, the link, and the hand-over", "decay,pose,encode,read,journal,handover"),
]
AIM = "decay,pose,encode"
AIM_FLASH, AIM_RAM = 24 * 1024, 4 * 1024
# Which workloads of `measure` are part of the aim.
AIM_WORKLOADS = ["retrievability", "access, and its tier", "poses composed", "record encoded"]
# What verifies has an allocator, and the RAM of a larger board.
VERIFIER = "thumbv7em-none-eabihf"
PROOFS = ROOT / "tests" / "golden_proofs"
MANIFESTO = PROOFS / "manifesto"
# The numbers of `CHECKS` in verify.rs.
OF_A_MEMORY, OF_MANIFESTO = 0, 1
# Bytes of a golden proof that are changed, one after the other.
CHANGED = 12
BEGIN, END = "<!-- sizes: .ci/firmware.py -->\n", "<!-- end of sizes -->\n"


def cargo(*words):
    subprocess.run(
        ["cargo", *words, "--locked", "--quiet", "--target-dir", BUILD], cwd=FIRMWARE, check=True
    )


def firmware(target, binary):
    return BUILD / target / "release" / binary


def command(target, binary, *words, uart=None):
    """One start of the board: counting instructions; or in real time, with its UART at that socket."""
    time = ["-icount", "shift=0"] if uart is None else []
    given = "".join(f",arg={word}" for word in ("fw", *words))
    return [
        "qemu-system-arm", "-M", MACHINES[target][0], "-nographic", "-nic", "none",
        "-monitor", "none", "-serial", f"unix:{uart}" if uart else "none", *time,
        "-semihosting-config", "enable=on,target=native" + given,
        "-kernel", str(firmware(target, binary)),
    ]  # fmt: skip


def start(target, binary, *words, cwd=None):
    done = subprocess.run(
        command(target, binary, *words), cwd=cwd, capture_output=True, text=True, timeout=300
    )
    if done.returncode != 0:
        sys.exit(f"{binary} on {target} {words}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def host(*words, told=None):
    # The example has no features of the board, and the profile of the machine it runs on.
    done = subprocess.run(
        ["cargo", "run", "--quiet", "--locked", "--target-dir", BUILD / "host", "--example", "host", "--", *words],
        cwd=FIRMWARE, input=told, text=True, stdout=subprocess.PIPE,
    )  # fmt: skip
    if done.returncode != 0:
        sys.exit(f"host {words}: {done.stdout}")
    return done.stdout


def lint():
    """Clippy over all of it: what is for this machine, and what is for the boards."""
    deny = ["--", "-D", "warnings"]
    subprocess.run(
        ["cargo", "clippy", "--quiet", "--locked", "--all-targets", "--target-dir", BUILD / "host", *deny],
        cwd=FIRMWARE, check=True,
    )  # fmt: skip
    if "RUSTC" in os.environ:
        # Clippy is part of one compiler, and reads no library of another.
        print("what is for the boards alone is left to a compiler with rustup's targets")
        return
    # Each by itself: with the allocator of `verify` among the features, the others would lack one.
    chosen = [(target, ["--features", "board", "--lib", "--bins"]) for target in MACHINES]
    for target, words in [*chosen, (VERIFIER, ["--features", "verify", "--bin", "verify"])]:
        words = [*words, "--target", target, "--target-dir", BUILD / "lint"]
        subprocess.run(["cargo", "clippy", "--quiet", "--locked", *words, *deny], cwd=FIRMWARE, check=True)


def check():
    lint()
    subprocess.run(
        ["cargo", "test", "--quiet", "--locked", "--lib", "--target-dir", BUILD / "host"], cwd=FIRMWARE, check=True
    )
    golden = host("golden")
    for target, (machine, core) in MACHINES.items():
        cargo("build", "--release", "--features", "board", "--bin", "node", "--target", target)
        if (seen := start(target, "node", "golden=1")) != golden:
            pairs = zip(golden.splitlines(), seen.splitlines())
            sys.exit(f"{target}: " + next((f"{a}, and there {b}" for a, b in pairs if a != b), "lines lack"))
        print(f"{core} ({machine}): {len(golden.splitlines())} golden numbers agree to the last bit")
        live(target)
        aim(target, image(target, AIM), measure(target))
    verifies()


def judged(folder, key, document, check):
    """The verdict of the emulated board on a document, and what it cost: stack and instructions."""
    case = key + document
    pathlib.Path(folder, "case.bin").write_bytes(case)
    verdict, cost = start(VERIFIER, "verify", f"bytes={len(case)}", f"check={check}", cwd=folder).splitlines()
    return json.loads(verdict), [int(number) for number in cost.split()[1:]]


def verifies():
    cargo("build", "--release", "--features", "verify", "--bin", "verify", "--target", VERIFIER)
    flash, ram = sections(firmware(VERIFIER, "verify"))
    print(f"{MACHINES[VERIFIER][1]}, verifying: {flash:,} bytes of flash, {ram:,} of RAM, its heap included")
    with tempfile.TemporaryDirectory() as folder:
        key = public_key(PROOFS / "device.pub")
        for file in sorted(PROOFS.glob("*.json")):
            proved = {"resource": json.loads(file.read_bytes())["resource"]}
            verify(folder, key, file, OF_A_MEMORY, proved)
        key, file = public_key(MANIFESTO / "signer.pub"), MANIFESTO / "signature.json"
        world = json.loads((MANIFESTO / "world.json").read_bytes())["worldId"]
        proved = {"method": "signature", "worldId": world, "publicKey": key.hex()}
        verify(folder, key, file, OF_MANIFESTO, proved)
        proof = json.loads(file.read_bytes())
        for fault, document in [
            ("evidence", {**proof, "verifiedAt": 1, "verifiedBy": {"actorId": "agent-1", "kind": "agent"}}),
            ("unknown-method", {**proof, "method": "custom-x"}),
            ("unreadable", {}),
        ]:
            verdict, _ = judged(folder, key, json.dumps(document).encode(), OF_MANIFESTO)
            if (verdict["valid"], verdict.get("fault")) != (False, fault):
                sys.exit(f"{fault}: {verdict}")


def public_key(file):
    return bytes.fromhex(file.read_text().strip())


def verify(folder, key, file, check, proved):
    """A golden proof is valid, with `proved` in its verdict, and refused when a bit or its key is another."""
    text = file.read_bytes()
    verdict, (stack, instructions) = judged(folder, key, text, check)
    if verdict != {**verdict, "valid": True, **proved}:
        sys.exit(f"{file.name}: {verdict}")
    print(f"    {file.name}: {len(text):,} bytes, valid in {instructions:,} instructions and {stack:,} of stack")
    for at in range(0, len(text), len(text) // CHANGED):
        changed = text[:at] + bytes([text[at] ^ 1 << at % 8]) + text[at + 1 :]
        if judged(folder, key, changed, check)[0]["valid"]:
            sys.exit(f"{file.name}: byte {at} is changed and nobody notices")
    if judged(folder, bytes([key[0] ^ 1]) + key[1:], text, check)[0].get("fault") != "other-key":
        sys.exit(f"{file.name}: another key, and nobody notices")


def live(target):
    with tempfile.TemporaryDirectory() as folder:
        # What an erase left that was cut short long ago.
        image = pathlib.Path(folder, "flash.img")
        image.write_bytes(bytes((at * 37 >> 3) & 0xFF for at in range(FLASH)))
        told = ""
        for cut in CUTS:
            told += start(target, "node", f"cut={cut}", "readings=12", cwd=folder)
        told += killed(target, folder)
        told += start(target, "node", "readings=12", cwd=folder)
        # Looks once more before it hands over.
        told += start(target, "node", "readings=0", cwd=folder)
        told += start(target, "node", f"time={TIME}", cwd=folder)
        print("   ", host("check", str(image), told=told).strip())


def killed(target, folder):
    """A start that ends with the emulator, wherever it is by the twentieth line."""
    words = command(target, "node", "readings=1000000")
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as run:
        told = "".join(run.stdout.readline() for _ in range(20))
        run.kill()
        # Whole lines only: what was said, was said.
        return told + "".join(line for line in run.stdout if line.endswith("\n"))


def sections(path):
    """Bytes of flash and of RAM that an ELF file takes: the sections that are loaded, by where they lie."""
    data = path.read_bytes()
    assert data[:6] == b"\x7fELF\x01\x01", "32 bits, little endian"
    (offset,), (size, count) = struct.unpack_from("<I", data, 32), struct.unpack_from("<HH", data, 46)
    flash = ram = 0
    for at in range(offset, offset + size * count, size):
        _, kind, flags, address, _, length = struct.unpack_from("<6I", data, at)
        if not flags & 2:  # SHF_ALLOC
            continue
        in_ram = address >= 0x2000_0000
        ram += length * in_ram
        # What is initialised lies in flash too; SHT_NOBITS (8) does not.
        flash += length * (kind != 8)
    return flash, ram


def image(target, features):
    """Flash and static RAM of these parts of the core."""
    chosen = ",".join(filter(None, ["board", features]))
    cargo("build", "--release", "--features", chosen, "--bin", "cost", "--target", target)
    return sections(firmware(target, "cost"))


def measure(target):
    """Bytes of stack and instructions, by deed."""
    cargo("build", "--release", "--features", "board", "--bin", "measure", "--target", target)
    workloads = {}
    for line in start(target, "measure").splitlines():
        if line.startswith("held "):
            _, name, held = line.split()
            workloads[f"({name}, held meanwhile)"] = int(held), None
            continue
        name, stack, instructions = line.rsplit(" ", 2)
        workloads[name.strip('"')] = int(stack), int(instructions)
    return workloads


def aim(target, size, workloads):
    flash, static = size
    ram = static + max(workloads[name][0] for name in AIM_WORKLOADS)
    print(f"    {flash:,} bytes of flash (aim: {AIM_FLASH:,}), {ram:,} of RAM (aim: {AIM_RAM:,})")
    if flash >= AIM_FLASH or ram >= AIM_RAM:
        sys.exit("record, decay, pose and encoding take more than they may")


def sizes():
    compiler = subprocess.run(
        [os.environ.get("RUSTC", "rustc"), "--version"], capture_output=True, text=True, check=True
    ).stdout.split()[1]
    taken = {(target, features): image(target, features) for target in MACHINES for _, features in PARTS}
    measured = {target: measure(target) for target in MACHINES}

    cores = [core for _, core in MACHINES.values()]
    lines = [
        f"Made by `.ci/arm.sh .ci/firmware.py sizes --write`, with rustc {compiler}, `opt-level = \"z\"` and LTO.",
        "",
        "| in the image | " + " | ".join(f"{core}: flash | static RAM" for core in cores) + " |",
        "|---|" + "---:|" * (2 * len(cores)),
    ]
    for name, features in PARTS:
        cells = [f"{number:,}" for target in MACHINES for number in taken[target, features]]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "| once | " + " | ".join(f"{core}: stack | instructions" for core in cores) + " |",
        "|---|" + "---:|" * (2 * len(cores)),
    ]
    for name in next(iter(measured.values())):
        numbers = [number for target in MACHINES for number in measured[target][name]]
        cells = ["" if number is None else f"{number:,}" for number in numbers]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    table = "\n".join(lines) + "\n"
    print(table)
    return table


def main():
    match sys.argv[1:]:
        case ["check"]:
            check()
        case ["sizes"]:
            sizes()
        case ["sizes", "--write"]:
            table = sizes()
            before, rest = DOCUMENT.read_text().split(BEGIN)
            DOCUMENT.write_text(before + BEGIN + table + END + rest.split(END)[1])
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
