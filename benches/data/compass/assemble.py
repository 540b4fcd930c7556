"""Turns sources/*.txt, which people write, into the JSON Lines files that measurements read.

It writes no text of its own: it numbers, splits and copies. README.md explains the format of a source.
Usage: assemble.py [--check], which writes nothing and fails if a file is not what the sources say.
"""

import json
import pathlib
import re
import sys
from datetime import datetime, timedelta

HERE = pathlib.Path(__file__).resolve().parent
SPLITS = ["tune", "held_out"]
FILES = ["tasks", "turns", "facts", "entities", "errors", "patterns", "contradictions", "queries"]
STAGES = {"P": "planning", "E": "execution", "R": "reflection", "V": "verification"}
SPEAKERS = {"": "agent", "u": "user", "l": "log"}
ENTITY_TYPES = {
    "p": "person",
    "l": "location",
    "d": "device",
    "s": "software",
    "m": "data",
    "o": "object",
    "g": "organisation",
    "t": "document",
}
SUCCESS = {"ok": True, "no": False, "unknown": None}
QUERY_KINDS = {"plain": "plain", "stage": "stage", "error": "error"}
HEADER = re.compile(r"^([ab])(\d+[b-z]?) ([PERV])(?:/([PERV]))? (\d+):(\d\d)(?: ([ul]))?$")
MARK = re.compile(r"⟨([a-z]!?):([^⟩]+)⟩|([⟪⟫])")


class Wrong(Exception):
    """A source that does not keep its format."""


def plain(text):
    """Text without marks, and what is marked: facts as spans, names for the whole source, and names for this place."""
    out, facts, names, here, opened, at = "", [], {}, [], None, 0
    for mark in MARK.finditer(text):
        out += text[at : mark.start()]
        at = mark.end()
        if mark[3] == "⟪":
            opened = len(out)
        elif mark[3] == "⟫":
            facts.append((opened, len(out)))
            opened = None
        else:
            if mark[1].endswith("!"):
                here.append({"text": mark[2], "type": ENTITY_TYPES[mark[1][0]], "start": len(out)})
            else:
                names[mark[2]] = mark[1]
            out += mark[2]
    out += text[at:]
    if opened is not None or re.search("[⟨⟩⟪⟫]", out):
        raise Wrong(f"a mark is not closed: {text[:60]}")
    return out, facts, names, here


def interaction(lines):
    """The parts of a turn that asks, acts and has an outcome."""
    parts = {"query": "", "actions": [], "outcome": "", "success": None}
    if lines[-1] not in SUCCESS:
        raise Wrong(f"an interaction ends with ok, no or unknown: {lines[-1]}")
    parts["success"] = SUCCESS[lines[-1]]
    outcome = None
    for line in lines[:-1]:
        if outcome is not None:
            outcome.append(line)
        elif line.startswith("q: "):
            parts["query"] = line[3:]
        elif line.startswith("a: "):
            parts["actions"].append(line[3:])
        elif line.startswith("o: "):
            outcome = [line[3:]]
        else:
            raise Wrong(f"neither q:, a: nor o:, {line}")
    parts["outcome"] = "\n".join(outcome or [])
    return parts


def turn_of(header, lines, agent):
    """One turn, with the marks in it."""
    task, number, stage, also, minutes, seconds, speaker = header.groups(default="")
    turn = {
        "id": f"{agent}.{task}{number}",
        "task": f"{agent}.{task}",
        "at_s": int(minutes) * 60 + int(seconds),
        "from": SPEAKERS[speaker],
        "stage": STAGES[stage],
    }
    if also:
        turn["stage_also"] = STAGES[also]
    if lines[0].startswith(("q: ", "a: ")):
        marked = interaction(lines)
        text = "\n".join(part for part in [marked["query"], *marked["actions"], marked["outcome"]] if part)
        turn |= {"kind": "interaction"}
        for key in ("query", "outcome"):
            turn[key] = plain(re.sub("[⟪⟫]", "", marked[key]))[0]
        turn["actions"] = [plain(re.sub("[⟪⟫]", "", action))[0] for action in marked["actions"]]
        turn["success"] = marked["success"]
    else:
        text = "\n".join(lines).strip()
        turn |= {"kind": "content"}
    turn["text"], facts, names, here = plain(text)
    return turn, facts, names, here


def mentions_of(text, names, here):
    """Each name that stands in a text as a whole word; of overlapping ones the longest. A sentence may begin with it."""
    found = list(here)
    taken = {at for mention in here for at in range(mention["start"], mention["start"] + len(mention["text"]))}
    for name in sorted(names, key=lambda name: (-len(name), name)):
        head = r"(?<![\w/.@-])" if re.match(r"\w", name) else r"(?<![\w.])"
        first = f"[{name[0]}{name[0].upper()}]" if name[0].islower() else re.escape(name[0])
        for match in re.finditer(head + first + re.escape(name[1:]) + r"(?![\w/@])(?![.:-]\w)", text):
            span = set(range(*match.span()))
            if not span & taken:
                taken |= span
                found.append({"text": match[0], "type": ENTITY_TYPES[names[name]], "start": match.start()})
    return sorted(found, key=lambda mention: mention["start"])


def blocks(lines):
    """The head, the tasks and the labels of a source."""
    body = "\n".join(lines)
    body, _, labels = body.partition("\n---\n")
    head, *tasks = re.split(r"^task: ", body, flags=re.M)
    return dict(line.split(": ", 1) for line in head.split("\n") if line), tasks, labels.split("\n")


def read_task(block, head, out, places):
    """The turns of one task; returns the names that are marked in it, and adds those marked for one place."""
    lines = block.split("\n")
    agent, task = head["agent"], lines[0]
    meta = {"goal": "", "constraints": [], "started_at": ""}
    turns, at = [], 1
    while at < len(lines) and not HEADER.match(lines[at]):
        key, _, value = lines[at].partition(": ")
        if key == "constraint":
            meta["constraints"].append(value)
        elif key in ("goal", "start"):
            meta["started_at" if key == "start" else key] = value
        elif lines[at]:
            raise Wrong(f"{agent}.{task}: {lines[at]}")
        at += 1
    for line in lines[at:]:
        header = HEADER.match(line)
        if header:
            turns.append((header, []))
        else:
            turns[-1][1].append(line)
    out["tasks"].append({"id": f"{agent}.{task}", "agent": agent, "kind": head["kind"], **meta})
    names, count, stage_no, stage = {}, 0, 0, None
    for header, text in turns:
        try:
            turn, facts, marked, here = turn_of(header, "\n".join(text).strip("\n").split("\n"), agent)
        except Wrong as wrong:
            raise Wrong(f"{agent}.{header[1]}{header[2]}: {wrong}") from None
        names |= marked
        if turn["stage"] != stage:
            stage, stage_no = turn["stage"], stage_no + 1
        count += 1
        out["turns"].append(turn | {"n": count, "stage_no": stage_no})
        places[turn["id"]] = here
        for number, (start, end) in enumerate(facts, 1):
            fact = {"id": f"{turn['id']}.f{number}", "turn": turn["id"], "stage": stage, "stage_no": stage_no}
            out["facts"].append(fact | {"start": start, "text": turn["text"][start:end]})
    return names


def error_of(error_type, severity, texts):
    """The members of an error that its line states."""
    description, context, recovery = texts
    return {
        "error_type": error_type,
        "error_severity": float(severity),
        "error_description": description,
        "context_when_occurred": context,
        "recovery_action": None if recovery == "none" else recovery,
    }


def stamp(time):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def read_label(line, agent, at, out):
    """One line of labels."""
    refer = lambda word: f"{agent}.{word}"
    fields = [field.strip() for field in line.split(" | ")]
    what, *words = fields[0].split()
    if what == "error":
        name, where, error_type, severity, *fixed = words
        turn = at[refer(where.removeprefix("@"))]
        error = {"id": refer(name), "agent": agent, "task": turn["task"], "turn": turn["id"], "stage": turn["stage"]}
        began = datetime.fromisoformat(next(task["started_at"] for task in out["tasks"] if task["id"] == turn["task"]))
        error |= {"recorded_at": stamp(began + timedelta(seconds=turn["at_s"]))}
        corrected = [refer(turn) for turn in fixed[0].removeprefix("fix=").split(",")] if fixed else []
        out["errors"].append(error | error_of(error_type, severity, fields[1:]) | {"corrected_by": corrected})
    elif what == "past":
        name, at_time, stage, error_type, severity = words
        error = {"id": refer(name), "agent": agent, "task": None, "turn": None, "stage": STAGES[stage]}
        error |= {"recorded_at": stamp(datetime.fromisoformat(f"{at_time}:00Z"))}
        out["errors"].append(error | error_of(error_type, severity, fields[1:]) | {"corrected_by": []})
    elif what in ("pattern", "unrelated"):
        number = sum(row["agent"] == agent for row in out["patterns"]) + 1
        pattern = {"id": f"{agent}.g{number}", "agent": agent, "is_pattern": what == "pattern"}
        out["patterns"].append(pattern | {"errors": [refer(word) for word in words], "why": fields[1]})
    elif what in ("contra", "near"):
        number = sum(row["agent"] == agent for row in out["contradictions"]) + 1
        pair = {"id": f"{agent}.c{number}", "agent": agent, "turns": [refer(word) for word in words[:2]]}
        pair |= {"contradicts": what == "contra", "relation": words[2], "why": fields[1]}
        out["contradictions"].append(pair)
    elif what == "query":
        stage, kind, task = words
        number = sum(row["agent"] == agent for row in out["queries"]) + 1
        query = {"id": f"{agent}.q{number}", "agent": agent, "task": refer(task), "stage": STAGES[stage]}
        query |= {"kind": QUERY_KINDS[kind], "text": fields[1]}
        out["queries"].append(query | {"relevant": [refer(word) for word in fields[2].split()]})
    else:
        raise Wrong(f"{agent}: unknown label {what}")


def read(path, out):
    """One source: an agent and its tasks."""
    head, tasks, labels = blocks(path.read_text().split("\n"))
    agent, first = head["agent"], len(out["turns"])
    names, places = {}, {}
    for block in tasks:
        names |= read_task(block, head, out, places)
    turns = out["turns"][first:]
    for entry in head["names"].split("; "):
        kind, _, name = entry.partition(" ")
        names[name] = kind
    without = [f"{agent}.{number}" for number in head.get("no_entities", "").split()]
    for turn in turns:
        labelled = turn["task"].rpartition(".")[2] in head["entities"].split()
        if labelled and turn["id"] not in without and "```" not in turn["text"]:
            mentions = mentions_of(turn["text"], names, places[turn["id"]])
            out["entities"].append({"turn": turn["id"], "mentions": mentions})
    at = {turn["id"]: turn for turn in turns}
    for line in filter(None, labels):
        try:
            read_label(line, agent, at, out)
        except (KeyError, ValueError, IndexError) as error:
            raise Wrong(f"{path.name}: {line[:70]}: {error!r}") from None


def assembled():
    """The text of each file, by name."""
    rows = {split: {file: [] for file in FILES} for split in SPLITS}
    for path in sorted((HERE / "sources").glob("*.txt")):
        split = re.search(r"^split: (\w+)$", path.read_text(), re.M)[1]
        read(path, rows[split])
    line = lambda row: json.dumps(row, ensure_ascii=False) + "\n"
    return {f"{file}.{split}.jsonl": "".join(map(line, rows[split][file])) for split in SPLITS for file in FILES}


def main():
    try:
        files = assembled()
    except Wrong as wrong:
        sys.exit(str(wrong))
    for name, text in files.items():
        path = HERE / name
        if sys.argv[1:] == ["--check"]:
            if not path.exists() or path.read_text() != text:
                sys.exit(f"{name} is not what the sources say: run assemble.py")
        else:
            path.write_text(text)


main()
