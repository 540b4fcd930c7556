"""Holds the schemas of `omir schema` against `omir validate`, with a library that is not ours.

Documents of the test data are changed at random, from a fixed seed, and both must come to the same
verdict on what a schema can say.
Usage: schema_check.py OMIR FOLDER_WITH_DOCUMENTS [CHANGED_DOCUMENTS]
"""

import copy
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile

import jsonschema

# What a schema can say: envelope, types, fields, release. Not references, ids or metadata as such.
SHAPE = {"E100", "E101", "E110", "E111", "E120", "E300", "E301"}

INSTANTS = """2026-05-30T11:42:05Z|2024-02-29t00:00:00.5+23:59|2023-02-29T00:00:00Z|2000-02-29T00:00:00Z
2016-12-31T23:59:60Z|2017-01-01T05:29:60+05:30|2016-12-31T14:59:60-09:00|2016-12-31T23:59:60+01:00
2016-12-31T23:58:60Z|2026-05-30T24:00:00Z|2026-05-30T11:42:05|2026-05-30T11:42:05Z~|~2026-05-30T11:42:05Z
٢٠٢٦-05-30T11:42:05Z|2026-04-31T00:00:00Z|2026-05-30T11:42:05-00:60|2026-05-30T11:42:05.Z|2026-05-30"""
URIS = """a:|a:/|a://|urn:omird:ext:x|http://u:p@[::1]:80/a?b#c|http://[v1.x]|http://[x]/|a:%4|a:%41|a:b#c#d
http://a:b:c|http://h:8x/|http://@|1a:x|a b:x|a:ü|a:x~|mailto:a@b.c|//omir.io|http://a@b@c|a:[b]"""
# Line breaks at both ends: "$" and "." mean different things to different engines.
TEXTS = [
    text.replace("~", mark)
    for lines in (INSTANTS, URIS)
    for text in lines.replace("\n", "|").split("|")
    for mark in (["\n", "\r\n", "\u2028"] if "~" in text else ["~"])
]
NUMBERS = [0, -0.0, 1, 1.0, -1, 0.5, 1.5, 2, 5, 6.0, 1e3, 1e-300, 2**70]
WORDS = ["", "R1", "memory", "Entity", "Bundle", "Entity/a", "Entity/a\n", "Thing/a", "x" * 128, "x" * 129]
OTHERS = [None, True, [], {}, [None], {"a": 1}, {"a": "b"}, {"ref": "Entity/a"}, [{"ref": "Entity/a"}]]
OTHERS += [{"omirVersion": "R1"}, ["person"], [{"url": "a:"}]]

ENVELOPE = {"resourceType": "Bundle", "omirVersion": "R1"}
EPISODE = {"resourceType": "Episode", "id": "a", "content": "", "createdAt": "2026-01-01T00:00:00Z"}


def documents(folder):
    def finite(text):
        return float(text) if math.isfinite(float(text)) else 1.5

    for path in sorted(pathlib.Path(folder).glob("*.omir")):
        yield json.loads(path.read_text(), parse_float=finite)


def names(schema):
    found = {"unknown", "created_at"}
    for definition in [schema, *schema["$defs"].values()]:
        found.update(definition.get("properties", {}))
    return sorted(found)


def places(value):
    """Every place in a document, as its container and key."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield value, key
        if isinstance(inner, (dict, list)):
            yield from places(inner)


def change(document, fields, chance):
    container, key = chance.choice(list(places(document)))
    is_number = isinstance(container[key], (int, float))
    pool = NUMBERS if is_number else chance.choice([TEXTS, WORDS, NUMBERS, OTHERS])
    border = copy.deepcopy(chance.choice(pool))
    match chance.randrange(4):
        case 0 if isinstance(container, dict):
            del container[key]
        case 1 if isinstance(container, dict):
            container[chance.choice(fields)] = border
        case 2 if isinstance(container, dict):
            container[chance.choice(fields)] = container.pop(key)
        case _:
            container[key] = border


def changed(originals, fields, count):
    yield from originals
    for text in TEXTS + WORDS:
        yield {**ENVELOPE, "generatedAt": text, "id": "a", "entry": []}
        yield {**ENVELOPE, "id": text, "entry": []}
        yield {**ENVELOPE, "entry": [{**EPISODE, "extension": [{"url": text}]}]}
        yield {**ENVELOPE, "entry": [{**EPISODE, "entityRefs": [{"ref": text}]}]}
    chance = random.Random(2026)
    for _ in range(count):
        document = copy.deepcopy(chance.choice(originals))
        entries = document["entry"]
        document["entry"] = chance.sample(entries, min(len(entries), 2))
        for _ in range(chance.choice([1, 1, 2])):
            change(document, fields, chance)
        yield document


def verdicts(omir, changed_documents):
    """What `omir validate` says, once for all documents."""
    with tempfile.TemporaryDirectory() as folder:
        for number, document in enumerate(changed_documents):
            path = pathlib.Path(folder, f"{number:06}.omir")
            path.write_text(json.dumps(document, allow_nan=False, ensure_ascii=False))
        ran = subprocess.run(
            [omir, "validate", "--format", "json", folder], capture_output=True, text=True
        )
    assert ran.returncode in (0, 1), ran.stderr
    for line in ran.stdout.strip().split("\n"):
        yield not any(finding["code"] in SHAPE for finding in json.loads(line)["findings"])


def main():
    omir, folder = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 1000
    schema = json.loads(subprocess.run([omir, "schema"], capture_output=True, check=True).stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    tried = list(changed(list(documents(folder)), names(schema), count))
    accepted = 0
    for document, expected in zip(tried, verdicts(omir, tried), strict=True):
        error = jsonschema.exceptions.best_match(validator.iter_errors(document))
        assert (error is None) == expected, f"{error}\n{json.dumps(document)}"
        accepted += expected
    assert count / 10 < accepted < count * 9 / 10, f"{accepted} of {count} say little"
    print(f"{len(tried)} passed, 0 failed")


main()
