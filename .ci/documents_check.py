"""Holds the documents against the tree: links, names of sources, the invariants of ARCHITECTURE.md, extensions, the keys that a
reload takes over, and what crates say.

Behind each invariant stand the files that hold or test it, and each of these cites it by its number; no file cites one
behind which it does not stand. A folder stands for the files in it; a name alone lies beside the one before it.
Usage: documents_check.py
"""

import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
CITATION = re.compile(r"[Ii]nvariants? (\d+(?:(?:,| and|, and) \d+)*) of ARCHITECTURE\.md")
# Where a path in ARCHITECTURE.md may begin; `store/` stands for the sources of the crate in `daemon/store`.
ROOMS = ["", "daemon/src/", "daemon/engine/src/"]
CRATES = ["engine", "store"]
# What a room stands for in a path that a page or a comment names.
SHORT = {
    "engine": "daemon/engine/src",
    "store": "daemon/store/src",
    "router": "daemon/router/src",
    "protocols": "daemon/protocols",
}


def tracked(*patterns):
    list_files = ["git", "-C", str(ROOT), "ls-files", *patterns]
    return subprocess.run(list_files, capture_output=True, text=True, check=True).stdout.split()


def unquoted(page):
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page, flags=re.S | re.M)


def anchors(path):
    headings = re.findall(r"^#+ (.*)$", unquoted(path.read_text()), re.M)
    plain = (re.sub(r"[^\w\- ]", "", heading.strip().lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}


def broken_links():
    for name in tracked("*.md"):
        page = ROOT / name
        for link in re.findall(r"\]\(([^)\s]+)\)", unquoted(page.read_text())):
            if re.match(r"\w+:", link):
                continue
            file, _, anchor = link.partition("#")
            target = page.parent / file if file else page
            if not target.exists():
                yield f"{name}: {link} is not there"
            elif anchor and target.suffix == ".md" and anchor not in anchors(target):
                yield f"{name}: {link}: no such heading"


def places(token):
    """Where a path of ARCHITECTURE.md may lie."""
    crate, _, rest = token.partition("/")
    return [room + token for room in ROOMS] + ([f"daemon/{crate}/src/{rest}"] if crate in CRATES else [])


def missing_sources():
    """Sources that a page or a comment names and that are not there. A comment may name a file of others by its bare name."""
    files = tracked("*.rs")
    shapes = {"*.md": r"([\w./-]+\.rs)\b", "*.rs": r"^\s*//.*?([\w.-]+/[\w./-]+\.rs)\b"}
    for pattern, shape in shapes.items():
        for name in tracked(pattern):
            for path in re.findall(shape, (ROOT / name).read_text(), re.M):
                room, _, rest = path.partition("/")
                whole = SHORT.get(room, room) + f"/{rest}" if rest else path
                if not any(f"/{file}".endswith(f"/{whole.lstrip('./')}") for file in files):
                    yield f"{name}: {path} is not there"


def stated():
    """The paths behind each invariant, and what is wrong with them."""
    page = (ROOT / "ARCHITECTURE.md").read_text()
    section = page.split("\n## Invariants\n")[1].split("\n## ")[0]
    behind, wrong = {}, []
    for number, text in re.findall(r"^(\d+)\. (.*?)(?=^\d+\. |\Z)", section, re.M | re.S):
        behind[int(number)], beside = [], None
        for token in re.findall(r"`([^`\s]+)`", text):
            is_file = token.endswith((".rs", ".py"))
            if not is_file and ("/" not in token or token.endswith("/")):
                continue
            is_beside = beside and "/" not in token
            paths = [f"{beside}/{token}"] if is_beside else places(token)
            found = [path for path in paths if (ROOT / path).exists()]
            if found:
                behind[int(number)].append(found[0])
                beside = pathlib.Path(found[0]).parent
            else:
                wrong.append(f"ARCHITECTURE.md, invariant {number}: {token} is not there")
    numbers = list(behind)
    if numbers != list(range(1, len(numbers) + 1)):
        wrong.append(f"ARCHITECTURE.md: invariants are numbered {numbers}")
    return behind, wrong


def cited():
    """The numbers that each file cites."""
    files = {}
    for name in tracked("*.rs", "*.py", "tests/fuzz/README.md"):
        # A comment may go on in the next line.
        text = re.sub(r"\n\s*(//[/!]?|#) ?", " ", (ROOT / name).read_text())
        for numbers in CITATION.findall(text):
            files.setdefault(name, set()).update(map(int, re.findall(r"\d+", numbers)))
    return files


def stands_behind(file, paths):
    return any(file == path or file.startswith(f"{path}/") for path in paths)


def loose_invariants():
    behind, wrong = stated()
    files = cited()
    yield from wrong
    for number, paths in behind.items():
        if not paths:
            yield f"ARCHITECTURE.md: nothing stands behind invariant {number}"
        for path in paths:
            citing = (f for f, numbers in files.items() if number in numbers)
            if not any(stands_behind(file, [path]) for file in citing):
                yield f"{path}: does not cite invariant {number}, behind which it stands"
    for file, numbers in files.items():
        for number in sorted(numbers):
            if not stands_behind(file, behind.get(number, [])):
                yield f"{file}: cites invariant {number}, behind which it does not stand"


def loose_extensions():
    """What the code mints, what extensions.md describes and what CONFORMANCE.md declares are the same."""
    minted = set()
    for name in tracked("*.rs"):
        text = (ROOT / name).read_text()
        minted |= set(re.findall(r'const \w+: &str = "(urn:omird:ext:[\w-]+)"', text))
    described = re.findall(r"^## `(.*)`$", (ROOT / "docs/extensions.md").read_text(), re.M)
    declared = (ROOT / "docs/CONFORMANCE.md").read_text().split("| Extensions emitted |")[1]
    declared = re.findall(r"`([^`]*)`", declared.split("\n")[0])
    ours = {url for url in described if url.startswith("urn:")}
    for url in sorted(set(described) ^ set(declared) | minted ^ ours):
        yield f"{url}: not in the code, docs/extensions.md and docs/CONFORMANCE.md alike"


def keys_of_sections():
    """The keys of each section of the configuration, those before all sections under the name of none."""
    code = "\n".join(file.read_text() for file in sorted((ROOT / "daemon/src/config").rglob("*.rs")))
    structs = dict(re.findall(r"^pub struct (\w+) \{(.*?)^\}", code, re.M | re.S))
    fields = {name: re.findall(r"^    pub (\w+): (.*),$", body, re.M) for name, body in structs.items()}
    keys = {"": {name for name, kind in fields["File"] if "Section" not in kind}}
    return keys | {name: {key for key, _ in fields[kind]} for name, kind in fields["File"] if kind in fields}


def stale_reloads():
    """Keys that docs/operations.md lists otherwise than `LIVE` of reload.rs has them."""
    code = (ROOT / "daemon/src/config/reload.rs").read_text().split("const LIVE")[1].split("];")[0]
    live = {}
    for key in re.findall(r'^    "([\w.]+)",$', code, re.M):
        section, _, name = key.rpartition(".")
        live.setdefault(section, set()).add(name)
    page = (ROOT / "docs/operations.md").read_text().split("\n### Reloading\n")[1].split("\n#")[0]
    rows = re.findall(r"^\| (before all sections|`\[\w+\]`) \|(.*)\|(.*)\|$", page, re.M)
    known, told = keys_of_sections(), {}
    for section, at_once, waits in rows:
        section = section.strip("`[]") if "[" in section else ""
        named, left = (set(re.findall(r"`(\w+)`", cell)) for cell in (at_once, waits))
        told[section] = known.get(section, set()) - left if at_once.strip().startswith("all") else named
        for key in sorted(known.get(section, set()) ^ (told[section] | left)):
            yield f"docs/operations.md, Reloading: [{section}] has or lacks `{key}`, other than daemon/src/config"
    for section in sorted(live.keys() | told.keys()):
        for key in sorted(live.get(section, set()) ^ told.get(section, set())):
            yield f"docs/operations.md, Reloading: [{section}] `{key}` takes effect otherwise than daemon/src/config/reload.rs has it"


def unfit_crates():
    """Crates that are meant to be published, which is all without `publish = false`, and lack what a registry shows."""
    for name in tracked("Cargo.toml", "*/Cargo.toml"):
        package = tomllib.loads((ROOT / name).read_text()).get("package")
        if package is None or package.get("publish") is False:
            continue
        folder = (ROOT / name).parent
        needed = ["description", "license", "repository", "readme", "keywords", "categories"]
        for lacking in (key for key in needed if not package.get(key)):
            yield f"{name}: no {lacking}"
        if not (folder / package.get("readme", "README.md")).is_file():
            yield f"{name}: its readme is not there"
        if not (folder / "LICENSE").is_file():
            yield f"{name}: no LICENSE beside it, so that its package would have none"


def main():
    wrong = [*broken_links(), *missing_sources(), *loose_invariants(), *loose_extensions(), *stale_reloads(), *unfit_crates()]
    print("\n".join(wrong) or "links, sources, invariants, extensions, reloads and crates agree with the tree")
    sys.exit(bool(wrong))


main()
