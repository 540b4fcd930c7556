"""Holds Manifesto Memory over HTTP against a client that shares no code with omird: its own canonical JSON, its own Merkle
tree, and the Ed25519 of `cryptography`.

The tests are numbered as in the protocol's list of conformance tests.

Usage: manifesto_check.py OMIRD OMIR
"""

import concurrent.futures
import copy
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile
import urllib.parse

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from omird_process import facts, request, start, stop

W1 = {"worldId": "w-1", "schemaHash": "s1", "snapshotHash": "n1", "createdAt": 1700000000000, "createdBy": None}
HASH = "3aa4a34e5ef6bc200ffb490ec4ec2648e260fde94118a6fbd0af66705eef6bc2"
LEAF = "122adc06ed1a65e1021582a0d19e5ba16131ae15af2fc30223815b08347dad20"
AGENT = {"actorId": "agent-1", "kind": "agent"}


def number(value):
    """A number as ECMAScript prints it. Python's shortest digits are the same; where the point stands is not."""
    if isinstance(value, int):
        assert int(float(value)) == value, value
        value = float(value)
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, exponent = f"{abs(value)!r}", 0
    if "e" in mantissa:
        mantissa, exponent = mantissa.split("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    if len(digits) <= point <= 21:
        text = digits + "0" * (point - len(digits))
    elif 0 < point <= 21:
        text = digits[:point] + "." + digits[point:]
    elif -6 < point <= 0:
        text = "0." + "0" * -point + digits
    else:
        rest = "." + digits[1:] if digits[1:] else ""
        text = f"{digits[0]}{rest}e{'+' if point > 0 else '-'}{abs(point - 1)}"
    return sign + text


def canonical(value):
    """RFC 8785."""
    if value is None or isinstance(value, (bool, str)):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, (int, float)):
        return number(value)
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    names = sorted(value, key=lambda name: name.encode("utf-16-be"))
    return "{" + ",".join(canonical(name) + ":" + canonical(value[name]) for name in names) + "}"


def stripped(world):
    world = copy.deepcopy(world)
    for name in ("contentHash", "merkleRoot"):
        world.get("metadata", {}).pop(name, None)
    return world


def sha256(data):
    return hashlib.sha256(data).digest()


def world_hash(world):
    return sha256(canonical(stripped(world)).encode())


def leaves(world):
    world = stripped(world)
    names = sorted(world, key=lambda name: name.encode("utf-16-be"))
    return [sha256(b"\0" + canonical([name, world[name]]).encode()) for name in names]


def root(hashes):
    """RFC 9162, 2.1.1."""
    if len(hashes) < 2:
        return hashes[0] if hashes else sha256(b"")
    split = 1
    while split * 2 < len(hashes):
        split *= 2
    return sha256(b"\1" + root(hashes[:split]) + root(hashes[split:]))


def climb(path):
    at = bytes.fromhex(path["leafHash"])
    for sibling in path["siblings"]:
        beside = bytes.fromhex(sibling["hash"])
        at = sha256(b"\1" + (beside + at if sibling["position"] == "left" else at + beside))
    return at


def is_signed(proof, world_id):
    data = proof["proof"]
    message = b"omird manifesto proof 1\n" + len(world_id.encode()).to_bytes(4, "big") + world_id.encode()
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(data["publicKey"]))
        key.verify(bytes.fromhex(data["signature"]), message + bytes.fromhex(data["hash"]))
    except InvalidSignature:
        return False
    return data["worldId"] == world_id


class Robot:
    """A daemon, and those who ask it."""

    def __init__(self, omird, folder, *words):
        self.omird, self.data, self.words = omird, pathlib.Path(folder, "data"), words
        self.start()
        self.owner = pathlib.Path(self.data, "keys", "local.token").read_text().strip()
        self.tokens = {"owner": self.owner}

    def start(self):
        told = []
        self.daemon = start(
            self.omird, "--robot", "rover", "--data", str(self.data), "--http", "127.0.0.1:0",
            "--listen", "tcp/127.0.0.1:0", *self.words, told=told,
        )
        self.url = f"http://{facts(told[0])['http']}"

    def kill(self):
        self.daemon.kill()
        self.daemon.wait()

    def add(self, who, **grant):
        status, body = self.ask("owner", "POST", "/access/v1/tokens", {"name": who, "rate": 10000, **grant})
        assert status in (200, 201), (status, body)
        self.tokens[who] = body["token"]

    def raw(self, who, verb, path, body=None, headers=None):
        return request(self.url + path, verb, body, self.tokens.get(who, who), headers)

    def ask(self, who, verb, path, body=None):
        status, _, answer = self.raw(who, verb, path, body)
        return status, json.loads(answer) if answer else None

    def actor(self, verb, path, body=None):
        return self.ask("actor", verb, "/manifesto/v1" + path, body)

    def authority(self, verb, path, body=None):
        return self.ask("authority", verb, "/manifesto/v1" + path, body)

    def get(self, world_id):
        status, answer = self.actor("GET", "/worlds/" + urllib.parse.quote(world_id, safe=""))
        assert status == 200, (status, answer)
        return answer["world"]

    def verifies(self, proof):
        status, answer = self.authority("POST", "/verify-proof", {"proof": proof})
        assert status == 200, (status, answer)
        return answer["valid"]

    def select(self, **more):
        request = {"query": "dock", "atWorldId": "w-9", "selector": AGENT, **more}
        return self.actor("POST", "/select", request)


def same(found, expected):
    assert found == expected, f"\n found    {found}\n expected {expected}"


def names_in(value):
    if isinstance(value, dict):
        yield from value
        for member in value.values():
            yield from names_in(member)
    elif isinstance(value, list):
        for member in value:
            yield from names_in(member)


def storing(robot):
    # 1
    status, stored = robot.actor("POST", "/worlds", {"world": W1})
    same((status, stored["stored"], stored["hash"], stored["durable"]), (201, "added", HASH, True))
    same(stored["hash"], world_hash(W1).hex())
    # 6
    robot.kill()
    robot.start()
    same(robot.get("w-1"), W1)
    # 2
    same([robot.actor("POST", "/worlds", {"world": W1})[1]["stored"]], ["unchanged"])
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        again = list(pool.map(lambda _: robot.actor("POST", "/worlds", {"world": W1}), range(20)))
    same({(status, answer["stored"]) for status, answer in again}, {(200, "unchanged")})
    name = "mm.w." + sha256(b"w-1").hex()[:32]
    same(name, "mm.w.0065abd009780926778f5e00851728b3")
    status, headers, _ = robot.raw("owner", "GET", f"/omir/v1/memory/Episode/{name}")
    same((status, headers["ETag"]), (200, '"1"'))
    twenty = {"worldId": "twenty", "note": "at once"}
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        once = list(pool.map(lambda _: robot.actor("POST", "/worlds", {"world": twenty})[0], range(20)))
    same((once.count(201), once.count(200)), (1, 19))
    # 3
    status, answer = robot.actor("POST", "/worlds", {"world": {**W1, "snapshotHash": "n2"}})
    same((status, answer["code"]), (409, "CONFLICT"))
    same(robot.get("w-1")["snapshotHash"], "n1")
    # 4
    same(robot.get("w-1"), W1)
    # 5
    same(robot.actor("GET", "/worlds/nope"), (200, {"world": None}))
    same(robot.actor("GET", "/worlds/nope/exists"), (200, {"exists": False}))
    same(robot.actor("GET", "/worlds/w-1/exists"), (200, {"exists": True}))
    # 7, M-11
    for world_id in ("../a b/%ü", "MemoryRecord/x", "x" * 512):
        world = {"worldId": world_id, "n": 0.1}
        status, stored = robot.actor("POST", "/worlds", {"world": world})
        same((status, stored["hash"]), (201, world_hash(world).hex()))
        same(robot.get(world_id), world)
    same(robot.actor("POST", "/worlds", {"world": {"worldId": "x" * 513}})[0], 400)
    same(robot.actor("GET", "/worlds/" + "x" * 513)[0], 400)
    # 37
    status, answer = robot.actor("POST", "/worlds", {"world": {"worldId": "big", "n": 9007199254740993}})
    same((status, answer["code"], answer["path"]), (400, "INVALID_WORLD", "/world/n"))
    # Numbers of every kind have the same canonical form here and there.
    numbers = [0, -0.0, 1.0, 1e21, 1e-7, 5e-324, 1.7976931348623157e308, 123456789.125, -1e-6, 2**53, 1e23, 333333333.3333333]
    texts = ["\u20ac", "\U0001f600", "\ufb33", "\u0000\u001f\"\\/", "\u2028"]
    world = {"worldId": "canon", "numbers": numbers, **{text: text for text in texts}}
    status, stored = robot.actor("POST", "/worlds", {"world": world})
    same((status, stored["hash"]), (201, world_hash(world).hex()))


def proving(robot):
    def prove(world=W1, memory="w-1", **more):
        status, answer = robot.actor("POST", "/prove", {"memory": {"worldId": memory}, "world": world, **more})
        assert status == 200, (status, answer)
        return answer

    # 8
    same(prove(method="existence"), {"valid": True, "proof": {"method": "existence"}})
    # 9
    found = prove(method="hash")
    same((found["valid"], found["proof"]["proof"]["computedHash"]), (False, HASH))
    assert "expectedHash" not in found["proof"]["proof"]
    # 10
    stated = {**W1, "metadata": {}}
    stated["metadata"] = {"contentHash": world_hash(stated).hex(), "merkleRoot": root(leaves(stated)).hex()}
    assert stated["metadata"]["contentHash"].startswith("26099f")
    found = prove(stated, method="hash")
    data = found["proof"]["proof"]
    same((found["valid"], data["computedHash"]), (True, data["expectedHash"]))
    same(data["computedHash"], world_hash(stated).hex())
    assert robot.verifies(found["proof"])
    # 11
    found = prove(method="merkle", member="snapshotHash")
    data = found["proof"]["proof"]
    same((data["computedRoot"], data["pathProof"]["leafHash"]), (root(leaves(W1)).hex(), LEAF))
    same([sibling["position"] for sibling in data["pathProof"]["siblings"]], ["left", "left", "right"])
    same(climb(data["pathProof"]).hex(), data["computedRoot"])
    for member in stated:
        found = prove(stated, method="merkle", member=member)
        data = found["proof"]["proof"]
        same((found["valid"], climb(data["pathProof"])), (True, root(leaves(stated))))
        same(data["pathProof"]["leafHash"], leaves(stated)[sorted(stated).index(member)].hex())
        assert robot.verifies(found["proof"])
    # 12
    for method in ("existence", "hash", "merkle", "signature", "none"):
        assert not prove(memory="w-2", method=method)["valid"]
    # 14, CR-19, CR-20
    for method in ("existence", "hash", "merkle", "signature", "none", "custom-x"):
        assert not {"verifiedAt", "verifiedBy"} & set(names_in(prove(stated, method=method)))
    # 15
    proof = prove()["proof"]
    assert robot.verifies(proof) and is_signed(proof, "w-1")
    same(proof["proof"]["hash"], HASH)
    for name in ("hash", "signature", "publicKey", "worldId"):
        text = proof["proof"][name]
        for at in {0, len(text) // 2, len(text) - 1}:
            other = text[:at] + ("0" if text[at] != "0" else "1") + text[at + 1:]
            assert not robot.verifies({**proof, "proof": {**proof["proof"], name: other}}), (name, at)
    # 16
    for tried, valid in [
        ({"method": "existence"}, True), ({"method": "none"}, False), ({"method": "custom-x"}, False),
        ({"method": "merkle", "proof": {"computedRoot": "a"}}, False),
    ]:
        same(robot.verifies(tried), valid)
    # 17, FP-17
    status, answer = robot.actor("POST", "/verify-proof", {"proof": {**proof, "verifiedAt": 1}})
    same((status, answer["code"]), (400, "INVALID_REQUEST"))
    # 18
    status, answer = robot.actor("POST", "/verify-proof", {"proof": {"method": ""}})
    same((status, answer["path"]), (400, "/proof/method"))
    status, answer = robot.authority("GET", "/keys")
    same((status, answer), (200, {"keys": [{"publicKey": proof["proof"]["publicKey"], "current": True}]}))
    return proof


def timeless(omird, folder):
    # 13: the same proof, byte for byte, with the clock a year ahead.
    config = pathlib.Path(folder, "omird.toml")
    config.write_text('[clock]\nsource = "simulated"\n')
    robot = Robot(omird, pathlib.Path(folder, "simulated"), "--config", str(config))
    try:
        robot.add("actor", scopes=["manifesto:actor"])
        asked = {"memory": {"worldId": "w-1"}, "world": W1}
        answers = []
        for time in ("2026-06-01T00:00:00Z", "2027-06-01T00:00:00Z"):
            status, answer = robot.ask("owner", "PUT", "/omir/v1/clock", time)
            assert status in (200, 204), (status, answer)
            answers.append(robot.raw("actor", "POST", "/manifesto/v1/prove", asked)[2])
        same(answers[0], answers[1])
    finally:
        robot.kill()


def selecting(robot):
    for n, note in [(1, "the dock by the window"), (2, "dock"), (3, "somewhere is a dock")]:
        robot.actor("POST", "/worlds", {"world": {"worldId": f"dock-{n}", "createdAt": n * 1000, "note": note}})
    # 19, M-6, M-9
    status, result = robot.select()
    assert status == 200 and len(result["selected"]) == 3, (status, result)
    for memory in result["selected"]:
        evidence = memory["evidence"]
        assert memory["reason"] and 0 <= memory["confidence"] <= 1 and memory["verified"] is True
        same((evidence["method"], evidence["verifiedBy"]), ("signature", AGENT))
        assert isinstance(evidence["verifiedAt"], int) and 0 < evidence["verifiedAt"] <= result["selectedAt"]
        assert is_signed(evidence, memory["ref"]["worldId"])
        same(evidence["proof"]["hash"], world_hash(robot.get(memory["ref"]["worldId"])).hex())
    # 20
    wrong = {"worldId": "wrong", "note": "dock dock dock dock", "metadata": {"contentHash": "x"}}
    robot.actor("POST", "/worlds", {"world": wrong})
    status, found = robot.select(constraints={"maxResults": 1, "requireVerified": True})
    same((status, [one["verified"] for one in found["selected"]]), (200, [True]))
    # 21
    same(robot.select(constraints={"maxResults": 0})[1]["selected"], [])
    same([robot.select(constraints={"maxResults": most})[0] for most in (-1, 1.5)], [400, 400])
    # 22
    same(robot.select(constraints={"minConfidence": 1.1})[0], 400)
    same(robot.select(query="")[0], 400)
    # 23
    ids = lambda answer: sorted(memory["ref"]["worldId"] for memory in answer[1]["selected"])
    same(ids(robot.select(constraints={"timeRange": {"after": 3000}})), [])
    same(ids(robot.select(constraints={"timeRange": {"after": 2999}})), ["dock-3"])
    # 24
    assert "dock-1" not in ids(robot.select(atWorldId="dock-1"))
    # 25
    same(robot.select(selector={"actorId": "other", "kind": "agent"})[0], 403)
    return result


def letting_in(robot):
    # 26, M-4
    for verb, path, body in [
        ("POST", "/select", {}), ("POST", "/prove", {}), ("GET", "/worlds/w-1", None), ("POST", "/worlds", {"world": W1}),
    ]:
        status, answer = robot.authority(verb, path, body)
        same((status, answer["code"]), (403, "UNAUTHORIZED"))
    same(robot.actor("POST", "/authority/evaluate", {"proposal": {}})[0], 403)
    same(robot.ask("owner", "POST", "/manifesto/v1/authority/evaluate", {"proposal": {}})[0], 403)
    status, _ = robot.ask("owner", "POST", "/access/v1/tokens", {"name": "both", "scopes": ["manifesto:actor", "manifesto:authority"]})
    same(status, 400)
    # 27
    for who in (None, "no-token-of-ours"):
        status, headers, body = robot.raw(who, "GET", "/manifesto/v1/worlds/w-1")
        same((status, headers["WWW-Authenticate"], json.loads(body)["code"]), (401, "Bearer", "UNAUTHENTICATED"))
    status, headers, body = robot.raw(None, "GET", "/manifesto/v1/health", headers={"X-Request-ID": "r-1"})
    same((status, json.loads(body), headers["X-Request-ID"]), (200, {"status": "ok"}, "r-1"))
    same(headers["Cache-Control"], "no-store")
    status, headers, body = robot.raw("actor", "POST", "/manifesto/v1/select", b"{}", {"Content-Type": "text/plain"})
    same((status, json.loads(body)["code"]), (415, "UNSUPPORTED_MEDIA_TYPE"))
    status, headers, body = robot.raw("actor", "DELETE", "/manifesto/v1/worlds/w-1")
    same((status, json.loads(body)["code"], headers["Allow"]), (405, "METHOD_NOT_ALLOWED", "GET,HEAD"))
    robot.add("slow", scopes=["manifesto:actor"], rate=1)
    statuses = [robot.raw("slow", "GET", "/manifesto/v1/keys") for _ in range(3)]
    assert any(status == 429 and int(headers["Retry-After"]) >= 1 for status, headers, _ in statuses), statuses


def tracing(robot, result):
    request = {"query": "dock", "atWorldId": "w-9", "selector": AGENT}
    # 28
    status, trace = robot.actor("POST", "/trace", {"request": request, "result": result})
    same((status, trace), (200, {**request, **result}))
    same(robot.actor("POST", "/trace", {"request": request, "result": result})[1], trace)
    # 29, M-2
    proposal = {"proposalId": "p1", "trace": {"summary": "s", "context": {"x": 1}}}
    status, attached = robot.actor("POST", "/trace/attach", {"proposal": proposal, "trace": trace})
    same((status, attached), (200, {"proposal": {"proposalId": "p1", "trace": {"summary": "s", "context": {"x": 1, "memory": trace}}}}))
    proposal = attached["proposal"]
    same(robot.actor("POST", "/trace/attach", {"proposal": proposal, "trace": trace})[0], 409)
    # 30
    broken = {**trace, "selectedAt": 0, "selected": [{"ref": {"worldId": "w"}, "reason": "", "confidence": 1.5, "verified": True}]}
    status, answer = robot.authority("POST", "/trace/validate", {"trace": broken})
    same((status, answer["valid"], len(answer["errors"])), (200, False, 3))
    same(sum("selected[0]" in error for error in answer["errors"]), 2)
    # 31
    same(robot.actor("POST", "/trace/validate", {"trace": {**trace, "selected": []}})[1], {"valid": True, "errors": []})
    # 32, M-12
    judge = lambda proposal, **policy: robot.authority("POST", "/authority/evaluate", {"proposal": proposal, "policy": policy})[1]
    judged = judge(proposal)
    assert judged["present"] and judged["valid"] and judged["accept"], judged
    same([(one["valid"], one["bound"]) for one in judged["proofs"]], [(True, True)] * 3)
    assert judge(proposal, highRisk=True)["accept"]
    # 33
    moved = copy.deepcopy(proposal)
    selected = moved["trace"]["context"]["memory"]["selected"]
    selected[1]["evidence"] = selected[0]["evidence"]
    judged = judge(moved)
    same((judged["proofs"][1]["valid"], judged["proofs"][1]["bound"], judged["accept"]), (True, False, False))
    # 34
    same(judge({"proposalId": "p2"})["accept"], False)
    same(judge({"proposalId": "p2"}, requireTrace=False)["accept"], True)
    # 35
    weak = copy.deepcopy(proposal)
    weak["trace"]["context"]["memory"]["selected"][0]["evidence"] = {"method": "existence", "verifiedAt": 1, "verifiedBy": AGENT}
    same(judge(weak, highRisk=True)["accept"], False)
    status, recorded = robot.actor("POST", "/trace/attach", {"proposal": {}, "trace": trace, "record": True})
    assert status == 200 and recorded["recorded"].startswith("Episode/mm.t."), recorded


def forgetting(robot, omir, proof, folder):
    # 36
    name = "Episode/mm.w." + sha256(b"w-1").hex()[:32]
    status, answer = robot.ask("owner", "POST", "/omir/v1/forget", {"ref": name})
    assert status == 200, answer
    same(robot.get("w-1"), None)
    same(robot.actor("GET", "/worlds/w-1/exists")[1], {"exists": False})
    assert robot.verifies(proof)
    # 38
    status, bundle = robot.ask("owner", "POST", "/omir/v1/export", {})
    same(status, 200)
    [held] = [
        one["valueJson"]
        for entry in bundle["entry"]
        for one in entry.get("extension", [])
        if one["url"] == "urn:omird:ext:manifesto-world" and one["valueJson"]["worldId"] == "canon"
    ]
    same(held["world"], robot.get("canon"))
    same(held["hash"], world_hash(held["world"]).hex())
    file = pathlib.Path(folder, "store.omir")
    file.write_text(json.dumps(bundle))
    subprocess.run([omir, "validate", "--level", "strict", str(file)], check=True, stdout=subprocess.DEVNULL)


def main(omird, omir):
    assert canonical({"\ufb33": 1e21, "\U0001f600": [0.1, 100]}) == '{"\U0001f600":[0.1,100],"\ufb33":1e+21}'
    with tempfile.TemporaryDirectory() as folder:
        robot = Robot(omird, folder)
        try:
            robot.add("actor", scopes=["manifesto:actor"], agents=["agent-1"])
            robot.add("authority", scopes=["manifesto:authority"])
            storing(robot)
            proof = proving(robot)
            result = selecting(robot)
            letting_in(robot)
            tracing(robot, result)
            forgetting(robot, omir, proof, folder)
        except BaseException:
            robot.kill()
            raise
        stop(robot.daemon)
        timeless(omird, folder)
    print("Manifesto Memory: 38 conformance tests hold")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
