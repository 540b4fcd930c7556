"""Holds Akashik against its checklist, from outside: the 39 items of the draft by number, and the requests A1 to A10, over HTTP, with
one agent over Zenoh in the same sessions.

L1-1 and A5 kill the daemon after each acknowledged operation of the draft's trace (KILLS runs, default 6).

Usage: akashik_check.py OMIRD OMIR [ITEM ...]
"""

import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
import time

import zenoh
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

import omird_process

KILLS = int(os.environ.get("KILLS", "6"))
LONG = "The corridor of the second floor is long and dark. It has nine doors. Nobody uses the last of them. " * 4


class Refused(Exception):
    """An Error object."""

    def __init__(self, status, error):
        super().__init__(f"{status} {error}")
        assert {"code", "message", "operation", "recoverable", "suggested_action"} == set(error), error
        self.status, self.code = status, error["code"]


class Robot(omird_process.Robot):
    """A daemon, and the agents that ask it."""

    def __init__(self, omird, omir, folder, config=""):
        super().__init__(omird, folder, config)
        self.omir, self.tokens, self.next_id, self.epoch = omir, {}, 0, 0
        self.lock = threading.Lock()

    def restart(self):
        self.kill()
        self.begin()

    def add(self, name, authority=4, agent=None, tenant=None):
        """A token by the command line, beside the running daemon."""
        words = [self.omir, "token", "--data", self.data, "add", name, "--scope", "akashik:agent", "--rate", "100000"]
        words += ["--authority", str(authority), "--agent", agent or name]
        words += ["--tenant", tenant] if tenant else []
        self.tokens[name] = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
        until = time.monotonic() + 30
        while self.http("GET", "/akashik/v1/agents", who=name)[0] == 401:
            assert time.monotonic() < until, f"the token of {name} is not in force"
            time.sleep(0.05)

    def http(self, verb, path, raw=None, who=None):
        headers = {"Content-Type": "application/json"}
        if who:
            headers["Authorization"] = f"Bearer {self.tokens.get(who, who)}"
        status, _, text = self.fetch(verb, path, raw, headers)
        return status, json.loads(text) if text else None

    def envelope(self, agent, operation, payload, **members):
        with self.lock:
            self.next_id += 1
            number = self.next_id
        return {
            "protocol": "akashik", "version": "0.1.0", "id": f"msg-{number}", "operation": operation, "agent_id": agent,
            "session_id": None, "epoch": 0, "payload": payload, **members,
        }

    def send(self, message, who=None):
        """Sends a message as its agent, by the path of its operation."""
        raw = json.dumps(message).encode()
        return self.http("POST", f"/akashik/v1/{message['operation'].lower()}", raw, who or message["agent_id"])

    def ask(self, agent, operation, payload, who=None, **members):
        status, answer = self.send(self.envelope(agent, operation, payload, **members), who)
        if status >= 400:
            raise Refused(status, answer)
        if isinstance(answer.get("epoch"), int):
            assert answer["epoch"] > self.epoch, f"epochs rise: {answer['epoch']} after {self.epoch}"
            self.epoch = answer["epoch"]
        return answer

    def refuses(self, code, agent, operation, payload, **members):
        try:
            answer = self.ask(agent, operation, payload, **members)
        except Refused as refused:
            assert refused.code == code, f"{refused}, and not {code}"
            return refused
        raise AssertionError(f"{agent} {operation} {json.dumps(payload)[:300]} is not refused with {code}: {str(answer)[:300]}")

    def join(self, *agents, authority=4, role="planner"):
        for agent in agents:
            if agent not in self.tokens:
                self.add(agent, authority)
            status, answer = self.send(self.envelope(agent, "REGISTER", {"id": agent, "role": role}))
            assert status == 201, answer

    def record(self, agent, content, **more):
        members = {name: more.pop(name) for name in ("session_id", "epoch") if name in more}
        return self.ask(agent, "RECORD", unit(content, **more), **members)

    def attune(self, agent, session_id=None, **scope):
        payload = {"scope": {"role": "planner", "max_units": 100, **scope}}
        return self.ask(agent, "ATTUNE", payload, session_id=session_id)


def unit(content, **more):
    return {
        "mode": "committed", "type": "finding", "content": content, "intent": {"purpose": "map the building"},
        "confidence": {"score": 0.8, "reasoning": "seen"}, **more,
    }


def ids(answer):
    return [one["memory_unit"]["id"] for one in answer["record"]]


def same(found, expected, more=""):
    assert found == expected, f"\n found    {str(found)[:1500]}\n expected {str(expected)[:1500]}\n {str(more)[:1500]}"


def relation(kind, target):
    return {"relations": [{"type": kind, "target_id": target}]}


ITEMS = {}


def item(*numbers):
    def added(function):
        for number in numbers:
            ITEMS[number] = function
        return function

    return added


@item("L0-1", "L1-10")
def registers(robot):
    robot.add("r1")
    status, answer = robot.send(robot.envelope("r1", "REGISTER", {"id": "r1", "role": "mapper", "interests": ["doors"]}))
    same((status, answer["status"], answer["agent"]["status"]), (201, "registered", "idle"))
    same((answer["agent"]["id"], answer["agent"]["role"]), ("r1", "mapper"))
    capabilities = answer["field_capabilities"]
    same((capabilities["conformance_level"], capabilities["protocol_version"], capabilities["persistence"]), (3, "0.1.0", True))
    same((len(capabilities["supported_operations"]), len(capabilities["conflict_strategies"])), (12, 7))
    robot.refuses("AGENT_ID_TAKEN", "r1", "REGISTER", {"id": "r1", "role": "mapper"})
    robot.add("r2")
    rejected = robot.ask("r2", "REGISTER", {"id": "r2", "role": "x", "required_operations": ["DREAM"]})
    same(rejected["status"], "rejected")
    assert "DREAM" in rejected["rejection_reason"]


@item("L0-2", "L0-5")
def records(robot):
    robot.join("w1", "w2")
    for mode, status in (("draft", "draft"), ("committed", "active")):
        answer = robot.record("w1", f"a {mode} of it", mode=mode)
        same((answer["status"], answer["conflicts_detected"]), ("accepted", []))
        _, found = robot.http("GET", f"/akashik/v1/units/{answer['memory_unit_id']}", who="w1")
        same((found["status"], found["mode"], found["epoch"]), (status, mode, answer["epoch"]))
        same((found["source"]["agent_id"], found["source"]["agent_role"]), ("w1", "planner"))
        assert found["source"]["timestamp"]
    for member in ("id", "epoch", "source", "status"):
        robot.refuses("INVALID_PAYLOAD", "w1", "RECORD", unit("x", **{member: "mine"}))
    robot.refuses("INVALID_TYPE", "w1", "RECORD", unit("x", type="rumour"))


@item("L0-3", "L0-4", "A1")
def intents(robot):
    robot.join("i1", "i2")
    for mode in ("draft", "committed"):
        for intent in ({}, {"purpose": ""}, {"purpose": "  "}, None):
            robot.refuses("MISSING_INTENT", "i1", "RECORD", unit("x", mode=mode, intent=intent))
        payload = unit("x", mode=mode)
        del payload["intent"]
        refused = robot.refuses("MISSING_INTENT", "i1", "RECORD", payload)
        same(refused.status, 400)
    same(ids(robot.attune("i2", interests=["i1"], include_own=True)).count("x"), 0)


@item("L0-6", "L0-7", "L0-8", "L0-9", "L0-10")
def attunes(robot):
    robot.join("t1", "t2")
    made = [robot.record("t1", f"Door {n} of the hall is painted.")["memory_unit_id"] for n in range(6)]
    answer = robot.attune("t2", max_units=3)
    same(len(answer["record"]), 3)
    scores = [one["relevance_score"] for one in answer["record"]]
    same(scores, sorted(scores, reverse=True))
    assert all(0 <= score <= 1 for score in scores) and all(one["relevance_reason"] for one in answer["record"])
    assert not set(made) & set(ids(robot.attune("t1"))), "its own are left out"
    budget = answer["context_budget"]
    assert budget["units_returned"] == 3 and budget["units_available"] >= 6 and budget["tokens_used"] is None
    robot.record("t1", "Door 0 of the hall is grey.", **relation("supersedes", made[0]))
    robot.ask("t1", "COORDINATE", {"action": "retract", "unit_id": made[1]})
    seen = ids(robot.attune("t2"))
    assert made[0] not in seen and made[1] not in seen and made[2] in seen
    for scope in ({"role": "", "max_units": 1}, {"max_units": 1}, {"role": "x"}, {"role": "x", "max_units": 0}):
        robot.refuses("INVALID_PAYLOAD", "t2", "ATTUNE", {"scope": scope})


@item("L0-11")
def envelopes(robot):
    robot.join("e1")
    whole = robot.envelope("e1", "ATTUNE", {"scope": {"role": "r", "max_units": 1}})
    for wrong in (
        {"protocol": "x"}, {"version": "0.2.0"}, {"id": ""}, {"agent_id": ""}, {"epoch": -1}, {"epoch": 1.5}, {"epoch": "1"},
        {"payload": []}, {"token": "x"}, {"session_id": 7},
    ):
        status, answer = robot.send({**whole, **wrong}, "e1")
        same((status, answer["code"]), (400, "INVALID_ENVELOPE"), wrong)
    for missing in whole:
        status, answer = robot.http(
            "POST", "/akashik/v1/attune", json.dumps({k: v for k, v in whole.items() if k != missing}).encode(), "e1")
        same(status, 400, missing)
    status, answer = robot.http("POST", "/akashik/v1/record", json.dumps(whole).encode(), "e1")
    same((status, answer["code"]), (400, "INVALID_ENVELOPE"))
    status, answer = robot.http("POST", "/akashik/v1/dream", json.dumps({**whole, "operation": "DREAM"}).encode(), "e1")
    same((status, answer["code"]), (400, "UNSUPPORTED_OPERATION"))
    for noise in (b"", b"{", b"[]", b"\xff", b"null", b"[" * 100_000):
        status, answer = robot.http("POST", "/akashik/v1/attune", noise, "e1")
        same((status, answer["code"]), (400, "INVALID_ENVELOPE"), noise[:20])
    robot.add("e2")
    robot.refuses("AGENT_NOT_REGISTERED", "e2", "ATTUNE", {"scope": {"role": "r", "max_units": 1}})


@item("L1-1", "A5")
def survives(robot):
    robot.join("k1", "k2", "k3")
    for run in range(KILLS):
        before = robot.attune("k3")
        one = robot.record("k1", f"Lift {run} works.")
        robot.restart()
        two = robot.record("k2", f"No: lift {run} is out of order.", **relation("contradicts", one["memory_unit_id"]))
        assert two["epoch"] > one["epoch"]
        robot.restart()
        after = robot.attune("k3")
        same(len(after["record"]) - len(before["record"]), 2)
        same(len(after["conflicts"]) - len(before["conflicts"]), len(two["conflicts_detected"]))
        robot.restart()
        again = robot.attune("k3")
        assert again["epoch"] > after["epoch"], "an epoch that was answered is not answered again"
        same([again["record"], again["conflicts"]], [after["record"], after["conflicts"]])
        robot.ask("k1", "DETECT", {"mode": "list"})


@item("L1-2", "L2-9")
def replays(robot):
    robot.join("p1", "p2")
    one = robot.record("p1", "The pump is loud.")["memory_unit_id"]
    two = robot.record("p2", "The pump makes no noise.", **relation("contradicts", one))
    conflict = two["conflicts_detected"][0]
    replay = lambda depth, **more: robot.ask(
        "p1", "REPLAY", {"target_type": "memory_unit", "target_id": one, "depth": depth, **more})
    summary = replay("summary")
    assert summary["summary"] and set(summary["agents_involved"]) == {"p1", "p2"} and summary["total_events"] >= 3
    detailed = replay("detailed")["timeline"]
    assert {"memory.recorded", "memory.contested", "conflict.detected"} <= {one["event_type"] for one in detailed}
    full = replay("full_trace")["timeline"]
    epochs = [one["epoch"] for one in full]
    assert epochs == sorted(epochs) and two["memory_unit_id"] in {one["memory_unit_id"] for one in full}
    robot.restart()
    same(replay("full_trace")["timeline"], full)
    assert robot.ask("p2", "REPLAY", {"target_type": "conflict", "target_id": conflict, "depth": "detailed"})["timeline"]
    robot.refuses("UNIT_NOT_FOUND", "p1", "REPLAY", {"target_type": "memory_unit", "target_id": "x", "depth": "summary"})
    robot.refuses("INVALID_PAYLOAD", "p1", "REPLAY", {"target_type": "memory_unit", "target_id": one, "depth": "deep"})


@item("L1-3", "A6")
def clocks(robot):
    robot.join("c1")
    last = robot.attune("c1")["epoch"]
    for step in (0, 10, 100, 5000):
        asked = last + step
        answer = robot.ask("c1", "ATTUNE", {"scope": {"role": "r", "max_units": 1}}, epoch=asked)
        assert answer["epoch"] > asked, (answer["epoch"], asked)
        last = answer["epoch"]
    assert robot.record("c1", "later", epoch=0)["epoch"] > last, "never back"
    status, answer = robot.send(robot.envelope("c1", "ATTUNE", {"scope": {"role": "r", "max_units": 1}}, epoch=2**53 - 1))
    same(answer["code"], "EPOCH_OVERFLOW")


@item("L1-4")
def confidences(robot):
    robot.join("f1")
    for confidence in (None, {}, {"score": 0.5}, {"reasoning": "x"}, {"score": 0.5, "reasoning": ""}):
        robot.refuses("MISSING_CONFIDENCE", "f1", "RECORD", unit("x", confidence=confidence))
    for score in (1.01, -0.1, "high"):
        for mode in ("draft", "committed"):
            robot.refuses("INVALID_CONFIDENCE", "f1", "RECORD", unit("x", mode=mode, confidence={"score": score, "reasoning": "x"}))
    robot.record("f1", "a draft without", mode="draft", confidence=None)


@item("L1-5")
def deregisters(robot):
    robot.join("d1", "d2")
    one = robot.record("d1", "The roof leaks.")["memory_unit_id"]
    answer = robot.ask("d1", "DEREGISTER", {"agent_id": "d1"})
    same((answer["status"], answer["cleanup"]), ("ok", {"units_orphaned": 1, "tasks_reassigned": 0}))
    assert one in ids(robot.attune("d2")), "units outlive their agent"
    same(robot.ask("d2", "DEREGISTER", {"agent_id": "d1"}, who="boss")["status"] if "boss" in robot.tokens else "not_found", "not_found")
    robot.join("d1")


@item("L1-6", "L1-7", "L1-9", "A3")
def conflicts(robot):
    robot.join("q1", "q2", "q3")
    one = robot.record("q1", "The gate of the yard is wide.")["memory_unit_id"]
    answer = robot.record("q2", "Nothing passes there.", **relation("contradicts", one))
    same(len(answer["conflicts_detected"]), 1)
    conflict = answer["conflicts_detected"][0]
    listed = robot.ask("q1", "DETECT", {"mode": "list"})["conflicts"]
    same([one["id"] for one in listed].count(conflict), 1)
    shown = [one for one in robot.attune("q3")["conflicts"] if one["id"] == conflict]
    same(len(shown), 1)
    same((shown[0]["unit_a"], shown[0]["unit_b"]), (one, answer["memory_unit_id"]))
    same((shown[0]["status"], shown[0]["detected_by"]), ("detected", "explicit"))
    _, active = robot.http("GET", "/akashik/v1/conflicts", who="q3")
    assert conflict in [one["id"] for one in active["conflicts"]]
    robot.refuses("UNIT_NOT_FOUND", "q1", "RECORD", unit("x", **relation("contradicts", "mem-0")))


@item("L1-8")
def polls(robot):
    robot.join("o1", "o2")
    robot.record("o1", "one")
    since = robot.attune("o2")["epoch"]
    two = robot.record("o1", "two")["memory_unit_id"]
    same(ids(robot.ask("o2", "ATTUNE", {"scope": {"role": "r", "max_units": 100}, "since_epoch": since})), [two])
    same(ids(robot.attune("o2", since_epoch=since)), [two])


@item("L2-1", "L2-2")
def means(robot):
    robot.join("m1", "m2")
    near = robot.record("m1", "The charging station stands beside the window.")["memory_unit_id"]
    for content in ("Plants need water twice a week.", "The invoice was paid in May.", "Chess is played on Tuesdays."):
        robot.record("m1", content)
    _, status = robot.http("GET", "/akashik/v1/field/status", who="m1")
    assert status["embedding"].startswith("hashed-256"), status
    since = robot.attune("m2")["epoch"] - 8
    answer = robot.ask("m2", "ATTUNE", {
        "scope": {"role": "electrician", "max_units": 4, "since_epoch": since}, "context_hint": "where do robots charge at stations"})
    same(ids(answer)[0], near, answer)
    assert "meaning" in answer["record"][0]["relevance_reason"]


@item("L2-3")
def scopes(robot):
    robot.join("s1", "s2")
    robot.ask("s1", "COORDINATE", {"action": "create", "task": {"id": "paint", "title": "Paint the hall"}})
    since = robot.attune("s2")["epoch"]
    plain = robot.record("s1", "Ladders are in the shed.")["memory_unit_id"]
    served = robot.record("s1", "Brushes are in the attic.", intent={"purpose": "x", "task_id": "paint"})["memory_unit_id"]
    rank = lambda **scope: ids(robot.attune("s2", since_epoch=since, **scope))
    same(rank(active_task_id="paint")[0], served)
    same(rank(interests=["ladders in the shed"])[0], plain)
    same(rank(relevance_threshold=1.0), [])
    same(len(rank(relevance_threshold=0.0)), 2)
    for wrong in ({"relevance_threshold": 2}, {"max_tokens": 0}, {"interests": "x"}):
        robot.refuses("INVALID_PAYLOAD", "s2", "ATTUNE", {"scope": {"role": "r", "max_units": 1, **wrong}})


@item("L2-4", "A4")
def budgets(robot):
    robot.join("b1", "b2")
    since = robot.attune("b2")["epoch"]
    for n in range(50):
        robot.record("b1", f"Floor {n}. {LONG}")
    answer = robot.attune("b2", max_tokens=200, since_epoch=since)
    budget = answer["context_budget"]
    same((budget["units_available"], budget["tokens_budget"]), (50, 200))
    assert 0 < budget["tokens_used"] <= 200 and {one["format"] for one in answer["record"]} <= {"full", "summary"}
    assert any(one["format"] == "summary" for one in answer["record"])


@item("L2-5")
def detects(robot):
    robot.join("x1", "x2")
    one = robot.record("x1", "The door of room 12 is open.")["memory_unit_id"]
    two = robot.record("x2", "The door of room 12 is closed.")
    same(len(two["conflicts_detected"]), 1)
    check = robot.ask("x1", "DETECT", {"mode": "check", "target_id": one})
    same((check["conflicts"][0]["detected_by"], check["scan_coverage"]["new_conflicts_found"]), ("semantic", 0))
    scan = robot.ask("x1", "DETECT", {"mode": "scan"})
    assert scan["scan_coverage"]["units_scanned"] >= 2
    listed = robot.ask("x1", "DETECT", {"mode": "list", "filter": {"status": ["detected"], "involving_agents": ["x2"]}})
    same([one["id"] for one in listed["conflicts"]], two["conflicts_detected"])
    robot.refuses("UNIT_NOT_FOUND", "x1", "DETECT", {"mode": "check", "target_id": "x"})
    robot.refuses("INVALID_PAYLOAD", "x1", "DETECT", {"mode": "check"})


def quarrel(robot, prefix, number):
    one = robot.record(f"{prefix}1", f"Shelf {number} of hall {prefix} holds tools.")["memory_unit_id"]
    two = robot.record(f"{prefix}2", f"Look elsewhere, number {number}.", confidence={"score": 0.5, "reasoning": "x"},
                       **relation("contradicts", one))
    return one, two["memory_unit_id"], two["conflicts_detected"][0]


@item("L2-6", "L3-3", "A8")
def merges(robot):
    robot.join("g1", "g2")
    robot.join("senior", authority=6)
    robot.join("human", authority=10)
    merge = lambda who, conflict, strategy, **more: robot.ask(
        who, "MERGE", {"conflict_id": conflict, "strategy": strategy, "resolution": {"rationale": "because", **more}})
    number = 0
    for strategy, wins in (("last_write_wins", 1), ("confidence_weighted", 0), ("authority", 0), ("evidence_count", 0), ("synthesis", None)):
        number += 1
        one, two, conflict = quarrel(robot, "g", number)
        more = {"authority": {"winner_id": one}, "synthesis": {"synthesis": "Both are right, in turns."}}.get(strategy, {})
        if strategy == "evidence_count":
            robot.record("senior", f"I saw tools there, {number}.", **relation("supports", one))
        payload = {"conflict_id": conflict, "strategy": strategy, "resolution": {"rationale": "because", **more}}
        robot.refuses("INSUFFICIENT_AUTHORITY", "g1", "MERGE", payload)
        done = merge("senior", conflict, strategy, **more)
        same((done["status"], done["conflict"]["status"]), ("resolved", "resolved"))
        losers = [one, two] if wins is None else [[two, one][wins]]
        same(sorted(done["side_effects"]["superseded_units"]), sorted(losers))
        same(sorted(done["side_effects"]["notified_agents"]), ["g1", "g2"])
        resolution = done["conflict"]["resolution"]
        same((resolution["strategy"], resolution["rationale"], resolution["resolved_by"]), (strategy, "because", "senior"))
        robot.refuses("INVALID_TRANSITION", "senior", "MERGE", payload)
    one, _, conflict = quarrel(robot, "g", 90)
    same(merge("senior", conflict, "human_escalation")["status"], "escalated")
    decide = {"conflict_id": conflict, "strategy": "authority", "resolution": {"rationale": "I looked", "winner_id": one}}
    robot.refuses("INSUFFICIENT_AUTHORITY", "senior", "MERGE", decide)
    same(robot.ask("human", "MERGE", decide)["status"], "resolved")
    one, _, conflict = quarrel(robot, "g", 91)
    same(merge("senior", conflict, "vote", winner_id=one)["status"], "pending_vote")
    voters = [agent["id"] for agent in robot.http("GET", "/akashik/v1/agents", who="senior")[1]["agents"] if agent["id"] != "senior"]
    for voter in voters:
        try:
            done = merge(voter, conflict, "vote", winner_id=one)
        except Refused as refused:
            # Agents below 4 have no vote, and those that were not there when it began.
            assert refused.code in ("INSUFFICIENT_AUTHORITY", "INVALID_PAYLOAD"), refused
            continue
        if done["status"] == "resolved":
            break
    same(done["status"], "resolved")
    robot.refuses("CONFLICT_NOT_FOUND", "senior", "MERGE", {**decide, "conflict_id": "x"})


def listen(robot, agent, found, ready, until):
    connection = http.client.HTTPConnection(robot.host, robot.port, timeout=60)
    connection.request("GET", "/akashik/v1/events", headers={"Authorization": f"Bearer {robot.tokens[agent]}"})
    answer = connection.getresponse()
    same((answer.status, answer.headers["content-type"]), (200, "text/event-stream"))
    ready.set()
    event = {}
    while len(found) < until:
        line = answer.readline().decode().rstrip("\n")
        if not line and "data" in event:
            found.append((event["event"], int(event["id"]), json.loads(event["data"])))
            event = {}
        elif ": " in line:
            name, value = line.split(": ", 1)
            event[name] = value
    connection.close()


def socket(robot, agent=None):
    headers = {"Authorization": f"Bearer {robot.tokens[agent]}"} if agent else {}
    return connect(f"ws://{robot.host}:{robot.port}/akashik/v1/socket", additional_headers=headers, proxy=None)


def listen_on_socket(robot, agent, found, ready, until):
    with socket(robot, agent) as messages:
        ready.set()
        while len(found) < until:
            found.append(json.loads(messages.recv(timeout=60)))


def socket_refuses(robot, agent):
    """Who may not listen is refused in the words of the protocol, and who speaks is told where to."""
    try:
        socket(robot)
        raise AssertionError("a socket without a token")
    except InvalidStatus as refused:
        same(refused.response.status_code, 401)
        same(json.loads(refused.response.body)["code"], "UNAUTHENTICATED")
    connection = http.client.HTTPConnection(robot.host, robot.port, timeout=60)
    connection.request("GET", "/akashik/v1/socket", headers={"Authorization": f"Bearer {robot.tokens[agent]}"})
    answer = connection.getresponse()
    same((answer.status, answer.headers["sec-websocket-version"]), (400, "13"))
    assert "/akashik/v1/events" in json.loads(answer.read())["message"]
    connection.close()
    with socket(robot, agent) as messages:
        messages.send("hello")
        try:
            messages.recv(timeout=30)
            raise AssertionError("nothing is taken on the socket")
        except ConnectionClosed as closed:
            same(closed.rcvd.code, 1003)
            assert "POST" in closed.rcvd.reason
    with socket(robot, agent) as messages:
        messages.close()
    same(messages.close_code, 1000)


@item("L2-7", "L3-8", "A7")
def pushes(robot):
    """Two agents in one session, one by HTTP and one by Zenoh, see the same field in the same order."""
    robot.join("v1", "v2")
    config = zenoh.Config.from_json5(json.dumps({
        "mode": "client", "connect": {"endpoints": [robot.endpoint]}, "scouting": {"multicast": {"enabled": False}}}))
    with zenoh.open(config) as session:
        def over_zenoh(message, who):
            attachment = f"Bearer {robot.tokens[who]}"
            replies = list(session.get("omir/rover/akashik", payload=json.dumps(message), attachment=attachment, timeout=30))
            assert len(replies) == 1, replies
            reply = replies[0]
            assert reply.ok is not None, (reply.err.payload.to_string(), message)
            return json.loads(reply.ok.payload.to_string())

        created = robot.ask("v1", "SESSION", {"action": "create", "goal": "count", "members": ["v2"]})["session"]["id"]
        wish = {"action": "subscribe", "subscription": {"events": ["memory.recorded"]}}
        by_http = robot.ask("v1", "SUBSCRIBE", wish)["subscription_id"]
        by_zenoh = over_zenoh(robot.envelope("v2", "SUBSCRIBE", wish), "v2")["subscription_id"]
        heard, streamed, ready = [], [], threading.Event()
        subscriber = session.declare_subscriber(
            f"omir/rover/akashik/event/{created}/memory.recorded",
            lambda sample: heard.append(json.loads(sample.payload.to_string())))
        thread = threading.Thread(target=listen, args=(robot, "v1", streamed, ready, 1000), daemon=True)
        thread.start()
        assert ready.wait(30)
        socketed, connected = [], threading.Event()
        other = threading.Thread(target=listen_on_socket, args=(robot, "v1", socketed, connected, 1000), daemon=True)
        other.start()
        assert connected.wait(30)
        time.sleep(0.3)

        def half(who, by):
            for n in range(500):
                message = robot.envelope(who, "RECORD", unit(f"Crate {who} {n} stands in row {n % 9}."), session_id=created)
                answer = by(message, who)
                assert answer["status"] == "accepted", answer

        def over_http(message, who):
            status, answer = robot.send(message, who)
            assert status == 201, (status, answer)
            return answer

        both = [threading.Thread(target=half, args=("v1", over_http)), threading.Thread(target=half, args=("v2", over_zenoh))]
        [one.start() for one in both]
        [one.join(300) for one in both]
        thread.join(60)
        other.join(60)
        until = time.monotonic() + 30
        of = lambda subscription: [one for one in heard if one["subscription_id"] == subscription]
        while len(of(by_zenoh)) < 1000 and time.monotonic() < until:
            time.sleep(0.1)
        subscriber.undeclare()
        same((len(streamed), len(of(by_zenoh))), (1000, 1000))
        first = [(data["epoch"], data["memory_unit_id"]) for _, _, data in streamed]
        second = [(data["epoch"], data["memory_unit_id"]) for data in of(by_zenoh)]
        same(first, second)
        same(socketed, [data for _, _, data in streamed])
        same(first, sorted(first))
        assert all(data["subscription_id"] == by_http and event == "memory.recorded" for event, _, data in streamed)
        seen = over_zenoh(robot.envelope("v2", "ATTUNE", {"scope": {"role": "r", "max_units": 1000}}, session_id=created), "v2")
        mine = robot.attune("v1", session_id=created, max_units=1000)
        # Each leaves its own out; together they are all of it.
        same(len(set(ids(seen)) | set(ids(mine))) >= 1000, True)
    socket_refuses(robot, "v1")
    told_where_tokens_are_required(robot)


def told_where_tokens_are_required(robot):
    """Where every way in needs a token, Zenoh tells all who listen that something happened, and nothing of it."""
    with tempfile.TemporaryDirectory() as folder:
        closed = Robot(robot.omird, robot.omir, folder, "[access]\nrequire = true\n")
        try:
            closed.join("w1", "w2")
            wish = {"action": "subscribe", "subscription": {"events": ["memory.recorded"]}}
            subscription = closed.ask("w1", "SUBSCRIBE", wish)["subscription_id"]
            config = zenoh.Config.from_json5(json.dumps({
                "mode": "client", "connect": {"endpoints": [closed.endpoint]}, "scouting": {"multicast": {"enabled": False}}}))
            heard = []
            with zenoh.open(config) as session:
                key = "omir/rover/akashik/event/*/memory.recorded"
                subscriber = session.declare_subscriber(key, lambda sample: heard.append(json.loads(sample.payload.to_string())))
                time.sleep(0.5)
                epoch = closed.ask("w2", "RECORD", unit("The secret word is dragonfly."))["epoch"]
                until = time.monotonic() + 30
                while not heard and time.monotonic() < until:
                    time.sleep(0.05)
                subscriber.undeclare()
            same(heard, [{"subscription_id": subscription, "event": "memory.recorded", "epoch": epoch}])
        finally:
            closed.kill()


@item("L2-8")
def hands_off(robot):
    robot.join("h1", "h2", "h3")
    robot.ask("h1", "COORDINATE", {"action": "create", "task": {"id": "h-task", "title": "Open the safe", "assignee": "h1"}})
    robot.record("h1", "Which key fits?", type="question", intent={"purpose": "open", "task_id": "h-task"})
    offer = {"action": "offer", "task_id": "h-task", "to_agent": "h2", "context": {"summary": "half done"}}
    robot.refuses("INVALID_TRANSITION", "h3", "HANDOFF", offer)
    handoff = robot.ask("h1", "HANDOFF", offer)["handoff"]["id"]
    seen = robot.ask("h2", "HANDOFF", {"action": "get", "handoff_id": handoff})["handoff"]["context"]
    same((seen["summary"], seen["open_questions"], len(seen["unit_ids"])), ("half done", ["Which key fits?"], 1))
    robot.refuses("HANDOFF_NOT_FOUND", "h3", "HANDOFF", {"action": "get", "handoff_id": handoff})
    robot.ask("h2", "HANDOFF", {"action": "accept", "handoff_id": handoff})
    task = robot.ask("h2", "COORDINATE", {"action": "get", "task_id": "h-task"})["task"]
    same((task["assignee"], task["state"]), ("h2", "assigned"))


@item("L2-10", "L3-7", "A9")
def compacts(robot):
    robot.join("z1", "z2")
    robot.join("senior2", authority=6)
    robot.join("human2", authority=10)
    made = [robot.record("z1", f"The secret word number {n} is xylophone-{n}.")["memory_unit_id"] for n in range(6)]
    compact = lambda who, strategy, units: robot.ask(
        who, "COMPACT", {"strategy": strategy, "filter": {"unit_ids": units}})
    robot.refuses("INSUFFICIENT_AUTHORITY", "z1", "COMPACT", {"strategy": "archive"})
    same(compact("senior2", "archive", made[:2])["units_affected"], 2)
    seen = ids(robot.attune("z2"))
    assert not set(made[:2]) & set(seen) and made[2] in seen
    assert set(made[:2]) <= set(ids(robot.attune("z2", include_archived=True)))
    summed = compact("senior2", "summarize", made[2:4])
    same((summed["units_affected"], summed["synthesis_units_created"]), (2, 1))
    found = [one["memory_unit"] for one in robot.attune("z1")["record"] if one["memory_unit"]["type"] == "synthesis"]
    assert any({relation["target_id"] for relation in one["relations"]} == set(made[2:4]) for one in found), found
    robot.refuses("INSUFFICIENT_AUTHORITY", "senior2", "COMPACT", {"strategy": "purge", "filter": {"unit_ids": made[4:]}})
    same(compact("human2", "purge", made[4:])["units_affected"], 2)
    for unit_id in made[4:]:
        events = robot.ask("z2", "REPLAY", {"target_type": "memory_unit", "target_id": unit_id, "depth": "detailed"})["timeline"]
        same(events[-1]["event_type"], "memory.purged")
        same(robot.http("GET", f"/akashik/v1/units/{unit_id}", who="z2")[0], 404)
    robot.restart()
    assert not set(made[4:]) & set(ids(robot.attune("z2", include_archived=True)))
    events = robot.ask("z2", "REPLAY", {"target_type": "memory_unit", "target_id": made[0], "depth": "detailed"})["timeline"]
    assert events[-1]["event_type"] == "memory.archived" and events[0]["event_type"] == "memory.recorded"


@item("L2-S", "L3-4", "L3-5")
def authorities(robot):
    robot.join("a1", "a2")
    message = robot.envelope("a1", "ATTUNE", {"scope": {"role": "r", "max_units": 1}})
    raw = json.dumps(message).encode()
    for token in (None, "omird_0000"):
        status, answer = robot.http("POST", "/akashik/v1/attune", raw, token)
        same((status, answer["code"]), (401, "UNAUTHENTICATED"))
    status, answer = robot.send(message, "a2")
    same((status, answer["code"]), (403, "INSUFFICIENT_AUTHORITY"), "a token speaks for its agents alone")
    robot.join("watcher", authority=2, role="observer")
    robot.attune("watcher")
    robot.refuses("INSUFFICIENT_AUTHORITY", "watcher", "RECORD", unit("x"))
    robot.refuses("INSUFFICIENT_AUTHORITY", "watcher", "RECORD", unit("x", mode="draft"))
    robot.refuses("INSUFFICIENT_AUTHORITY", "watcher", "DETECT", {"mode": "list"})
    robot.join("auditor", authority=0, role="audit")
    robot.refuses("INSUFFICIENT_AUTHORITY", "auditor", "ATTUNE", {"scope": {"role": "r", "max_units": 1}})
    one = robot.record("a1", "The lamp is on.")["memory_unit_id"]
    assert robot.ask("auditor", "REPLAY", {"target_type": "memory_unit", "target_id": one, "depth": "detailed"})["timeline"]
    robot.refuses("INSUFFICIENT_AUTHORITY", "a1", "DEREGISTER", {"agent_id": "a2"})
    robot.refuses("INSUFFICIENT_AUTHORITY", "a1", "COORDINATE", {"action": "create", "task": {"title": "x", "assignee": "a2"}})
    robot.add("liar", authority=4)
    robot.refuses("INSUFFICIENT_AUTHORITY", "liar", "REGISTER", {"id": "liar", "role": "x", "authority_level": 8})


@item("L3-1", "L3-2")
def coordinates(robot):
    robot.join("j1", "j2")
    robot.join("chief", authority=8)
    act = lambda who, action, **more: robot.ask(who, "COORDINATE", {"action": action, "task_id": task, **more})["task"]["state"]
    refuses = lambda code, who, action: robot.refuses(code, who, "COORDINATE", {"action": action, "task_id": task})
    task = robot.ask("j1", "COORDINATE", {"action": "create", "task": {"title": "Sweep"}})["task"]["id"]
    refuses("INVALID_TRANSITION", "chief", "start")
    same(act("j1", "assign", assignee="j1"), "assigned")
    refuses("INSUFFICIENT_AUTHORITY", "j2", "start")
    same([act("j1", action) for action in ("start", "block", "unblock")], ["in_progress", "blocked", "in_progress"])
    same(act("chief", "assign", assignee="j2"), "assigned")
    same([act("j2", action) for action in ("start", "release")], ["in_progress", "created"])
    same(act("j1", "assign", assignee="j1"), "assigned")
    same([act("j1", "fail")], ["failed"])
    same(act("j1", "assign", assignee="j1"), "assigned")
    same([act("j1", action) for action in ("start", "complete")], ["in_progress", "completed"])
    for action in ("start", "block", "unblock", "complete", "fail", "release", "cancel"):
        refuses("INVALID_TRANSITION", "chief", action)
    task = robot.ask("j1", "COORDINATE", {"action": "create", "task": {"title": "Mop", "assignee": "j1"}})["task"]["id"]
    refuses("INSUFFICIENT_AUTHORITY", "j1", "cancel")
    same(act("chief", "cancel"), "cancelled")
    session = robot.ask("j1", "SESSION", {"action": "create", "goal": "clean"})["session"]["id"]
    lead = lambda who, action, **more: robot.ask(who, "SESSION", {"action": action, "session_id": session, **more})["session"]["state"]
    robot.refuses("SESSION_NOT_FOUND", "j2", "SESSION", {"action": "join", "session_id": session})
    lead("j1", "invite", agents=["j2"])
    lead("j2", "join")
    robot.refuses("INSUFFICIENT_AUTHORITY", "j2", "SESSION", {"action": "pause", "session_id": session})
    same([lead("j1", action) for action in ("pause", "resume", "end")], ["paused", "active", "ended"])
    robot.refuses("INVALID_TRANSITION", "j1", "SESSION", {"action": "resume", "session_id": session})


@item("L3-6", "A10")
def hides(robot):
    robot.join("y1", "y2", "y3")
    robot.join("y4", role="auditor")
    session = robot.ask("y1", "SESSION", {
        "action": "create", "goal": "secret", "members": ["y2", "y4"],
        "policy": {"role_rules": [{"role": "auditor", "hidden_types": ["decision"]}]}})["session"]["id"]
    one = robot.record("y2", "We meet at the pier.", session_id=session, type="decision")["memory_unit_id"]
    assert one in ids(robot.attune("y1", session_id=session))
    assert one not in ids(robot.attune("y4", session_id=session)), "hidden from the role"
    assert one not in ids(robot.attune("y3"))
    robot.refuses("SESSION_NOT_FOUND", "y3", "ATTUNE", {"scope": {"role": "r", "max_units": 1}}, session_id=session)
    robot.refuses("UNIT_NOT_FOUND", "y3", "DETECT", {"mode": "check", "target_id": one})
    robot.refuses("UNIT_NOT_FOUND", "y3", "REPLAY", {"target_type": "memory_unit", "target_id": one, "depth": "summary"})
    same(robot.http("GET", f"/akashik/v1/units/{one}", who="y3")[0], 404)
    # Names that nobody declared: the session of a message.
    two = robot.record("y1", "S alone.", session_id="S")["memory_unit_id"]
    assert two in ids(robot.attune("y3", session_id="S")) and two not in ids(robot.attune("y3", session_id="T"))
    robot.add("elsewhere", agent="y1", tenant="acme")
    status, answer = robot.send(robot.envelope("y1", "REGISTER", {"id": "y1", "role": "r"}), "elsewhere")
    same(status, 201)
    status, answer = robot.send(robot.envelope("y1", "ATTUNE", {"scope": {"role": "r", "max_units": 1}}), "elsewhere")
    same(answer["record"], [])


@item("A2")
def once(robot):
    robot.join("u1", "u2")
    message = robot.envelope("u1", "RECORD", unit("Once and for all."))
    answers = [None] * 8

    def send(at):
        answers[at] = robot.send(message)

    threads = [threading.Thread(target=send, args=(at,)) for at in range(8)]
    [one.start() for one in threads]
    [one.join() for one in threads]
    assert all(answer == answers[0] and answer[0] == 201 for answer in answers), answers
    robot.restart()
    same(robot.send(message), answers[0])
    same(robot.send({**message, "payload": unit("Something else.")})[1]["code"], "INVALID_ENVELOPE")
    same([one["memory_unit"]["content"] for one in robot.attune("u2")["record"]].count("Once and for all."), 1)


def main(omird, omir, *wanted):
    listed = [number for number in ITEMS if number.startswith("L")]
    same(len(listed), 40, "the 39 items of the checklist, and the token of the security section")
    done = {}
    with tempfile.TemporaryDirectory() as folder:
        robot = Robot(omird, omir, folder)
        try:
            for number, function in ITEMS.items():
                if wanted and number not in wanted or function in done.values():
                    continue
                began = time.monotonic()
                done[number] = function
                function(robot)
                numbers = " ".join(other for other, one in ITEMS.items() if one is function)
                print(f"{numbers}: met, {time.monotonic() - began:.1f} s", flush=True)
            robot.end()
        except BaseException:
            robot.kill()
            raise


if __name__ == "__main__":
    main(*sys.argv[1:])
