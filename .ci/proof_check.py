"""Checks proofs by docs/proofs.md alone, with nothing of omird: leaf, path, seal and Ed25519 are computed here.

Each golden proof must hold; each change of it must be refused here and by `omir verify`, and both must agree on proofs
that `omir prove` makes of the golden folders now. Needs cbor2 and cryptography.
Usage: proof_check.py OMIR
"""

import base64
import copy
import hashlib
import json
import pathlib
import random
import subprocess
import sys
import tarfile
import tempfile

import cbor2
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

TESTS = pathlib.Path(__file__).resolve().parent.parent / "tests"
PROOFS = TESTS / "golden_proofs"


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def root_of(leaf, index, size, path):
    """RFC 9162, 2.1.3.2; None if the path is not one of this place."""
    if index >= size:
        return None
    at, last, root = index, size - 1, leaf
    for beside in path:
        if last == 0:
            return None
        if at & 1 or at == last:
            root = sha256(b"\x01", beside, root)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            root = sha256(b"\x01", root, beside)
        at, last = at >> 1, last >> 1
    return root if last == 0 else None


def verify(proof, key):
    """Why a proof does not hold; None if it does."""
    if proof["format"] != "omird-proof-1" or proof["seal"]["format"] != "omird-signature-3":
        return "format"
    seal, entry = proof["seal"], base64.b64decode(proof["entry"]["cbor"], validate=True)
    if bytes.fromhex(seal["publicKey"]) != key:
        return "key"
    message = b"omird segment 3\n" + seal["segment"].to_bytes(8, "big") + seal["bytes"].to_bytes(8, "big")
    message += bytes.fromhex(seal["sha256"]) + seal["entries"].to_bytes(8, "big") + bytes.fromhex(seal["entriesRoot"])
    message += bytes.fromhex(seal["previous"]) + bytes.fromhex(seal.get("last", ""))
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(bytes.fromhex(seal["signature"]), message)
    except InvalidSignature:
        return "signature"
    path = [bytes.fromhex(text) for text in proof["path"]]
    root = root_of(sha256(b"\x00", entry), proof["entry"]["index"], seal["entries"], path)
    if root != bytes.fromhex(seal["entriesRoot"]):
        return "path"
    if "resource" in proof and cbor2.loads(entry) != proof["resource"]:
        return "resource"
    return None


def says(omir, proof, key):
    """The verdict of `omir verify`, and its exit code."""
    words = [omir, "verify", "-", "--key", key.hex(), "--json"]
    done = subprocess.run(words, input=json.dumps(proof), capture_output=True, text=True, timeout=60)
    return json.loads(done.stdout), done.returncode


def changes(proof, random):
    """The proof with one thing changed, in every member."""

    def digit(text):
        at = random.randrange(len(text))
        return text[:at] + random.choice([c for c in "0123456789abcdef" if c != text[at]]) + text[at + 1 :]

    def changed(change):
        other = copy.deepcopy(proof)
        change(other)
        return other

    for name in ("sha256", "entriesRoot", "previous", "publicKey", "signature", *(["last"] if "last" in proof["seal"] else [])):
        yield name, changed(lambda p: p["seal"].update({name: digit(p["seal"][name])}))
    for name in ("segment", "bytes", "entries"):
        yield name, changed(lambda p: p["seal"].update({name: p["seal"][name] + 1}))
    for at in range(len(proof["path"])):
        yield f"path {at}", changed(lambda p: p["path"].__setitem__(at, digit(p["path"][at])))
    yield "a shorter path", changed(lambda p: p["path"].pop())
    yield "a longer path", changed(lambda p: p["path"].append("00" * 32))
    yield "index", changed(lambda p: p["entry"].update(index=p["entry"]["index"] ^ 1))
    entry = bytearray(base64.b64decode(proof["entry"]["cbor"]))
    entry[random.randrange(len(entry))] ^= 1 << random.randrange(8)
    yield "entry", changed(lambda p: p["entry"].update(cbor=base64.b64encode(entry).decode()))
    yield "resource", changed(lambda p: p["resource"].update(id="another"))


def check(omir, name, proof, key, random):
    fault = verify(proof, key)
    assert fault is None, f"{name}: {fault}"
    verdict, code = says(omir, proof, key)
    assert code == 0 and verdict["valid"] and verdict["resource"] == proof["resource"], f"{name}: {verdict}"
    count = 0
    for what, changed in changes(proof, random):
        assert verify(changed, key) is not None, f"{name}: {what} is not noticed here"
        verdict, code = says(omir, changed, key)
        assert code in (1, 2) and verdict["valid"] is False, f"{name}: {what} is not noticed by omir: {verdict}"
        count += 1
    return count


def main():
    omir, seed = sys.argv[1], random.randrange(1 << 32)
    chosen, refused = random.Random(seed), 0
    print(f"seed {seed}", flush=True)
    golden = sorted(PROOFS.glob("*.json"))
    assert golden, f"no proofs in {PROOFS}"
    key = bytes.fromhex((PROOFS / "device.pub").read_text().strip())
    for file in golden:
        refused += check(omir, file.name, json.loads(file.read_text()), key, chosen)
    made = 0
    for archive in sorted((TESTS / "golden_folders/03-fewer-facts").glob("*.tar.gz")):
        if archive.name.split(".")[0] not in ("segments", "compacted", "producers"):
            continue
        with tempfile.TemporaryDirectory() as folder:
            with tarfile.open(archive) as tar:
                tar.extractall(folder, filter="data")
            listing = subprocess.run([omir, "store", "ls", folder, "--json"], capture_output=True, text=True, check=True)
            key = bytes.fromhex(pathlib.Path(folder, "keys/device.pub").read_text().strip())
            for row in map(json.loads, listing.stdout.splitlines()):
                words = [omir, "prove", row["ref"], "--data", folder]
                done = subprocess.run(words, capture_output=True, text=True, timeout=60)
                if done.returncode == 1 and "not sealed yet" in done.stderr:
                    continue
                assert done.returncode == 0, f"{archive.name}: {row['ref']}: {done.stderr}"
                proof = json.loads(done.stdout)
                assert (fault := verify(proof, key)) is None, f"{archive.name}: {row['ref']}: {fault}"
                made += 1
    assert made > 20, made
    print(f"{len(golden)} golden proofs hold, {refused} changes are refused here and there, {made} new proofs hold")


main()
