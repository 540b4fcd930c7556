"""Answers typed questions by a scan over all memories: the oracle for the questions of kind `typed`.

Parameters are named as in `recall`. README.md lists those that the sets add. Nothing here ranks or reads words.
"""

import math

KNOWN = {
    "after", "before", "box", "count", "countBy", "distinct", "entity", "experienceType", "frame", "limit", "near", "order",
    "radius", "unseenSince", "_time",
}


def in_range(instant, time_range):
    """True if an instant lies in `[from..to]`. Ends may be open, or turned outwards to exclude them."""
    start, end = time_range[1:-1].split("..")
    if start and (instant < start or (instant == start and time_range[0] == "]")):
        return False
    return not end or instant < end or (instant == end and time_range[-1] == "]")


def distance(memory, near):
    """Metres from a place: in the plane for two numbers, in space for three."""
    return math.dist(memory["place"]["position"][: len(near)], near)


def in_box(memory, box):
    ends = zip(box[:3], box[3:])
    return all(min(pair) <= at <= max(pair) for at, pair in zip(memory["place"]["position"], ends))


def select(memories, by_id, parameters):
    """Memories that pass all filters, oldest first."""
    unknown = set(parameters) - KNOWN
    if unknown:
        raise ValueError(f"unknown parameters {sorted(unknown)}")

    def instant_of(reference):
        return by_id[reference.removeprefix("MemoryRecord/")]["eventTime"]

    tests = {
        "entity": lambda memory, wanted: not set(wanted).isdisjoint(memory["entityRefs"]),
        "experienceType": lambda memory, wanted: memory["experienceType"] in wanted,
        "_time": lambda memory, wanted: in_range(memory["eventTime"], wanted),
        "before": lambda memory, wanted: memory["eventTime"] < instant_of(wanted),
        "after": lambda memory, wanted: memory["eventTime"] > instant_of(wanted),
        "radius": lambda memory, wanted: distance(memory, parameters["near"]) <= wanted,
        "box": lambda memory, wanted: in_box(memory, wanted),
    }
    active = [(tests[name], wanted) for name, wanted in parameters.items() if name in tests]
    found = [memory for memory in memories if all(test(memory, wanted) for test, wanted in active)]
    return sorted(found, key=lambda memory: memory["eventTime"])


def answer(memories, by_id, parameters):
    """The exact answer, in the form that the question files hold."""
    found = select(memories, by_id, parameters)
    named = parameters.get("entity", [])
    if "unseenSince" in parameters:
        since = parameters["unseenSince"]
        seen = {entity for memory in found if memory["eventTime"] >= since for entity in memory["entityRefs"]}
        mentioned = {entity for memory in found for entity in memory["entityRefs"]}
        return {"entities": sorted(entity for entity in named if entity in mentioned - seen)}
    if parameters.get("distinct") == "entity":
        return {"entities": sorted({entity for memory in found for entity in memory["entityRefs"]})}
    if parameters.get("countBy") == "entity":
        return {"counts": {name: sum(name in memory["entityRefs"] for memory in found) for name in named}}
    if parameters.get("countBy") == "day":
        days = [memory["eventTime"][:10] for memory in found]
        return {"counts": {day: days.count(day) for day in sorted(set(days))}}
    if parameters.get("count"):
        return {"count": len(found)}
    if parameters["order"] == "latest":
        found.reverse()
    elif parameters["order"] == "distance":
        found.sort(key=lambda memory: distance(memory, parameters["near"]))
    return {"ids": [memory["id"] for memory in found[: parameters.get("limit")]]}
