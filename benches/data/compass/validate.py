"""Checks the COMPASS sets: shapes, counts, and that labels refer to what exists. It prints what the sets hold.

Usage: validate.py
"""

import collections
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SPLITS = ["tune", "held_out"]
STAGES = {"planning", "execution", "reflection", "verification"}
KINDS = {"mobile_robot", "coding_agent", "research_operations", "household"}
ERROR_TYPES = {"hallucination", "missing_info", "incorrect_action", "context_degradation"}
ENTITY_TYPES = {"person", "location", "device", "software", "data", "object", "organisation", "document"}
CONFLICTS = {"conflict", "superseded"}
NO_CONFLICTS = {"different_subject", "different_condition", "event", "compatible"}
QUERY_KINDS = {"plain", "stage", "error"}
SPEAKERS = {"agent", "user", "log"}
# The least that both splits together hold.
LEAST = {
    "tasks": 28,
    "turns": 1300,
    "transitions": 500,
    "facts": 200,
    "mentions": 1000,
    "errors": 280,
    "patterns": 70,
    "groups that are no pattern": 70,
    "contradictions": 100,
    "pairs that do not contradict": 80,
    "queries": 300,
    "queries with five or more relevant turns": 100,
}
# The least of each split, as a share of both.
SHARE = 0.4
TURNS_OF_A_TASK = range(25, 81)

FIELDS = {
    "tasks": {"id": str, "agent": str, "kind": str, "goal": str, "constraints": list, "started_at": str},
    "turns": {"id": str, "task": str, "n": int, "at_s": int, "from": str, "stage": str, "stage_no": int, "kind": str, "text": str},
    "facts": {"id": str, "turn": str, "stage": str, "stage_no": int, "start": int, "text": str},
    "entities": {"turn": str, "mentions": list},
    "errors": {
        "id": str,
        "agent": str,
        "stage": str,
        "recorded_at": str,
        "error_type": str,
        "error_severity": float,
        "error_description": str,
        "context_when_occurred": str,
        "corrected_by": list,
    },
    "patterns": {"id": str, "agent": str, "is_pattern": bool, "errors": list, "why": str},
    "contradictions": {"id": str, "agent": str, "turns": list, "contradicts": bool, "relation": str, "why": str},
    "queries": {"id": str, "agent": str, "task": str, "stage": str, "kind": str, "text": str, "relevant": list},
}

wrong = []


def complain(where, what):
    wrong.append(f"{where}: {what}")


def expect(condition, where, what):
    if not condition:
        complain(where, what)


def rows_of(name, split):
    """The rows of a file that have the fields they should have."""
    rows, seen = [], set()
    for number, line in enumerate((HERE / f"{name}.{split}.jsonl").read_text().splitlines(), 1):
        where = f"{name}.{split}.jsonl:{number}"
        row = json.loads(line)
        lacking = [key for key, kind in FIELDS[name].items() if type(row.get(key)) is not kind]
        key = row.get("id", row.get("turn"))
        expect(not lacking, where, f"lacks {', '.join(lacking)}, or of another type")
        expect(key not in seen, where, f"{key} stands twice")
        seen.add(key)
        if not lacking:
            rows.append(row)
    return rows


def check_tasks(tasks):
    for task in tasks:
        expect(task["kind"] in KINDS, task["id"], f"kind {task['kind']}")
        expect(task["goal"] and task["constraints"], task["id"], "goal or constraints are empty")


def check_turns(tasks, turns):
    by_task = collections.defaultdict(list)
    for turn in turns:
        by_task[turn["task"]].append(turn)
        expect(turn["stage"] in STAGES, turn["id"], f"stage {turn['stage']}")
        also = turn.get("stage_also")
        expect(also is None or also in STAGES - {turn["stage"]}, turn["id"], f"other stage {also}")
        expect(turn["from"] in SPEAKERS, turn["id"], f"from {turn['from']}")
        expect(turn["text"].strip() == turn["text"] != "", turn["id"], "text is empty or has blanks around it")
        expect(not set("⟨⟩⟪⟫") & set(turn["text"]), turn["id"], "a mark is left in the text")
        if turn["kind"] == "interaction":
            parts = [turn["query"], *turn["actions"], turn["outcome"]]
            expect(turn["text"] == "\n".join(filter(None, parts)), turn["id"], "text is not its parts")
            expect(turn["actions"] and turn["success"] in (True, False, None), turn["id"], "actions or success")
        else:
            expect(turn["kind"] == "content" and "actions" not in turn, turn["id"], f"kind {turn['kind']}")
    expect(set(by_task) == {task["id"] for task in tasks}, "turns", "tasks without turns, or turns without a task")
    for task, own in by_task.items():
        expect(len(own) in TURNS_OF_A_TASK, task, f"{len(own)} turns")
        expect([turn["n"] for turn in own] == list(range(1, len(own) + 1)), task, "turns are not numbered in order")
        expect(all(a["at_s"] <= b["at_s"] for a, b in zip(own, own[1:])), task, "time runs backwards")
        expect({turn["stage"] for turn in own} == STAGES, task, "a stage is missing")
        number = 1
        for before, turn in zip([own[0], *own], own):
            number += turn["stage"] != before["stage"]
            expect(turn["stage_no"] == number, turn["id"], f"stage_no {turn['stage_no']}")


def check_spans(turns, facts, entities):
    for fact in facts:
        turn = turns.get(fact["turn"])
        if not turn:
            complain(fact["id"], f"{fact['turn']} is not there")
            continue
        end = fact["start"] + len(fact["text"])
        expect(turn["text"][fact["start"] : end] == fact["text"], fact["id"], "does not stand there")
        same = (turn["stage"], turn["stage_no"]) == (fact["stage"], fact["stage_no"])
        expect(same, fact["id"], "is of another stage than its turn")
    for row in entities:
        turn = turns.get(row["turn"])
        if not turn:
            complain("entities", f"{row['turn']} is not there")
            continue
        last = 0
        for mention in row["mentions"]:
            start, end = mention["start"], mention["start"] + len(mention["text"])
            expect(turn["text"][start:end] == mention["text"], row["turn"], f"{mention['text']} does not stand there")
            expect(mention["type"] in ENTITY_TYPES, row["turn"], f"type {mention['type']}")
            expect(start >= last, row["turn"], f"{mention['text']} overlaps another mention")
            last = end


def check_errors(turns, errors, patterns):
    by_id = {error["id"]: error for error in errors}
    for error in errors:
        expect(error["error_type"] in ERROR_TYPES, error["id"], f"type {error['error_type']}")
        expect(0 <= error["error_severity"] <= 1, error["id"], f"severity {error['error_severity']}")
        expect(error["stage"] in STAGES, error["id"], f"stage {error['stage']}")
        expect(error["error_description"] and error["context_when_occurred"], error["id"], "no description or context")
        expect((error["turn"] is None) == (error["task"] is None), error["id"], "a turn without a task")
        for turn in error["corrected_by"] + ([error["turn"]] if error["turn"] else []):
            expect(turn in turns, error["id"], f"{turn} is not there")
            own = turn in turns and turns[turn]["task"] == error["task"]
            expect(own, error["id"], f"{turn} is of another task")
    known = set()
    for group in patterns:
        ids = group["errors"]
        expect(len(set(ids)) == len(ids) >= 2, group["id"], "fewer than two errors, or one twice")
        for error in ids:
            own = error in by_id and by_id[error]["agent"] == group["agent"]
            expect(own, group["id"], f"{error} is not an error of this agent")
        expect(frozenset(ids) not in known, group["id"], "stands twice")
        known.add(frozenset(ids))
    true = [set(group["errors"]) for group in patterns if group["is_pattern"]]
    for group in patterns:
        if not group["is_pattern"]:
            inside = any(set(group["errors"]) <= other for other in true)
            expect(not inside, group["id"], "is called no pattern, and lies within one")


def check_pairs(turns, pairs):
    known = set()
    for pair in pairs:
        ids = frozenset(pair["turns"])
        expect(len(ids) == 2 and ids not in known, pair["id"], "not two turns, or stands twice")
        known.add(ids)
        for turn in ids:
            own = turn in turns and turns[turn]["task"].startswith(pair["agent"] + ".")
            expect(own, pair["id"], f"{turn} is not a turn of this agent")
        allowed = CONFLICTS if pair["contradicts"] else NO_CONFLICTS
        expect(pair["relation"] in allowed, pair["id"], f"relation {pair['relation']}")


def check_queries(turns, tasks, queries):
    known = set()
    for query in queries:
        asked = (query["task"], query["stage"], query["kind"], query["text"])
        expect(asked not in known, query["id"], "stands twice")
        known.add(asked)
        expect(query["task"] in tasks, query["id"], f"{query['task']} is not there")
        expect(query["stage"] in STAGES and query["kind"] in QUERY_KINDS, query["id"], "stage or kind")
        relevant = query["relevant"]
        expect(relevant and len(set(relevant)) == len(relevant), query["id"], "nothing is relevant, or a turn twice")
        for turn in relevant:
            own = turn in turns and turns[turn]["task"].startswith(query["agent"] + ".")
            expect(own, query["id"], f"{turn} is not a turn of this agent")
    # A question that depends on the stage is asked in several, with other answers.
    by_text = collections.defaultdict(list)
    for query in queries:
        if query["kind"] == "stage":
            by_text[query["task"], query["text"]].append(query)
    for same in by_text.values():
        sets = {frozenset(query["relevant"]) for query in same}
        expect(len(sets) == len(same), same[0]["id"], "two stages have the same answer")


def counts_of(files):
    turns = files["turns"]
    changes = sum(a["task"] == b["task"] and a["stage"] != b["stage"] for a, b in zip(turns, turns[1:]))
    mentions = sum(len({m["text"] for m in row["mentions"]}) for row in files["entities"])
    true_groups = sum(group["is_pattern"] for group in files["patterns"])
    true_pairs = sum(pair["contradicts"] for pair in files["contradictions"])
    return {
        "tasks": len(files["tasks"]),
        "turns": len(turns),
        "transitions": changes,
        "turns with a second acceptable stage": sum("stage_also" in turn for turn in turns),
        "facts": len(files["facts"]),
        "mentions": mentions,
        "turns with labelled entities": len(files["entities"]),
        "errors": len(files["errors"]),
        "patterns": true_groups,
        "groups that are no pattern": len(files["patterns"]) - true_groups,
        "contradictions": true_pairs,
        "pairs that do not contradict": len(files["contradictions"]) - true_pairs,
        "queries": len(files["queries"]),
        "queries with five or more relevant turns": sum(len(query["relevant"]) >= 5 for query in files["queries"]),
        **{f"queries, {kind}": sum(query["kind"] == kind for query in files["queries"]) for kind in sorted(QUERY_KINDS)},
    }


def main():
    counts, texts, agents = {}, collections.Counter(), {}
    for split in SPLITS:
        files = {name: rows_of(name, split) for name in FIELDS}
        turns = {turn["id"]: turn for turn in files["turns"]}
        check_tasks(files["tasks"])
        check_turns(files["tasks"], files["turns"])
        check_spans(turns, files["facts"], files["entities"])
        check_errors(turns, files["errors"], files["patterns"])
        check_pairs(turns, files["contradictions"])
        check_queries(turns, {task["id"] for task in files["tasks"]}, files["queries"])
        counts[split] = counts_of(files)
        texts.update(turn["text"] for turn in files["turns"] if len(turn["text"]) > 30)
        agents[split] = {task["agent"] for task in files["tasks"]}
        kinds = {task["kind"] for task in files["tasks"]}
        expect(kinds == KINDS, split, f"kinds {sorted(kinds)}")
    expect(not agents["tune"] & agents["held_out"], "splits", "an agent is in both")
    for text, times in texts.items():
        expect(times == 1, "turns", f"stands {times} times: {text[:60]}")
    for name, least in LEAST.items():
        both = sum(counts[split][name] for split in SPLITS)
        expect(both >= least, name, f"{both} of at least {least}")
        for split in SPLITS:
            expect(counts[split][name] >= SHARE * both, f"{name}.{split}", f"{counts[split][name]} of {both}")
    same = subprocess.run([sys.executable, HERE / "assemble.py", "--check"], capture_output=True, text=True)
    expect(same.returncode == 0, "sources", same.stderr.strip())
    print(f"{'':42}{'tune':>8}{'held out':>10}{'both':>8}")
    for name in counts["tune"]:
        tune, held = (counts[split][name] for split in SPLITS)
        print(f"{name:42}{tune:8}{held:10}{tune + held:8}")
    print("\n".join(wrong) or "shapes, counts and labels are as they should be")
    sys.exit(bool(wrong))


main()
