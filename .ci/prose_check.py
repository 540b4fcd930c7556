"""Counts doc comments that open with a question word, by crate, and fails if there are too many.

A comment is a block of `///` or `//!`; its first line counts. One that opens with What, Whether, Who or Where makes the
reader assemble the noun: write "Returns true if …" or name the thing. The limit is for the whole tree.
Usage: prose_check.py [--list FOLDER], which shows the comments in a folder, also those with How, When, Which and Why.
"""

import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# In percent.
LIMIT = 3
QUESTION = re.compile(r"(What|Whether|Who|Where)\b")
ANY_QUESTION = re.compile(r"(What|Whether|Who|Where|How|When|Which|Why)\b")


def comments():
    """File, line and first text of each doc comment in tracked sources."""
    files = subprocess.run(["git", "-C", str(ROOT), "ls-files", "*.rs"], capture_output=True, text=True, check=True)
    for name in files.stdout.split():
        before = None
        for number, line in enumerate((ROOT / name).read_text().splitlines(), 1):
            found = re.match(r"\s*(///|//!)\s?(.*)", line)
            if found and found[1] != before:
                yield name, number, found[2]
            before = found and found[1]


def crate_of(name):
    folder = pathlib.PurePosixPath(name).parent
    while not (ROOT / folder / "Cargo.toml").exists():
        folder = folder.parent
    return str(folder)


def main():
    if sys.argv[1:2] == ["--list"]:
        for name, number, text in comments():
            if name.startswith(sys.argv[2]) and ANY_QUESTION.match(text):
                print(f"{name}:{number}: {text}")
        return
    total, open_with = collections.Counter(), collections.Counter()
    for name, _, text in comments():
        for group in crate_of(name), "all":
            total[group] += 1
            open_with[group] += bool(QUESTION.match(text))
    for group in sorted(total):
        share = 100 * open_with[group] / total[group]
        print(f"{share:5.1f} %  {open_with[group]:4} of {total[group]:5}  {group}")
    if 100 * open_with["all"] > LIMIT * total["all"]:
        sys.exit(f"more than {LIMIT} % of the doc comments open with What, Whether, Who or Where: see --list")


main()
