"""Runs the verifier of WebAssembly in wasmtime: each golden proof is valid, of memories and of Manifesto Memory, and each
byte of it counts.

The module imports nothing, so nothing but the document and the key can decide. Prints its size and the instructions of
one verification. Needs wasmtime.
Usage: wasm_check.py MODULE
"""

import json
import pathlib
import sys

import wasmtime

PROOFS = pathlib.Path(__file__).resolve().parent.parent / "tests/golden_proofs"
MANIFESTO = PROOFS / "manifesto"
# Enough for a verification, and an end for whatever does not end.
FUEL = 1_000_000_000


class Verifier:
    def __init__(self, path):
        config = wasmtime.Config()
        config.consume_fuel = True
        engine = wasmtime.Engine(config)
        module = wasmtime.Module.from_file(engine, path)
        assert not module.imports, [one.name for one in module.imports]
        self.store = wasmtime.Store(engine)
        self.store.set_fuel(FUEL)
        self.exports = wasmtime.Instance(self.store, module, []).exports(self.store)

    def check(self, name, document, key):
        """The verdict on a document, and what it cost."""
        exports, store, given = self.exports, self.store, key + document
        store.set_fuel(FUEL)
        at = exports["input"](store, len(given))
        assert at, "no room"
        exports["memory"].write(store, given, at)
        is_valid = exports[name](store)
        begin, length = exports["output"](store), exports["output_length"](store)
        verdict = json.loads(bytes(exports["memory"].read(store, begin, begin + length)))
        assert verdict["valid"] == bool(is_valid), verdict
        return verdict, FUEL - store.get_fuel()


def public_key(file):
    return bytes.fromhex(file.read_text().strip())


def check_document(verifier, name, file, key, proved):
    """A document is valid, with what `proved` says of it in its verdict, and refused when a bit of it is another."""
    text = file.read_bytes()
    verdict, spent = verifier.check(name, text, key)
    assert verdict == {**verdict, "valid": True, **proved(json.loads(text))}, f"{file.name}: {verdict}"
    other = bytes([key[0] ^ 1]) + key[1:]
    assert verifier.check(name, text, other)[0]["fault"] == "other-key"
    # One bit of every byte, another one each; white space that stays white space says nothing.
    for at in range(len(text)):
        turned = bytearray(text)
        turned[at] ^= 1 << (at % 8)
        verdict, _ = verifier.check(name, bytes(turned), key)
        assert not verdict["valid"], f"{file.name}: byte {at}"
    for bad in (b"", b"{}", text[: len(text) // 2], b"[" * 100_000):
        assert not verifier.check(name, bad, key)[0]["valid"]
    print(f"{file.name}: {len(text):,} bytes, valid in {spent:,} instructions of WebAssembly; each changed byte is refused")


def check_refusals(verifier, file, key):
    """What an Authority must not take for a proof is refused, and named."""
    proof = json.loads(file.read_bytes())
    for document, fault in [
        ({**proof, "verifiedAt": 1, "verifiedBy": {"actorId": "agent-1", "kind": "agent"}}, "evidence"),
        ({**proof, "method": "custom-x"}, "unknown-method"),
        ({"method": "none"}, "nothing-verified"),
        ({**proof, "reason": "trust me"}, "unreadable"),
        ({**proof, "proof": {**proof["proof"], "worldId": "w-2"}}, "bad-signature"),
    ]:
        verdict, _ = verifier.check("verify_manifesto_proof", json.dumps(document).encode(), key)
        assert (verdict["valid"], verdict["fault"]) == (False, fault), (document, verdict)
        assert fault != "evidence" or "extract the proof" in verdict["message"], verdict


def main():
    module = sys.argv[1]
    verifier = Verifier(module)
    assert not verifier.exports["input"](verifier.store, 1 << 30), "a bound"
    assert not verifier.exports["verify_proof"](verifier.store), "nothing is no proof"
    key = public_key(PROOFS / "device.pub")
    size = pathlib.Path(module).stat().st_size
    files = sorted(PROOFS.glob("*.json"))
    assert files, f"no proofs in {PROOFS}"
    for file in files:
        check_document(verifier, "verify_proof", file, key, lambda proof: {"resource": proof["resource"]})
    key, file = public_key(MANIFESTO / "signer.pub"), MANIFESTO / "signature.json"
    world = json.loads((MANIFESTO / "world.json").read_bytes())["worldId"]
    proved = {"method": "signature", "worldId": world, "publicKey": key.hex()}
    check_document(verifier, "verify_manifesto_proof", file, key, lambda _: proved)
    check_refusals(verifier, file, key)
    print(f"the module has {size:,} bytes")


main()
