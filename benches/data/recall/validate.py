#!/usr/bin/env python3
"""Checks the sets for recall and prints what they hold: validate.py [--baseline]

Checks shapes, counts, parts and references, the words that questions share with their answers, the words that no memory may
hold, typed answers by a scan, and that no distractor looks like an answer. With --baseline it also ranks by BM25 over stems,
among the distractors, and prints recall@5 of each kind. Exit status 1 if a check fails.
"""

import collections
import datetime
import json
import pathlib
import re
import sys

import bm25
import distractors
import typed
from porter import content_stems, words

HERE = pathlib.Path(__file__).resolve().parent
PARTS = ("tune", "held_out")
# Kind of question: the least number over both parts.
LEAST = {"other_words": 260, "shared_words": 120, "no_answer": 60, "misspelled": 40, "typed": 60}
LEAST_MEMORIES = 1500
# How far a question in other words is from its answer.
LEVELS = {"synonym", "paraphrase"}
MEMORY = {"id", "topic", "domain", "experienceType", "eventTime", "place", "entityRefs", "content"}
QUESTION = {"id", "topic", "kind", "aspect", "question", "asked"}
ANSWER = {
    "other_words": {"answers", "level"}, "shared_words": {"answers"}, "no_answer": {"answers", "absent"},
    "misspelled": {"answers", "pairs"}, "typed": {"parameters", "answer"},
}  # fmt: skip
ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
YEAR = datetime.timedelta(days=366)


class Report:
    """Collects what is wrong, with the place of each."""

    def __init__(self):
        self.wrong = []

    def check(self, right, where, message):
        if not right:
            self.wrong.append(f"{where}: {message}")


def read(name):
    """Numbered objects of a file of JSON Lines, with their place."""
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    return [(f"{name}:{number}", json.loads(line)) for number, line in enumerate(lines, 1)]


def check_memories(report, memories, entities):
    """Shape, unique identifiers and words, a year at most, and entities that exist."""
    seen = collections.Counter(memory["id"] for _, memory in memories)
    texts = collections.Counter(" ".join(words(memory["content"])) for _, memory in memories)
    for where, memory in memories:
        report.check(set(memory) == MEMORY, where, f"members are {sorted(memory)}, not {sorted(MEMORY)}")
        report.check(ID.fullmatch(memory["id"]) and seen[memory["id"]] == 1, where, f"bad or repeated id {memory['id']}")
        report.check(INSTANT.fullmatch(memory["eventTime"]), where, f"bad eventTime {memory['eventTime']}")
        report.check(len(memory["place"]["position"]) == 3, where, "a position has three numbers")
        report.check(memory["place"]["room"] in memory["entityRefs"], where, "the room is not among entityRefs")
        report.check(texts[" ".join(words(memory["content"]))] == 1, where, f"the same words twice: {memory['content']}")
        for reference in memory["entityRefs"]:
            report.check(reference in entities, where, f"no {reference} in entities.jsonl")
    times = sorted(datetime.datetime.fromisoformat(memory["eventTime"]) for _, memory in memories)
    report.check(times[-1] - times[0] <= YEAR, "memories.jsonl", "spans more than a year")


def check_question(report, where, question, by_id):
    """Members, the topic of each answer, and that it was known when the question was asked."""
    members = set(question) - {"stale"}
    report.check(members == QUESTION | ANSWER[question["kind"]], where, f"members are {sorted(members)}")
    named = question.get("answers", []) + question.get("stale", []) + question.get("answer", {}).get("ids", [])
    parameters = question.get("parameters", {})
    relative = [parameters[name].removeprefix("MemoryRecord/") for name in ("before", "after") if name in parameters]
    report.check(len(set(named)) == len(named), where, "an id is named twice")
    for name in named + relative:
        memory = by_id.get(name)
        report.check(memory, where, f"no memory {name}")
        if memory:
            report.check(memory["topic"] == question["topic"], where, f"{name} is of topic {memory['topic']}")
            report.check(memory["eventTime"] < question["asked"], where, f"{name} lies after the question")
    report.check(bool(question.get("answers")) == ("answers" in question and question["kind"] != "no_answer"), where,
                 "a question has answers unless its kind is no_answer")  # fmt: skip


def check_words(report, where, question, by_id, all_stems):
    """What each kind promises of the words of a question and of its answers."""
    asked = content_stems(question["question"])
    answers = [by_id[name] for name in question.get("answers", []) if name in by_id]
    shared = [asked & content_stems(memory["content"]) for memory in answers]
    if question["kind"] == "other_words":
        report.check(question["level"] in LEVELS, where, f"level is {question['level']}")
        report.check(not any(shared), where, f"shares {shared}: {question['question']}")
    elif question["kind"] == "shared_words":
        report.check(all(len(stems) >= 2 for stems in shared), where, f"shares fewer than two stems: {shared}")
    elif question["kind"] == "no_answer":
        stems = set().union(*(content_stems(word) for word in question["absent"]))
        report.check(stems and not stems & all_stems, where, f"memories hold {stems & all_stems or 'no absent word'}")
    elif question["kind"] == "misspelled":
        for typed_as, meant in question["pairs"]:
            report.check(typed_as != meant and typed_as in words(question["question"]), where, f"{typed_as} is not asked")
            report.check(all(meant in words(memory["content"]) for memory in answers), where, f"{meant} is not answered")


def check_typed(report, where, question, memories, by_id):
    """The committed answer, written by hand, against the scan."""
    scanned, stated = typed.answer(memories, by_id, question["parameters"]), dict(question["answer"])
    if "entities" in stated:
        stated["entities"] = sorted(stated["entities"])
    report.check(scanned == stated, where, f"says {stated}, the scan says {scanned}")


def check_distractors(report, questions, by_id, extra):
    """No distractor shares three stems with a question, nor four stems, and half of them, with an answer."""
    holders = collections.defaultdict(set)
    for memory in extra:
        for stem in content_stems(memory["content"]):
            holders[stem].add(memory["id"])
    texts = {memory["id"]: memory["content"] for memory in extra}
    for where, question in questions:
        if question["kind"] == "typed":
            continue
        kin = [("question", content_stems(question["question"]), 3)]
        for name in question["answers"]:
            stems = content_stems(by_id[name]["content"])
            kin.append((name, stems, max(4, (len(stems) + 1) // 2)))
        for what, stems, bound in kin:
            hits = collections.Counter(name for stem in stems for name in holders[stem])
            for name, count in hits.most_common(1):
                report.check(count < bound, where, f"{what} shares {count} stems with {name}: {texts[name]}")


def check_parts(report, memories, questions):
    """A topic serves one part. Each kind is split in halves: neither part holds less than two fifths."""
    parts = collections.defaultdict(set)
    kinds = collections.Counter()
    for part in PARTS:
        for _, question in questions[part]:
            parts[question["topic"]].add(part)
            kinds[part, question["kind"]] += 1
    for topic, served in parts.items():
        report.check(len(served) == 1, topic, "serves both parts")
    report.check(set(parts) == {memory["topic"] for _, memory in memories}, "memories.jsonl", "has topics without questions")
    for kind, least in LEAST.items():
        counts = [kinds[part, kind] for part in PARTS]
        report.check(sum(counts) >= least, kind, f"{sum(counts)} questions, fewer than {least}")
        report.check(min(counts) >= 0.4 * sum(counts), kind, f"parts of {counts[0]} and {counts[1]}")
    return kinds


def finish(report):
    """Prints what is wrong and ends the program."""
    for line in report.wrong:
        print(line, file=sys.stderr)
    sys.exit(f"{len(report.wrong)} checks failed" if report.wrong else 0)


def main():
    report = Report()
    memories = read("memories.jsonl")
    entities = {"Entity/" + entity["id"] for _, entity in read("entities.jsonl")}
    questions = {part: read(f"questions.{part}.jsonl") for part in PARTS}
    both = questions["tune"] + questions["held_out"]
    extra = distractors.distractors()
    own = [memory for _, memory in memories]
    by_id = {memory["id"]: memory for memory in own}
    everything = own + extra
    all_stems = set().union(*(content_stems(memory["content"]) for memory in everything))
    check_memories(report, memories, entities)
    report.check(len(memories) >= LEAST_MEMORIES, "memories.jsonl", f"{len(memories)} memories, fewer than {LEAST_MEMORIES}")
    ids = collections.Counter(question["id"] for _, question in both)
    texts = collections.Counter((question["topic"], question["question"]) for _, question in both)
    for where, question in both:
        once = ids[question["id"]] == 1 and texts[question["topic"], question["question"]] == 1
        report.check(once, where, "repeated id or question")
        check_question(report, where, question, by_id)
    # What follows reads the memories that questions name.
    if report.wrong:
        finish(report)
    for where, question in both:
        if question["kind"] == "typed":
            check_typed(report, where, question, everything, by_id)
        else:
            check_words(report, where, question, by_id, all_stems)
    near = sum(question["aspect"] == "near" for _, question in both)
    nothing = sum(question["kind"] == "no_answer" for _, question in both)
    report.check(2 * near >= nothing - 1, "no_answer", f"{near} of {nothing} questions are near a topic")
    check_distractors(report, both, by_id, extra)
    kinds = check_parts(report, memories, questions)
    print(f"{len(memories)} memories of {len({memory['topic'] for memory in own})} topics, {len(extra)} distractors")
    for kind in LEAST:
        print(f"{kind:13}" + "".join(f"  {part} {kinds[part, kind]:4}" for part in PARTS))
    if "--baseline" in sys.argv[1:]:
        bm25.report(everything, questions)
    finish(report)


if __name__ == "__main__":
    main()
