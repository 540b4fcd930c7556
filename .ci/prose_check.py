"""Counts comments that open with a question word, by crate, and fails if there are too many.

A comment is a block of `///` or `//!`, or one of `//`; its first line counts. One that opens with What, Whether, Who or Where
makes the reader assemble the noun: write "Returns true if …" or name the thing. Doc comments have one limit for the whole
tree. No other comment may open so.
Usage: prose_check.py [--list FOLDER], which shows the comments in a folder, also those with How, When, Which and Why.
"""

import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# In percent, of the doc comments of the tree.
LIMIT = 1
# In percent, of the other comments of each crate.
PLAIN_LIMIT = 0
QUESTION = re.compile(r"(What|Whether|Who|Where)\b")
ANY_QUESTION = re.compile(r"(What|Whether|Who|Where|How|When|Which|Why)\b")
COMMENT = re.compile(r"\s*(///|//!|//)(?!/)\s?(.*)")


def comments():
    """File, line, kind and first text of each comment in tracked sources."""
    files = subprocess.run(["git", "-C", str(ROOT), "ls-files", "*.rs"], capture_output=True, text=True, check=True)
    for name in files.stdout.split():
        before = None
        for number, line in enumerate((ROOT / name).read_text().splitlines(), 1):
            found = COMMENT.match(line)
            if found and found[1] != before:
                yield name, number, "plain" if found[1] == "//" else "doc", found[2]
            before = found and found[1]


def crate_of(name):
    folder = pathlib.PurePosixPath(name).parent
    while not (ROOT / folder / "Cargo.toml").exists():
        folder = folder.parent
    return str(folder)


def limit_of(kind, group):
    """The limit of a line in percent, or None: doc comments are limited as a whole, others by crate."""
    if kind == "doc":
        return LIMIT if group == "all" else None
    return None if group == "all" else PLAIN_LIMIT


def main():
    if sys.argv[1:2] == ["--list"]:
        for name, number, _, text in comments():
            if name.startswith(sys.argv[2]) and ANY_QUESTION.match(text):
                print(f"{name}:{number}: {text}")
        return
    total, open_with = collections.Counter(), collections.Counter()
    for name, _, kind, text in comments():
        for group in crate_of(name), "all":
            total[kind, group] += 1
            open_with[kind, group] += bool(QUESTION.match(text))
    wrong = []
    for kind, title in ("doc", "doc comments"), ("plain", "other comments"):
        print(f"{title}:")
        for group in sorted(group for of, group in total if of == kind):
            share = 100 * open_with[kind, group] / total[kind, group]
            limit = limit_of(kind, group)
            most = "" if limit is None else f", at most {limit} %"
            if limit is not None and share > limit:
                wrong.append(f"{group}: more than {limit} % of the {title} open with What, Whether, Who or Where: see --list")
            print(f"{share:5.1f} %  {open_with[kind, group]:4} of {total[kind, group]:5}  {group}{most}")
    if wrong:
        sys.exit("\n".join(wrong))


main()
