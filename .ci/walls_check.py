"""Holds the walls between the crates of daemon/, and between the modules in them.

- omird-text compiles nothing of ours, omird-embedding the core and omird-text alone, omird-store no Zenoh, omird-engine no transport and no protocol, and neither the
  router nor a protocol a transport. A protocol does not know another.
- A serial port, MCP, HTTP and the keys of Zenoh know no engine: what is asked there goes by the router.
- The public API of a crate in API fits a page: `lib.rs` names what it exports, has no public module but its rooms, and
  exports at most so many names. `unreachable_pub` keeps the rest from being `pub`. Lower the numbers when they fall.
- No import circle between the top modules of a crate.
- No import circle of more than three files in the engine.
- No error that is a text: `Result<_, String>` in the code of TYPED_ERRORS, tests left out. Nobody can branch on a text.

Imports are the paths that begin with `crate`, `super` or `self` in code that is no test; what a module only hands on
(`pub use`) counts for those who take it.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CRATES = {
    "store": "daemon/store/src",
    "engine": "daemon/engine/src",
    "text": "daemon/text/src",
    "embedding": "daemon/embedding/src",
    "router": "daemon/router/src",
    "access": "daemon/access/src",
    "omir": "daemon/protocols/omir/src",
    "tokens": "daemon/protocols/access/src",
    "experience": "daemon/protocols/experience/src",
    "akashik": "daemon/protocols/akashik/src",
    "compass": "daemon/protocols/compass/src",
    "manifesto": "daemon/protocols/manifesto/src",
    "omird": "daemon/src",
}
TRANSPORTS = "zenoh|tokio|hyper|axum|hiroz|mcap|zmodem2|clap"
# Transports, and the programs and tools that stand above every crate here.
ABOVE = f"{TRANSPORTS}|omir-ros2|omir-tools|omird$"
# What a crate may not even compile: transports, protocols, and what stands above it.
FORBIDDEN = {
    "omird-text": f"{TRANSPORTS}|omir",
    "omird-embedding": f"{ABOVE}|omird-(store|engine|router|protocol)",
    "omird-store": f"{ABOVE}|omird-engine",
    "omird-engine": f"{ABOVE}|omird-(router|protocol)",
    "omird-router": f"{ABOVE}|omird-protocol",
    "omird-access": f"{ABOVE}|omird-protocol",
    "omird-protocol-omir": f"{ABOVE}|omird-protocol",
    "omird-protocol-experience": f"{ABOVE}|omird-protocol",
    "omird-protocol-access": f"{ABOVE}|omird-protocol",
    "omird-protocol-akashik": f"{ABOVE}|omird-protocol",
    "omird-protocol-compass": f"{ABOVE}|omird-protocol",
    "omird-protocol-manifesto": f"{ABOVE}|omird-protocol",
}
# The crates whose public API fits a page: their public modules, and the most names that `lib.rs` exports and that all of
# its rooms do.
API = {
    "store": {"rooms": {"backup", "disk", "format", "inspect"}, "most": 67, "most_in_rooms": 111},
    # `testing` is for the tests of other crates, and hidden in the documentation.
    "engine": {"rooms": {"testing"}, "most": 75, "most_in_rooms": 10},
    "router": {"rooms": {"field", "testing", "tool"}, "most": 53, "most_in_rooms": 16},
    "text": {"rooms": set(), "most": 41, "most_in_rooms": 0},
}
# The transports whose files hold no engine, `NAME.rs` and those in `NAME/`.
WITHOUT_ENGINE = ["mcp", "serial", "http", "zenoh"]
# Files of theirs that hold one, for what the daemon announces by itself: events, sections of the status, the name of a robot.
# So does `ros2.rs`.
WITH_ENGINE = ["http.rs", "http/events.rs", "zenoh.rs", "zenoh/namesake.rs"]
MOST_FILES = 3
# The folders whose errors are types.
TYPED_ERRORS = ["core-nostd/src", "daemon", "ros2/src", "tools/src"]


def forbidden_dependencies():
    for package, pattern in FORBIDDEN.items():
        listing = ["cargo", "tree", "--locked", "-p", package, "-e", "normal,build", "--prefix", "none", "-f", "{p}"]
        tree = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for name in sorted({line.split()[0] for line in tree.splitlines() if line}):
            if name != package and re.match(pattern, name):
                yield f"{package} depends on {name}"


def engines_of_transports():
    source = ROOT / CRATES["omird"]
    for transport in WITHOUT_ENGINE:
        for file in [source / f"{transport}.rs", *sorted((source / transport).rglob("*.rs"))]:
            name = str(file.relative_to(source))
            if re.fullmatch(r"(\w+_)?tests?|testing", file.stem):
                continue
            has_engine = bool(re.search(r"\bEngine\b", without_tests(file.read_text())))
            if has_engine and name not in WITH_ENGINE:
                yield f"{file.relative_to(ROOT)} knows the engine: ask the router"
            elif not has_engine and name in WITH_ENGINE:
                yield f"{file.relative_to(ROOT)} knows no engine any more: take it off the list"


def public_names(text):
    """The names that a module exports by itself, those of its inline public modules among them."""
    names = [path[-1] for tree in re.findall(r"\bpub use ([^;]+);", text) for path in flatten(tree)]
    item = r"^(?: {4})?pub (?:const |unsafe )*(?:fn|struct|enum|trait|type|const|static|union) (\w+)"
    # Items of an inline module are indented once, and so are the methods of a type: those follow an `impl`.
    bodies = re.sub(r"^(?:impl|pub (?:struct|enum|trait))\b[^;{]*\{.*?^\}", lambda m: m[0].split("{")[0], text, flags=re.S | re.M)
    return names + re.findall(item, bodies, flags=re.M)


def wide_apis():
    for name, bounds in API.items():
        source = ROOT / CRATES[name]
        text = without_tests((source / "lib.rs").read_text())
        if not re.search(r"#!\[(warn|deny|forbid)\([^)]*\bunreachable_pub\b", text):
            yield f"{name}: lib.rs does not turn the lint unreachable_pub on"
        rooms = set(re.findall(r"^pub mod (\w+)\b", text, flags=re.M))
        for room in sorted(rooms ^ bounds["rooms"]):
            yield f"{name}: `pub mod {room}` is {'no room of the list' if room in rooms else 'gone: take it off the list'}"
        exported = public_names(text)
        if "*" in exported:
            yield f"{name}: lib.rs exports a glob; name what is exported"
        files = [source / f"{room}.rs" for room in sorted(rooms)]
        files = [file if file.exists() else file.with_suffix("") / "mod.rs" for file in files]
        inside = [public for file in files for public in public_names(without_tests(file.read_text()))]
        for what, count, most in [("lib.rs", len(exported), bounds["most"]), ("the rooms", len(inside), bounds["most_in_rooms"])]:
            if count != most:
                yield f"{name}: {what} exports {count} names, the list says {most}: {'too many' if count > most else 'lower it'}"


def without_tests(text):
    """Code without comments, texts and the tests at its end."""
    text = re.sub(r"#\[cfg\(test\)\]\s*(pub(\(\w+\))? )?mod \w+ \{.*\Z", "", text, flags=re.S)
    text = re.sub(r"#\[cfg\(test\)\]\s*(pub(\([^)]*\))? )?(use|mod) [^;]*;", "", text)
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r'"(\\.|[^"\\])*"', '""', text)


def arguments(text, begin):
    """The types between the brackets that open before a place: `Result<` gives what is written up to its `>`."""
    depth, found = 0, [""]
    for before, char in zip(text[begin - 1 :], text[begin:]):
        if char == ">" and before != "-":
            if depth == 0:
                return [one.strip() for one in found if one.strip()]
            depth -= 1
        depth += char in "<([{"
        depth -= char in ")]}"
        if char == "," and depth == 0:
            found.append("")
        else:
            found[-1] += char
    return found


def errors_that_are_texts():
    for folder in TYPED_ERRORS:
        files = [file for file in sorted((ROOT / folder).rglob("*.rs")) if "target" not in file.parts]
        tests = set()
        for file in files:
            base = file.parent if file.stem in ("lib", "main", "mod") else file.with_suffix("")
            for name in re.findall(r"#\[cfg\(test\)\]\s*mod (\w+);", file.read_text()):
                tests |= {base / f"{name}.rs", base / name}
        for file in files:
            parts = file.relative_to(ROOT).with_suffix("").parts
            if any(re.fullmatch(r"(\w+_)?tests?|testing|benches|examples", part) for part in parts) or tests & {file, *file.parents}:
                continue
            text = without_tests(file.read_text())
            for found in re.finditer(r"\bResult<", text):
                if arguments(text, found.end())[1:] == ["String"]:
                    yield f"{file.relative_to(ROOT)} has a Result<_, String>: name what may go wrong in a type"


def flatten(tree, prefix=()):
    """The paths of a tree of imports: `a::{b, c::d}` names a::b and a::c::d."""
    tree = tree.strip()
    head, brace, rest = tree.partition("{")
    if not brace:
        path = re.sub(r"\s+as\s+\w+$", "", tree)
        yield prefix + tuple(part.strip() for part in path.split("::") if part.strip())
        return
    base = prefix + tuple(part.strip() for part in head.split("::") if part.strip())
    depth, item = 0, ""
    for char in rest.rstrip().removesuffix("}") + ",":
        if char == "," and depth == 0:
            if item.strip():
                yield from flatten(item, base)
            item = ""
            continue
        depth += {"{": 1, "}": -1}.get(char, 0)
        item += char


class Crate:
    """The modules of a crate, by path, and what each imports."""

    def __init__(self, source):
        self.texts, self.handed_on = {}, {}
        for file in sorted((ROOT / source).rglob("*.rs")):
            parts = list(file.relative_to(ROOT / source).with_suffix("").parts)
            if parts[-1] in ("lib", "main", "mod"):
                parts.pop()
            if not any(re.fullmatch(r"(\w+_)?tests?|testing", part) for part in parts):
                self.texts[tuple(parts)] = without_tests(file.read_text())
        # Other crates under a name of the root's.
        uses = re.findall(r"\n(?:pub(?:\([^)]*\))? )?use ([^;]+);", self.texts[()])
        paths = [(tree, path) for tree in uses for path in flatten(tree)]
        self.foreign = {
            re.split(r"\bas\b", tree)[-1].strip() if " as " in tree else path[-1]
            for tree, path in paths
            if path[0] not in ("crate", "self", "super") and path[:1] not in self.texts
        }
        for module, text in self.texts.items():
            for tree in re.findall(r"\bpub(?:\([^)]*\))? use ([^;]+);", text):
                for path in flatten(tree):
                    target = self.absolute(module, path)
                    if target and path[-1] != "*":
                        self.handed_on[module + (path[-1],)] = target
        self.imports = {module: self.imported(module, text) for module, text in self.texts.items()}

    def absolute(self, module, path):
        """A path from the root of the crate, or nothing if it leads out of it."""
        if not path or path[0] not in ("crate", "self", "super"):
            return module + path if path and module + path[:1] in self.texts else None
        base = {"crate": (), "self": module, "super": module[:-1]}[path[0]]
        path = path[1:]
        while path and path[0] == "super":
            base, path = base[:-1], path[1:]
        is_foreign = not base and path and path[0] in self.foreign and path[:1] not in self.texts
        return None if is_foreign else base + path

    def module_of(self, path):
        """The module that an item lies in, past those that only hand it on."""
        for length in range(1, len(path) + 1):
            if path[:length] in self.handed_on and path[:length] not in self.texts:
                return self.module_of(self.handed_on[path[:length]] + path[length:])
        while path not in self.texts:
            path = path[:-1]
        return path

    def imported(self, module, text):
        taken = re.sub(r"\bpub(\([^)]*\))? use [^;]+;", "", text)
        uses = re.findall(r"\buse ([^;]+);", taken)
        paths = [path for tree in uses for path in flatten(tree)]
        inline = re.sub(r"\buse [^;]+;", "", taken)
        paths += [tuple(path.split("::")) for path in re.findall(r"\b(?:crate|self|super)(?:::\w+)+", inline)]
        found = {self.module_of(target) for target in map(lambda p: self.absolute(module, p), paths) if target is not None}
        return found - {module}


def circles(graph):
    """The strongly connected parts of a graph that have several nodes (Tarjan)."""
    index, low, stack, on, found, count = {}, {}, [], set(), [], [0]

    def visit(node):
        index[node] = low[node] = count[0]
        count[0] += 1
        stack.append(node)
        on.add(node)
        for other in sorted(graph.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            part = []
            while not part or part[-1] != node:
                part.append(stack.pop())
                on.discard(part[-1])
            if len(part) > 1:
                found.append(sorted(part))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def found_circles():
    """All circles that the rules forbid, each as the modules in it."""
    for name, source in CRATES.items():
        crate = Crate(source)
        tops = {}
        for module, imports in crate.imports.items():
            if module:
                tops.setdefault(module[0], set()).update(other[0] for other in imports if other and other[0] != module[0])
        for circle in circles(tops):
            yield f"{name} modules: " + " ".join(circle)
        if name == "engine":
            for circle in circles(crate.imports):
                if len(circle) > MOST_FILES:
                    yield f"{name} files: " + " ".join("/".join(module) or "lib" for module in circle)


def main():
    sys.setrecursionlimit(10_000)
    wrong = [*forbidden_dependencies(), *engines_of_transports(), *wide_apis(), *errors_that_are_texts()]
    wrong += [f"an import circle: {line}" for line in found_circles()]
    print("\n".join(wrong) or "the walls stand")
    sys.exit(bool(wrong))


main()
