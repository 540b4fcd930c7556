"""Holds docs/keys.md and docs/replies.md against a real daemon, with Zenoh's own client.

Each operation is asked with a parameter that does not exist and answers with those that do: they must be the rows
of its tables, in both directions. What the page says needs the robot's exact name is refused to a wildcard, and
the rest is not. The examples of keys.md are run, and what they are answered must have the
members of the examples in replies.md: no others, but for those that the section names. The codes of errors are
those of core-nostd/src/code.rs.
Usage: keys_check.py OMIRD
"""

import json
import pathlib
import re
import sys
import tempfile

from omird_process import free_port, running

DOCS = pathlib.Path(__file__).parent.parent / "docs"
# What an operation must be given before it looks at the rest.
NEEDED = {
    "forget": "ref=Entity/a",
    "explain": "ref=Entity/a",
    "prove": "ref=Entity/a",
    "anchor": "ref=MemoryRecord/a",
    "feedback": "ref=MemoryRecord/a;outcome=confirmed",
}
# Members that hold what somebody else decides on.
OPEN = {"resource", "entry", "items"}


def sections(page):
    """The text under each heading of the second level."""
    parts = re.split(r"^## (.*)\n", (DOCS / page).read_text(), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def parameters(text):
    """The first cells of a table of parameters."""
    tables = re.findall(r"^\| parameter \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.M)
    return {name for table in tables for name in re.findall(r"^\| `(\w+)` \|", table, re.M)}


def members(value, at=""):
    """Where the members of a value stand, those of a list as one."""
    if isinstance(value, list):
        return set().union(*[members(item, at) for item in value])
    if not isinstance(value, dict):
        return set()
    found = set()
    for name, inner in value.items():
        place = f"{at}.{name}"
        found.add(place)
        if name not in OPEN:
            found |= members(inner, place)
    return found


# Parameters of recall that ask about all matches: an export has none of them.
ASKING = set("count countBy cell distinct unseenSince visits visitGap history spread exactTotal".split())


def check_parameters(ask, keys):
    everywhere = parameters(keys["Requests"])
    assert everywhere == {"format"}, everywhere
    for heading, text in keys.items():
        operation = heading.lower()
        if f"`{operation}`](#" not in keys[""] or operation == "clock":
            continue
        try:
            ask(f"{operation}?{NEEDED.get(operation, '')};noSuchThing=1")
            raise AssertionError(f"{operation} takes noSuchThing")
        except RuntimeError as refused:
            error = json.loads(str(refused))
        assert error["code"] == "INVALID_QUERY" and error["path"] == "/noSuchThing", error
        known = re.search(r"known are ([\w, ]+)|there are none here", error["message"]).group(1)
        known = set(known.split(", ")) if known else set()
        told = parameters(keys["Recall"]) - ASKING if operation == "export" else parameters(text)
        assert told == known, f"{heading}: only on the page {told - known}, not on it {known - told}"
        yield operation


def check_names(session, keys, operations):
    text = re.search(r"\*\*A change names the robot exactly\*\*: (.*?)\n- ", keys["Requests"], re.S).group(1)
    exact, reading = text.split("INVALID_QUERY")
    for operation in operations:
        asked = f"omir/*/{operation}?{NEEDED.get(operation, '')}"
        refused = [reply.err for reply in session.get(asked) if reply.ok is None]
        errors = [json.loads(error.payload.to_string()) for error in refused]
        named = any(f"omir/rover/{operation}" in error["message"] for error in errors)
        assert (f"`{operation}`" in exact) == named, f"omir/*/{operation}: {errors}"
        assert (f"`{operation}`" in reading) != named, f"omir/*/{operation} is not told of as reading"


def check_reply(heading, text, reply):
    example = json.loads(re.search(r"```json\n(.*?)```", text, re.S).group(1))
    told, came = members(example), members(reply)
    assert not told - came, f"{heading}: the page tells of {told - came}, which did not come"
    beside = {place for place in came - told if f"`{place.rsplit('.')[-1]}`" not in text}
    assert not beside, f"{heading}: {beside} came, which the page does not tell of"


def check_codes(text):
    told = set(re.findall(r"^\| `([A-Z_]+)` \|", text, re.M))
    source = (DOCS.parent / "core-nostd/src/code.rs").read_text()
    known = set(re.findall(r'=> "([A-Z_]+)"', source))
    assert known and told == known, f"codes: only on the page {told - known}, not on it {known - told}"


def main():
    page = (DOCS / "keys.md").read_text()
    keys, replies = sections("keys.md"), sections("replies.md")
    check_codes(replies["Errors"])
    keys[""] = page.split("\n## ")[0]
    endpoint = f"tcp/127.0.0.1:{free_port()}"
    blocks = re.findall(r"```python\n(.*?)```", page, re.S)
    setup, examples = blocks[0].replace("tcp/127.0.0.1:7448", endpoint), blocks[1:]
    with tempfile.TemporaryDirectory() as data:
        with running(sys.argv[1], "--robot", "rover", "--data", data, "--listen", endpoint):
            names = {}
            exec(setup, names)
            ask, came = names["ask"], {}

            def noted(selector, payload=None):
                reply = ask(selector, payload)
                came.setdefault(selector.split("?")[0], reply)
                return reply

            names["ask"] = noted
            for example in examples:
                exec(example.replace("/var/lib/omird", data), names)
            compared = 0
            for heading, text in replies.items():
                if "```json" in text:
                    check_reply(heading, text, came[heading.lower()])
                    compared += 1
            checked = list(check_parameters(ask, keys))
            check_names(names["session"], keys, checked)
            names["session"].close()
    assert compared == len(came) == len(checked), (sorted(came), compared, checked)
    print(f"{len(examples)} examples, {compared} replies, the parameters of {len(checked)} operations")


main()
