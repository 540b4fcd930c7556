"""Holds experience and hints against their contract, from outside: the conformance tests T1 to T26 of the reference, over HTTP,
and `record` and `hints` over Zenoh.

Every body of `record` and `hints` is checked against the schema files that the daemon publishes. `T25` sends for the seconds
that LOAD_SECONDS names. By default these are ten more than the minute of its promise, so that answers which are kept for a
minute grow old meanwhile.

Usage: experience_check.py OMIRD [TEST ...]
"""

import datetime
import hashlib
import json
import os
import pathlib
import sys
import tempfile
import threading
import time

import jsonschema
import zenoh

import omird_process

NOW = datetime.datetime.now(datetime.timezone.utc)
YESTERDAY = (NOW - datetime.timedelta(days=1)).strftime("%Y-%m-%d")
LOAD_SECONDS = int(os.environ.get("LOAD_SECONDS", "70"))
BASE = "/api/v0"
FINISHED = f"{YESTERDAY}T10:15:30Z"
RECORD = {
    "request_id": "r1",
    "task_id": "t-1",
    "title": "Dock at station 2",
    "intent": "Dock the robot",
    "nodes_used": [
        {"type": "tool", "ref": "nav2", "outcome": "success", "latency_ms": 100},
        {"type": "database", "ref": "map_db", "outcome": "failure"},
    ],
    "result": {"summary": "docked", "success": True},
    "timestamps": {"started_at": f"{YESTERDAY}T10:00:00Z", "finished_at": FINISHED},
    "context": {"domain": "general"},
}
HINTS = {"request_id": "h1", "query_type": "intent", "intent": "dock robot", "deadline_ms": 2000}


class Answer:
    def __init__(self, status, headers, text):
        self.status, self.headers, self.text = status, headers, text
        self.body = json.loads(text) if text else None

    def __repr__(self):
        return f"{self.status} {self.text[:600]!r}"


class Robot(omird_process.Robot):
    """A daemon, by default with the clock of the machine, and tokens for it."""

    def __init__(self, omird, folder, config=""):
        super().__init__(omird, folder, config)
        self.names = 0
        self.admin = pathlib.Path(self.data, "keys", "local.token").read_text().strip()
        self.token = self.new_token()
        self.schemas = {}
        for name in ("experience_record", "hint_request", "experience_response", "hints_response"):
            found = self.ask("GET", f"{BASE}/schemas/{name}.v0", token=None)
            assert found.status == 200, found
            self.schemas[name] = jsonschema.Draft7Validator(
                found.body, format_checker=jsonschema.Draft7Validator.FORMAT_CHECKER
            )

    def new_token(self, scopes=("experience:read", "experience:write"), rate=100000, hour=1000000, tenant=None):
        self.names += 1
        body = {"name": f"key{self.names}", "scopes": list(scopes)}
        body |= {"rate": rate} if rate else {}
        body |= {"perHour": hour} if hour else {}
        body |= {"tenant": tenant} if tenant else {}
        made = self.ask("POST", "/access/v1/tokens", body, token=self.admin)
        assert made.status in (200, 201), made
        return made.body["token"]

    def ask(self, verb, path, body=None, token="own", headers=None, raw=None):
        headers = dict(headers or {})
        token = self.token if token == "own" else token
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if body is not None:
            raw = json.dumps(body).encode()
        if raw is not None:
            headers.setdefault("Content-Type", "application/json")
        return Answer(*self.fetch(verb, path, raw, headers))

    def valid(self, name, answer):
        faults = [fault.message for fault in self.schemas[name].iter_errors(answer.body)]
        assert not faults, (faults, answer)
        return answer

    def record(self, body=RECORD, query="", **options):
        answer = self.ask("POST", f"{BASE}/record{query}", body, **options)
        return self.valid("experience_response", answer) if "request_id" in (answer.body or {}) else answer

    def hints(self, body=HINTS, query="", **options):
        answer = self.ask("POST", f"{BASE}/hints{query}", body, **options)
        return self.valid("hints_response", answer) if "request_id" in (answer.body or {}) else answer

    def task(self, name, **options):
        return self.ask("GET", f"{BASE}/experiences/{name}", **options)


def changed(value, path, member):
    """The value with a member at a path of names and numbers; without it for `...`."""
    value = json.loads(json.dumps(value))
    at = value
    for step in path[:-1]:
        at = at[step]
    if member is ...:
        del at[path[-1]]
    else:
        at[path[-1]] = member
    return value


def another(task, **members):
    return RECORD | {"task_id": task, "request_id": f"r-{task}"} | members


def hint(answer, ref):
    return next(hint for hint in answer.body["hints"] if hint["ref"] == ref)


def rejected(answer, status, code):
    assert answer.status == status, answer
    body = answer.body
    assert body["status"] == "rejected" and body["error"]["code"] == code and "metadata" not in body, answer
    return answer


def no_hints(answer, status, code):
    assert answer.status == status and answer.body["hints"] == [], answer
    assert answer.body["error"]["code"] == code, answer
    return answer


def t1(robot):
    answer = robot.record()
    assert answer.status == 200 and answer.body["status"] == "recorded", answer
    assert answer.headers["X-Request-ID"] == "r1" and answer.headers["Cache-Control"] == "no-store"
    expected = "exp_" + hashlib.sha256(b"default\0t-1").hexdigest()[:12]
    metadata = answer.body["metadata"]
    assert metadata["experience_id"] == expected == "exp_672fd682598d", answer
    assert {"indexed_patterns", "related_experiences", "storage_location"} <= set(metadata)
    robot.kill()
    robot.begin()
    assert robot.task("t-1").status == 200
    robot.first = answer


def t2(robot):
    again = robot.record()
    assert again.status == 200 and again.body == robot.first.body, again
    conflict = rejected(robot.record(RECORD | {"request_id": "r2"}), 409, "DUPLICATE_TASK")
    assert conflict.body["error"]["details"]["experience_id"] == "exp_672fd682598d"
    failed = changed(another("t-2"), ["result", "success"], False)
    assert robot.record(another("t-2")).status == 200
    updated = robot.record(failed, "?on_duplicate=update")
    assert updated.status == 200 and updated.body["status"] == "updated", updated
    assert robot.task("t-2").body["result"]["success"] is False


def t3(robot):
    for title in (..., ""):
        answer = rejected(robot.record(changed(another("t-3"), ["title"], title)), 400, "INVALID_RECORD")
        assert answer.body["request_id"] == "r-t-3" and answer.body["error"]["details"]["path"] == "/title"


def t4(robot):
    for path in (["x"], ["nodes_used", 0, "x"], ["context", "x"]):
        rejected(robot.record(changed(another("t-4"), path, 1)), 400, "INVALID_RECORD")
    artifacts = [{"type": "data", "content": "c", "metadata": {"x": {"y": [1]}}}]
    answer = robot.record(changed(another("t-4"), ["result", "artifacts"], artifacts))
    assert answer.status == 200, answer


def t5(robot):
    for path, member in (
        (["nodes_used", 0, "type"], "pattern"),
        (["nodes_used", 0, "outcome"], "ok"),
        (["result", "validation"], {"quality_score": 1.01}),
        (["nodes_used", 0, "latency_ms"], -1),
        (["nodes_used", 0, "latency_ms"], 1.5),
        (["result", "success"], "true"),
    ):
        rejected(robot.record(changed(another("t-5"), path, member)), 400, "INVALID_RECORD")


def t6(robot):
    for path, member in (("finished_at", ...), ("finished_at", "2025-09-06 10:00"), ("duration_ms", -1)):
        rejected(robot.record(changed(another("t-6"), ["timestamps", path], member)), 400, "INVALID_RECORD")
    turned = {"started_at": FINISHED, "finished_at": f"{YESTERDAY}T10:00:00Z"}
    assert robot.record(another("t-6", timestamps=turned)).status == 200


def t7(robot):
    for raw in (b"[]", b"not JSON"):
        answer = robot.valid("experience_response", robot.ask("POST", f"{BASE}/record", raw=raw))
        rejected(answer, 400, "INVALID_RECORD")
        assert answer.body["request_id"] == "" and answer.body["task_id"] == "", answer
        assert answer.headers["X-Request-ID"]
    named = robot.ask("POST", f"{BASE}/record", raw=b"[", headers={"X-Request-ID": "mine"})
    assert named.headers["X-Request-ID"] == "mine", named.headers
    large = robot.ask("POST", f"{BASE}/record", raw=b" " * (2 << 20))
    assert (large.status, large.body["code"]) == (413, "TOO_LARGE"), large
    text = robot.ask("POST", f"{BASE}/record", raw=b"{}", headers={"Content-Type": "text/plain"})
    assert (text.status, text.body["code"]) == (415, "UNSUPPORTED_MEDIA_TYPE"), text
    other = robot.ask("PUT", f"{BASE}/record", RECORD)
    assert (other.status, other.body["code"], other.headers["Allow"]) == (405, "METHOD_NOT_ALLOWED", "POST"), other
    assert robot.ask("POST", "/api/v1/record", RECORD).status == 404


def t8(robot):
    for token in (None, "omird_wrong"):
        answer = robot.record(another("t-8"), token=token)
        assert answer.status == 401 and answer.headers["WWW-Authenticate"] == "Bearer", answer
    reading = robot.new_token(["experience:read"])
    assert robot.record(another("t-8"), token=reading).status == 403
    assert robot.task("t-1", token=reading).status == 200
    writing = robot.new_token(["experience:write"])
    assert robot.hints(token=writing).status == 403


def fresh(robot):
    """A tenant with the one experience of T1, and its token."""
    token = robot.new_token(tenant=f"fresh{robot.names}")
    assert robot.record(token=token).status == 200
    return token


def t9(robot):
    answer = robot.hints(token=fresh(robot))
    assert answer.status == 200 and "nav2" in [hint["ref"] for hint in answer.body["hints"]], answer


def t10(robot):
    answer = robot.hints(token=fresh(robot))
    assert answer.headers["X-Request-ID"] == "h1" and answer.body["metadata"]["total_experiences"] == 1
    hints = answer.body["hints"]
    assert {hint["type"] for hint in hints} <= {"document", "tool", "external", "api", "pattern"}
    confidences = [hint["confidence"] for hint in hints]
    assert confidences == sorted(confidences, reverse=True), confidences
    nav2 = hint(answer, "nav2")
    assert nav2["type"] == "tool", nav2
    expected = {"success_rate": 1, "avg_duration_ms": 100, "last_used": FINISHED}
    assert nav2["usage_stats"] == expected, nav2
    assert hint(answer, "map_db")["type"] == "external"


def t11(robot):
    answer = no_hints(robot.hints(HINTS | {"intent": "zzz qqq"}), 404, "NO_MATCHES")
    assert answer.body["metadata"]["total_experiences"] == 0 and answer.body["error"]["suggestions"]


def t12(robot):
    for body in (
        changed(HINTS, ["intent"], ...),
        HINTS | {"deadline_ms": 99},
        changed(HINTS, ["deadline_ms"], ...),
        HINTS | {"query_type": "x"},
    ):
        no_hints(robot.hints(body), 400, "INVALID_QUERY")


def t13(robot):
    assert len(robot.hints(HINTS | {"max_hints": 1}).body["hints"]) == 1
    assert len(robot.hints(HINTS | {"max_hints": 20}).body["hints"]) <= 20
    for most in (0, 21):
        no_hints(robot.hints(HINTS | {"max_hints": most}), 400, "INVALID_QUERY")


def t14(robot):
    burst = robot.new_token(rate=None, hour=None)
    answers = [robot.task("none", token=burst) for _ in range(60)]
    refused = [answer for answer in answers if answer.status == 429]
    assert refused and refused[0].headers["Retry-After"] == "1", answers[-1]
    assert refused[0].body["code"] == "RATE_LIMITED"

    # The hour of the contract: the key states a rate for the second alone, which no client here reaches.
    hour = robot.new_token(hour=None)
    left = []
    answer = robot.task("none", token=hour)
    for _ in range(2000):
        assert answer.status == 404, answer
        left.append(int(answer.headers["X-RateLimit-Remaining"]))
        assert answer.headers["X-RateLimit-Limit"] == "2000"
        answer = robot.task("none", token=hour)
    assert left == list(range(1999, -1, -1)), left[:5]
    assert answer.status == 429 and int(answer.headers["X-RateLimit-Remaining"]) == 0, answer
    reset = int(answer.headers["X-RateLimit-Reset"]) - time.time()
    assert 0 < reset <= 3660 and abs(int(answer.headers["Retry-After"]) - reset) < 5, answer.headers
    assert robot.ask("GET", f"{BASE}/health", token=hour).status == 200


def t15(robot):
    found = robot.task("t-1")
    assert found.status == 200, found
    assert found.body["title"] == "Dock at station 2" and found.body["result"] == RECORD["result"], found
    assert set(found.body) == {"task_id", "title", "result", "metadata"}, found
    assert robot.task("exp_672fd682598d").body == found.body
    assert robot.task("none").status == 404
    odd = another("a/b c?é")
    location = robot.record(odd).body["metadata"]["storage_location"]
    assert robot.ask("GET", BASE + location).body["task_id"] == "a/b c?é", location


def t16(robot):
    answer = robot.ask("GET", f"{BASE}/health", token=None)
    assert answer.status == 200 and answer.body["status"] == "healthy", answer
    parts = {"experience_storage", "pattern_indexer", "hint_generator", "query_engine"}
    assert set(answer.body["components"]) == parts, answer
    datetime.datetime.fromisoformat(answer.body["timestamp"])


def t17(robot):
    token = fresh(robot)
    status = []
    for request in ("a", "b"):
        answer = robot.hints(HINTS | {"request_id": request}, token=token)
        assert answer.body["request_id"] == request
        status.append(answer.body["metadata"]["cache_status"])
    robot.record(another("t-17"), token=token)
    status.append(robot.hints(token=token).body["metadata"]["cache_status"])
    assert status == ["miss", "hit", "partial"], status


def t18(robot):
    body = changed(HINTS, ["intent"], ...) | {"query_type": "task_id"}
    assert robot.hints(body | {"task_id": "t-1"}).status == 200
    no_hints(robot.hints(body | {"task_id": "none"}), 404, "NO_MATCHES")


def t19(robot):
    body = changed(HINTS, ["intent"], ...) | {"query_type": "similar_pattern"}
    for pattern in ("dock", "Dock", "pattern_dock"):
        answer = robot.hints(body | {"pattern": pattern})
        assert answer.status == 200 and answer.body["metadata"]["pattern_match_score"] == 1, answer


def t20(robot):
    other = robot.new_token(tenant="b")
    no_hints(robot.hints(token=other), 404, "NO_MATCHES")
    assert robot.task("t-1", token=other).status == 404


def t21(robot):
    """With a clock that is set: the sweep merges what is alike after a week."""
    with tempfile.TemporaryDirectory() as folder:
        later = Robot(robot.omird, folder, '[clock]\nsource = "simulated"\n')
        try:
            def clock(days):
                at = (NOW + datetime.timedelta(days=days)).isoformat()
                answer = later.ask("POST", "/omir/v1/clock", at, token=later.admin)
                assert answer.status in (200, 204), answer
            clock(0)
            for at in range(20):
                assert later.record(another(f"run-{at}")).status == 200
            # Observations of another kind that are merged: the sweep did come by.
            for at in range(3):
                cup = {"resourceType": "MemoryRecord", "content": "a red cup", "entityRefs": [{"ref": "Entity/cup"}]}
                cup = [{"resourceType": "Entity", "id": "cup", "name": "cup"}, cup | {"id": f"cup{at}"}]
                assert later.ask("POST", "/omir/v1/remember", cup, token=later.admin).status == 200
            clock(9)
            swept = later.ask("POST", "/omir/v1/sweep", token=later.admin)
            assert swept.status == 200 and swept.body["merged"] >= 1, swept
            for at in range(20):
                assert later.task(f"run-{at}").status == 200
        finally:
            later.end()


def t22(robot):
    notes = changed(another("t-22"), ["nodes_used", 0, "notes"], "Authorization: Bearer abc.def.ghi")
    assert robot.record(changed(notes, ["context", "user_id"], "u-77")).status == 200
    exported = robot.ask("POST", "/omir/v1/export", {}, token=robot.admin)
    assert exported.status == 200 and "experience:t-22" in exported.text, exported
    assert "abc.def.ghi" not in exported.text and "u-77" not in exported.text


def t23(robot):
    for at, (request, header) in enumerate((("a\nb", "a%0Ab"), ("é", "%C3%A9"))):
        answer = robot.record(another(f"t-23-{at}") | {"request_id": request})
        assert answer.status == 200 and answer.body["request_id"] == request, answer
        assert answer.headers["X-Request-ID"] == header, answer.headers


def t24(robot):
    token = fresh(robot)
    no_hints(robot.hints(HINTS | {"context": {"domain": "code"}}, token=token), 404, "NO_MATCHES")
    assert robot.hints(HINTS | {"context": {"domain": "general"}}, token=token).status == 200


def t25(robot):
    """Ten keys, 20 requests a second each: one record for three questions."""
    tokens = [robot.new_token() for _ in range(10)]
    took, failed = {"record": [], "hints": []}, []
    began = time.monotonic() + 0.1

    def client(number):
        for at in range(20 * LOAD_SECONDS):
            time.sleep(max(0, began + at / 20 + number / 200 - time.monotonic()))
            before = time.monotonic()
            if at % 4 == 0:
                name, answer = "record", robot.record(another(f"load-{number}-{at}"), token=tokens[number])
            else:
                asked = HINTS | {"intent": f"dock robot {at % 12}"}
                name, answer = "hints", robot.hints(asked, token=tokens[number])
            took[name].append(time.monotonic() - before)
            if answer.status != 200:
                failed.append(answer)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(10)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failed, (len(failed), failed[0])
    p95 = {name: sorted(times)[len(times) * 95 // 100] for name, times in took.items()}
    assert p95["hints"] < 2 and p95["record"] < 5, p95
    rate = sum(map(len, took.values())) / (time.monotonic() - began)
    print(f"T25: {rate:.0f}/s, P95 of hints {p95['hints'] * 1000:.0f} ms, of records {p95['record'] * 1000:.0f} ms")


def t26(robot):
    """The card is pulled out: its folder is another one for a while."""
    with tempfile.TemporaryDirectory() as folder:
        pulled = Robot(robot.omird, folder)
        try:
            assert pulled.record().status == 200
            away = pulled.data.with_name("away")
            pulled.data.rename(away)
            rejected(pulled.record(another("t-26")), 500, "STORAGE_ERROR")
            health = pulled.ask("GET", f"{BASE}/health", token=None)
            assert health.status == 503 and health.body["components"]["experience_storage"] == "unhealthy", health
            away.rename(pulled.data)
            until = time.monotonic() + 60
            while (answer := pulled.record(another("t-26"))).status != 200:
                assert time.monotonic() < until, answer
                time.sleep(0.2)
            assert answer.body["status"] == "recorded"
        finally:
            pulled.end()


def over_zenoh(robot):
    config = zenoh.Config()
    config.insert_json5("mode", '"client"')
    config.insert_json5("connect/endpoints", json.dumps([robot.endpoint]))
    with zenoh.open(config) as session:
        def ask(key, body):
            replies = session.get(f"omir/rover/experience/{key}", payload=json.dumps(body), encoding="application/json", timeout=30)
            [reply] = list(replies)
            return reply.ok is not None, json.loads((reply.ok or reply.err).payload.to_string())
        is_good, body = ask("record", another("zenoh-1"))
        robot.schemas["experience_response"].validate(body)
        assert is_good and body["status"] == "recorded", body
        is_good, body = ask("record", another("zenoh-1") | {"request_id": "other"})
        assert not is_good and body["error"]["code"] == "DUPLICATE_TASK", body
        is_good, body = ask("hints", HINTS)
        robot.schemas["hints_response"].validate(body)
        assert is_good and "nav2" in [hint["ref"] for hint in body["hints"]], body
        is_good, body = ask("hints?near=1,2", HINTS)
        assert not is_good and body["error"]["code"] == "NO_MATCHES", body
        is_good, body = ask("health", {})
        assert is_good and body["status"] == "healthy", body


TESTS = [globals()[f"t{number}"] for number in range(1, 27)]


def main():
    wanted = set(sys.argv[2:])
    with tempfile.TemporaryDirectory() as folder:
        robot = Robot(sys.argv[1], folder)
        try:
            for test in [*TESTS, over_zenoh]:
                name = test.__name__.upper() if test in TESTS else "ZENOH"
                # The first records what others ask for.
                if wanted and name not in wanted | {"T1"}:
                    continue
                try:
                    test(robot)
                except Exception as error:
                    raise SystemExit(f"{name} failed: {type(error).__name__}: {error}") from error
            robot.end()
        finally:
            robot.process.kill()
    print(f"experience and hints: {'T1 to T26, and over Zenoh' if not wanted else ', '.join(sorted(wanted))}")


main()
