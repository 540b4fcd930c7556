"""Checks that the programs and the tests choose the same features of Zenoh and of all that it depends on.

Cargo builds a package once for each set of features. A test's dependency that switches one more on, deep below Zenoh, has
Zenoh compiled twice: for `cargo build`, and for `cargo test`. If this fails, ask for the feature in daemon/Cargo.toml, as
the others there "not for our own use".
"""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def features(*options):
    """Package and version, and each set of features that it is built with."""
    listing = ["cargo", "tree", "--locked", *options, "--prefix", "none", "-f", "{p}|{f}"]
    tree = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = {}
    for line in tree.splitlines():
        package, bar, chosen = line.removesuffix(" (*)").partition("|")
        if bar:
            found.setdefault(" ".join(package.split()[:2]), set()).add(chosen)
    return found


def main():
    below = features("-p", "zenoh", "-e", "normal,build")
    programs = features("-p", "omird", "-p", "omir-tools", "-e", "normal,build")
    tests = features("--workspace", "-e", "normal,build,dev")
    wrong = [
        f"{package}: the programs have {' and '.join(sorted(programs[package] - tests[package]))}; the tests "
        f"{' and '.join(sorted(tests[package]))}"
        for package in sorted(below.keys() & programs.keys())
        if not programs[package] <= tests[package]
    ]
    print("\n".join(wrong) or f"one build: {len(below)} packages at and below Zenoh have the same features everywhere")
    sys.exit(bool(wrong))


main()
