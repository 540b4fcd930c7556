"""The examples for ROS against the definitions of the messages they use; needs no ROS.

Nothing is built: this reads. In Python (by its syntax tree) and in C++ (by its tokens) the type of
each variable is followed from imports, annotations and declarations, and each field that is set or read
must be one of that type; a number for a sequence, or an integer for a float, is a mistake too. What has
the name of a field of omir_msgs must be of a known type, so that nothing passes because the reader lost
its way. Calls of `ros2 service call` in the documents are read as well.
Usage: ros2_examples_check.py [ROOT]
"""

import ast
import pathlib
import py_compile
import re
import sys
import tempfile
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
EXAMPLES = ROOT / "ros2" / "examples"
OURS = ROOT / "ros2" / "omir_msgs"
DOCUMENTS = ["README.md", "docs/ros2.md"]
FLOATS = {"float32", "float64"}
INTEGERS = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)} | {"byte", "char"}
PRIMITIVE = FLOATS | INTEGERS | {"bool", "string", "wstring"}

problems = []
uses = {}


def problem(where, line, text):
    problems.append(f"{where.relative_to(ROOT)}:{line}: {text}")


# -- Definitions

class Type:
    """A message (or one part of a service or action): its fields and constants."""

    def __init__(self, name):
        self.name, self.fields, self.constants = name, {}, set()


def definitions():
    """All types by name, `omir_msgs/msg/Filter` or `omir_msgs/srv/Recall/Request`."""
    types = {}
    packages = [OURS, *(p for p in sorted((ROOT / "ros2" / "interfaces").iterdir()) if p.is_dir())]
    parts = {"msg": [""], "srv": ["/Request", "/Response"], "action": ["/Goal", "/Result", "/Feedback"]}
    for package in packages:
        for kind, ends in parts.items():
            for file in sorted((package / kind).glob(f"*.{kind}")):
                texts = re.split(r"^---[ \t]*$", file.read_text(), flags=re.MULTILINE)
                if len(texts) != len(ends):
                    problem(file, 1, f"{len(texts)} parts; a .{kind} has {len(ends)}")
                for end, text in zip(ends, texts):
                    one = Type(f"{package.name}/{kind}/{file.stem}{end}")
                    types[one.name] = one
                    read_definition(one, package.name, text)
    return types


def read_definition(one, package, text):
    for line in text.splitlines():
        line = re.sub(r"#.*", "", line) if '"' not in line else re.sub(r'"\s*#.*', '"', line)
        if not line.strip():
            continue
        kind, rest = line.split(None, 1)
        constant = re.match(r"([A-Z][A-Z0-9_]*)\s*=", rest)
        if constant:
            one.constants.add(constant[1])
            continue
        name = rest.split()[0]
        sequence = re.search(r"\[[^]]*\]$", kind)
        kind = re.sub(r"\[[^]]*\]$|<=\d+", "", kind)
        if kind not in PRIMITIVE:
            around = kind.split("/")
            kind = f"{package}/msg/{kind}" if len(around) == 1 else f"{around[0]}/msg/{around[-1]}"
        one.fields[name] = Of(kind, bool(sequence))


class Of:
    """What an expression is: of a message or a primitive type, one of it or a sequence; or a class."""

    def __init__(self, name, many=False, is_class=False):
        self.name, self.many, self.is_class = name, many, is_class

    def element(self):
        return Of(self.name) if self.many else None

    def __str__(self):
        return f"{'class ' * self.is_class}{self.name}{'[]' * self.many}"


TYPES = definitions()
NAMES = {field for one in TYPES.values() if one.name.startswith("omir_msgs/") for field in one.fields}
# Also names of what is no message: of files, of nodes, of strings.
COMMON = {"path", "name", "count", "source", "time", "key", "value", "stamp"}


def field_of(where, line, base, name):
    """The type of a field; a complaint if there is none."""
    if base is None:
        if name in NAMES - COMMON:
            problem(where, line, f"`.{name}` of what? its type cannot be told: annotate it")
        return None
    if base.many or base.name not in TYPES:
        problem(where, line, f"`.{name}` of {base}, which has no fields")
        return None
    found = TYPES[base.name].fields.get(name)
    if found is None:
        problem(where, line, f"{base.name} has no field `{name}`; it has {', '.join(TYPES[base.name].fields)}")
        return None
    uses.setdefault(where, {}).setdefault(base.name, set()).add(name)
    return found


def fits(where, line, wanted, given, what):
    """Whether `given`, the name of a kind of value, can be put into a field."""
    if wanted is None or given is None:
        return
    if given == "list" or wanted.many:
        good = wanted.many and given == "list"
    else:
        good = {
            "float": wanted.name in FLOATS,
            "int": wanted.name in INTEGERS,
            "bool": wanted.name == "bool",
            "str": wanted.name in ("string", "wstring"),
        }[given]
    if not good:
        problem(where, line, f"`{what}` is {wanted}, and is given {given}")


def part(base, name):
    """`Request` of the class `Recall`."""
    inner = f"{base.name}/{name}"
    return Of(inner, is_class=True) if inner in TYPES else None


def class_named(package, kind, name):
    """The class of an interface, `None` if its package is none that is known here."""
    full = f"{package}/{kind}/{name}"
    if any(one == full or one.startswith(full + "/") for one in TYPES):
        return Of(full, is_class=True)
    return None


def is_known(package):
    return any(one.startswith(package + "/") for one in TYPES)


def constant_of(where, line, base, name):
    inner = part(base, name)
    if inner:
        return inner
    if base.name not in TYPES or name not in TYPES[base.name].constants:
        problem(where, line, f"{base.name} has no constant `{name}`")
    else:
        uses.setdefault(where, {}).setdefault(base.name, set()).add(name)
    return None


# -- Python

class Python(ast.NodeVisitor):
    """Follows types through one file."""

    def __init__(self, where):
        self.where, self.scopes, self.packages = where, [{}], {}
        # What functions return, by their names; of a class too, where each name is there once.
        self.returns = {}
        tree = ast.parse(where.read_text(), str(where))
        self.functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                self.visit_ImportFrom(node)
        for function in self.functions:
            if function.returns is not None:
                self.returns[function.name] = self.annotated(function.returns)
        self.visit(tree)

    def visit_Import(self, node):
        for one in node.names:
            self.packages[one.name.split(".")[0]] = node.lineno

    def visit_ImportFrom(self, node):
        package, _, kind = (node.module or "").partition(".")
        self.packages[package] = node.lineno
        if kind in ("msg", "srv", "action") and is_known(package):
            for one in node.names:
                found = class_named(package, kind, one.name)
                if found is None:
                    problem(self.where, node.lineno, f"there is no {package}/{kind}/{one.name}")
                self.scopes[0][one.asname or one.name] = found

    def look(self, name):
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), None)

    def annotated(self, node):
        """What an annotation means: an instance of the class."""
        if isinstance(node, ast.BinOp):
            return self.annotated(node.left) or self.annotated(node.right)
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            inner = self.annotated(node.slice)
            is_list = node.value.id in ("list", "Sequence", "Iterable")
            return Of(inner.name, True) if inner and is_list else inner
        found = self.type_of(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
        return Of(found.name) if found and found.is_class else None

    def visit_FunctionDef(self, node):
        self.scopes.append({})
        for argument in node.args.args + node.args.kwonlyargs:
            self.scopes[-1][argument.arg] = self.annotated(argument.annotation) if argument.annotation else None
        for statement in node.body:
            self.visit(statement)
        self.scopes.pop()

    def visit_Assign(self, node):
        given = self.type_of(node.value)
        for target in node.targets:
            self.put(target, given, node.value)

    def visit_AnnAssign(self, node):
        self.type_of(node.value) if node.value else None
        self.put(node.target, self.annotated(node.annotation), None)

    def visit_AugAssign(self, node):
        self.type_of(node.target), self.type_of(node.value)

    def visit_For(self, node):
        over = self.type_of(node.iter)
        self.put(node.target, over.element() if over else None, None)
        for statement in node.body + node.orelse:
            self.visit(statement)

    def visit_Expr(self, node):
        self.type_of(node.value)

    def generic_visit(self, node):
        if isinstance(node, ast.expr):
            self.type_of(node)
        else:
            super().generic_visit(node)

    def put(self, target, given, value):
        if isinstance(target, ast.Name):
            self.scopes[-1][target.id] = given
        elif isinstance(target, (ast.Tuple, ast.List)):
            for one in target.elts:
                self.put(one, given if given and not given.many else None, None)
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
            self.scopes[0]["self." + target.attr] = given
        else:
            wanted = self.type_of(target)
            if value is not None:
                self.suits(target.lineno, wanted, given, value, ast.unparse(target))

    def suits(self, line, wanted, given, value, what):
        fits(self.where, line, wanted, literal(value), what)
        if wanted and given and not given.is_class and (wanted.name, wanted.many) != (given.name, given.many):
            problem(self.where, line, f"`{what}` is {wanted}, and is given {given}")
        if wanted and wanted.many and isinstance(value, ast.List):
            for one in value.elts:
                self.suits(line, wanted.element(), self.type_of(one), one, what)

    def type_of(self, node):
        """The type of an expression, all of which is looked at."""
        if isinstance(node, ast.Name):
            return self.look(node.id)
        if isinstance(node, ast.Attribute):
            return self.attribute(node)
        if isinstance(node, ast.Call):
            return self.call(node)
        if isinstance(node, ast.Subscript):
            self.type_of(node.slice)
            base = self.type_of(node.value)
            if base and isinstance(node.slice, ast.Slice):
                return base
            return base.element() if base else None
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            self.scopes.append({})
            for one in node.generators:
                over = self.type_of(one.iter)
                self.put(one.target, over.element() if over else None, None)
                for condition in one.ifs:
                    self.type_of(condition)
            inner = self.type_of(node.elt)
            self.scopes.pop()
            return Of(inner.name, True) if inner and not inner.many else None
        if isinstance(node, ast.Lambda):
            self.scopes.append({argument.arg: None for argument in node.args.args})
            self.type_of(node.body)
            self.scopes.pop()
            return None
        if isinstance(node, (ast.List, ast.Tuple)):
            kinds = [self.type_of(one) for one in node.elts]
            one = kinds[0] if kinds else None
            return Of(one.name, True) if one and not one.many and not one.is_class else None
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.expr, ast.keyword)):
                self.type_of(child.value if isinstance(child, ast.keyword) else child)
            elif isinstance(child, ast.comprehension):
                self.type_of(child.iter)
        if isinstance(node, ast.IfExp):
            return self.type_of(node.body)
        return None

    def attribute(self, node):
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            return self.look("self." + node.attr)
        base = self.type_of(node.value)
        if base and base.is_class:
            return constant_of(self.where, node.lineno, base, node.attr)
        return field_of(self.where, node.lineno, base, node.attr)

    def call(self, node):
        function = node.func
        given = [self.type_of(one) for one in node.args]
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "self":
            made, name = None, function.attr
        elif isinstance(function, ast.Attribute):
            base = self.type_of(function.value)
            made = part(base, function.attr) if base and base.is_class else None
            # A method of a class of this file, or of what is no message at all.
            name = function.attr if base is None else None
            if base and not base.is_class and not base.many:
                field_of(self.where, node.lineno, base, function.attr)
        else:
            made, name = self.type_of(function), getattr(function, "id", None)
        if made and made.is_class:
            for one in node.keywords:
                wanted = field_of(self.where, node.lineno, Of(made.name), one.arg)
                self.suits(node.lineno, wanted, self.type_of(one.value), one.value, one.arg)
            if node.args:
                problem(self.where, node.lineno, f"{made.name} takes its fields by name")
            return Of(made.name)
        for one in node.keywords:
            self.type_of(one.value)
        if name in ("max", "min", "next") and given and given[0]:
            return given[0].element()
        if name in ("sorted", "list", "reversed") and given:
            return given[0]
        return self.returns.get(name)


def literal(node):
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    if isinstance(node, (ast.List, ast.ListComp)):
        return "list"
    if isinstance(node, ast.JoinedStr):
        return "str"
    if isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float, str)):
        return type(node.value).__name__
    return None


# -- C++

TOKEN = re.compile(r'[A-Za-z_]\w*|\d[\w.]*|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'|->|::|\S')
METHODS = {"size", "empty", "push_back", "emplace_back", "front", "back", "at", "begin", "end", "clear",
           "reserve", "resize", "insert", "assign", "c_str", "data", "substr", "find"}
ELEMENT = {"front", "back", "at"}


class Cpp:
    """Follows types through one file: declarations, and chains of members behind them."""

    def __init__(self, where):
        self.where, self.scopes, self.includes, self.aliases = where, [{}], {}, {}
        text = where.read_text()
        for match in re.finditer(r'^#include "([\w/]+)\.hpp"', text, re.MULTILINE):
            self.include(match[1], text[: match.start()].count("\n") + 1)
        text = re.sub(r"//[^\n]*", "", re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL))
        text = re.sub(r"^[ \t]*#[^\n]*", "", text, flags=re.MULTILINE)
        self.tokens, self.lines = [], []
        for number, line in enumerate(text.split("\n"), 1):
            for token in TOKEN.findall(line):
                self.tokens.append(token)
                self.lines.append(number)
        self.read()

    def include(self, path, line):
        package, _, rest = path.partition("/")
        self.includes.setdefault(package, set())
        if not is_known(package):
            return
        kind, _, file = rest.partition("/")
        found = [t for t in TYPES if t.startswith(f"{package}/{kind}/") and snake(t.split("/")[2]) == file]
        if not found:
            problem(self.where, line, f"no interface has the header {path}.hpp")
        self.includes[package].update("/".join(one.split("/")[:3]) for one in found)

    def at(self, i):
        return self.tokens[i] if 0 <= i < len(self.tokens) else ""

    def class_at(self, i):
        """A class named at token i, and the token behind it."""
        end = i
        words = [self.at(i)]
        while self.at(end + 1) == "::" and re.match(r"[A-Za-z_]", self.at(end + 2)):
            words.append(self.at(end + 2))
            end += 2
        found = None
        if words[0] in self.aliases:
            found, words = self.aliases[words[0]], words[1:]
        elif len(words) >= 3 and is_known(words[0]) and words[1] in ("msg", "srv", "action"):
            found = class_named(*words[:3])
            if found is None:
                problem(self.where, self.lines[i], f"there is no {'/'.join(words[:3])}")
                return None, end + 1
            if found.name not in self.includes.get(words[0], ()):
                problem(self.where, self.lines[i], f"the header of {found.name} is not included")
            words = words[3:]
        if found is None:
            return None, i + 1
        for word in words:
            if word in ("SharedPtr", "ConstSharedPtr", "UniquePtr"):
                continue
            if found is None:
                problem(self.where, self.lines[i], f"`{word}` of a constant")
                break
            found = constant_of(self.where, self.lines[i], found, word)
        return found, end + 1

    def read(self):
        i = 0
        while i < len(self.tokens):
            token = self.at(i)
            if token == "{":
                self.scopes.append({})
            elif token == "}" and len(self.scopes) > 1:
                self.scopes.pop()
            elif token == "using" and self.at(i + 1) != "namespace":
                i = self.using(i)
                continue
            elif token == "auto":
                i = self.declared_auto(i)
                continue
            elif re.match(r"[A-Za-z_]", token) and self.at(i - 1) not in (".", "->", "::"):
                i = self.word(i)
                continue
            i += 1

    def using(self, i):
        start = i + 3 if self.at(i + 2) == "=" else i + 1
        found, end = self.class_at(start)
        if found:
            self.aliases[self.at(i + 1) if start == i + 3 else self.at(end - 1)] = found
        return end

    def declared_auto(self, i):
        i += 1
        while self.at(i) in ("&", "*", "const"):
            i += 1
        name, sign = self.at(i), self.at(i + 1)
        if sign not in ("=", ":"):
            return i
        if self.at(i + 2) == "std" and self.at(i + 4) == "make_shared" and self.at(i + 5) == "<":
            found, end = self.class_at(i + 6)
            self.scopes[-1][name] = Of(found.name) if found else None
            return end
        if sign == "=" and self.at(i + 2) not in self.known_names():
            self.scopes[-1][name] = None
            return i + 2
        found, end = self.chain(i + 2)
        if sign == ":":
            found = found.element() if found else None
        self.scopes[-1][name] = found
        return end

    def known_names(self):
        return {name for scope in self.scopes for name in scope}

    def word(self, i):
        found, end = self.class_at(i)
        if found is not None:
            at = end
            while self.at(at) in ("&", "*", "const"):
                at += 1
            if re.match(r"[A-Za-z_]", self.at(at)) and self.at(at + 1) in (";", "=", "{", ",", ")", ":"):
                self.scopes[-1][self.at(at)] = Of(found.name)
                if self.at(at + 1) in (",", ")"):
                    # A parameter: it lives in the body that follows.
                    self.scopes[-1][self.at(at)] = Of(found.name)
                return at + 1
            return end
        if end > i + 1:
            return end
        return self.chain(i)[1]

    def chain(self, i):
        """The type of `a.b->c[0].d`, and the token behind it."""
        name = self.at(i)
        base = next((scope[name] for scope in reversed(self.scopes) if name in scope), None)
        i, what = i + 1, name
        while True:
            if self.at(i) == "[":
                depth, i = 1, i + 1
                while depth and i < len(self.tokens):
                    depth += {"[": 1, "]": -1}.get(self.at(i), 0)
                    i += 1
                base = base.element() if base else None
            elif self.at(i) in (".", "->"):
                member, line = self.at(i + 1), self.lines[min(i + 1, len(self.lines) - 1)]
                is_call = self.at(i + 2) == "("
                what += "." + member
                if is_call and (base is None or base.many or base.name in PRIMITIVE):
                    if base is not None and member not in METHODS:
                        problem(self.where, line, f"`.{member}()` of {base}")
                    base = base.element() if base and member in ELEMENT else None
                    # What is in the brackets is read by whoever called.
                    return (base, self.behind(i + 2)) if base else (None, i + 2)
                base = field_of(self.where, line, base, member)
                i += 2
            else:
                break
        if self.at(i) == "=" and self.at(i + 1) != "=":
            fits(self.where, self.lines[i], base, self.literal(i + 1), what)
        return base, i

    def behind(self, i):
        depth = 0
        while i < len(self.tokens):
            depth += {"(": 1, ")": -1}.get(self.at(i), 0)
            i += 1
            if depth == 0:
                break
        return i

    def literal(self, i):
        token = self.at(i + 1) if self.at(i) == "-" else self.at(i)
        if token == "{":
            return "list"
        if token in ("true", "false"):
            return "bool"
        if self.at(i + 1) != ";":
            return None
        if token.startswith('"'):
            return "str"
        if re.match(r"\d+\.", token):
            return "float"
        # An integer goes into either in C++.
        return None


def snake(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


# -- Packages

def maintainer():
    """The address that the package for Debian names."""
    return re.search(r"^Maintainer: .*<(.+)>$", (ROOT / "config/debian/control").read_text(), re.M)[1]


def manifest(folder):
    file = folder / "package.xml"
    root = xml.parse(file).getroot()
    text = lambda tag: (root.findtext(tag) or "").strip()
    if root.tag != "package" or root.get("format") != "3":
        problem(file, 1, "is no package in format 3")
    for tag in ("name", "version", "description", "maintainer", "license"):
        if not text(tag):
            problem(file, 1, f"has no <{tag}>")
    said = root.find("maintainer")
    if said is not None and said.get("email") != maintainer():
        problem(file, 1, f"the maintainer is {said.get('email')}; that of config/debian/control is {maintainer()}")
    if text("name") != folder.name:
        problem(file, 1, f"is named {text('name')} in the folder {folder.name}")
    needs = {e.text.strip() for e in root if e.tag in ("depend", "exec_depend", "build_depend", "buildtool_depend")}
    return file, needs, root.findtext("export/build_type")


def python_package(folder):
    file, needs, build = manifest(folder)
    if build != "ament_python":
        problem(file, 1, "build_type is not ament_python")
    scripts = dict(re.findall(r"'(\w+) = ([\w.]+):main'", (folder / "setup.py").read_text()))
    name = folder.name
    for wanted in (folder / "resource" / name, folder / name / "__init__.py", folder / "setup.cfg"):
        if not wanted.exists():
            problem(file, 1, f"{wanted.relative_to(folder)} is missing")
    if (folder / "setup.cfg").read_text().count(f"lib/{name}") != 2:
        problem(folder / "setup.cfg", 1, f"the scripts do not go to lib/{name}")
    sources = sorted(folder.rglob("*.py"))
    with tempfile.TemporaryDirectory() as scratch:
        for source in sources:
            try:
                py_compile.compile(str(source), cfile=f"{scratch}/out.pyc", doraise=True)
            except py_compile.PyCompileError as error:
                problem(source, 1, str(error))
    for script, module in scripts.items():
        source = folder / (module.replace(".", "/") + ".py")
        if not source.exists() or "def main(" not in source.read_text():
            problem(folder / "setup.py", 1, f"{script}: {module} has no main")
    for source in sources:
        if source.name == "setup.py":
            continue
        for package, line in Python(source).packages.items():
            if package not in needs and package not in sys.stdlib_module_names and package != name:
                problem(source, line, f"{package} is not in package.xml")
        for found in re.finditer(r"package='(\w+)',\s*executable='(\w+)'", source.read_text()):
            if found[1] == name and found[2] not in scripts:
                problem(source, 1, f"there is no executable {found[2]}")


def cpp_package(folder):
    file, needs, build = manifest(folder)
    cmake = folder / "CMakeLists.txt"
    text = cmake.read_text()
    if build != "ament_cmake" or f"project({folder.name})" not in text:
        problem(cmake, 1, "project and build_type are not those of package.xml")
    found = set(re.findall(r"find_package\((\w+)", text))
    if found != needs:
        problem(cmake, 1, f"find_package and package.xml differ: {sorted(found ^ needs)}")
    for source in sorted(folder.rglob("*.cpp")):
        if str(source.relative_to(folder)) not in text:
            problem(cmake, 1, f"{source.name} is not built")
        for package in Cpp(source).includes:
            if package not in found or f"{package}_TARGETS" not in text and f"{package}::{package}" not in text:
                problem(source, 1, f"{package} is not found or not linked")


def our_interfaces():
    _, needs, _ = manifest(OURS)
    cmake = OURS / "CMakeLists.txt"
    text = cmake.read_text()
    listed = set(re.findall(r'"((?:msg|srv|action)/\w+\.\w+)"', text))
    there = {str(f.relative_to(OURS)) for kind in ("msg", "srv", "action") for f in (OURS / kind).iterdir()}
    if listed != there:
        problem(cmake, 1, f"lists other files than there are: {sorted(listed ^ there)}")
    used = {of.name.split("/")[0] for one in TYPES.values() if one.name.startswith("omir_msgs/")
            for of in one.fields.values() if of.name not in PRIMITIVE} - {"omir_msgs"}
    depends = set(re.search(r"DEPENDENCIES ([\w ]+)", text)[1].split())
    if depends != used or not used <= needs:
        problem(cmake, 1, f"DEPENDENCIES are {sorted(depends)}; the messages use {sorted(used)}")
    for one in TYPES.values():
        for field, of in one.fields.items():
            if of.name not in PRIMITIVE and of.name not in TYPES:
                problem(cmake, 1, f"{one.name}.{field} is of {of.name}, which there is not")


# -- Documents

class Flow:
    """YAML between braces, as `ros2 service call` takes it."""

    def __init__(self, text):
        self.tokens = re.findall(r"'(?:[^']|'')*'|\"(?:\\.|[^\"\\])*\"|[{}\[\],]|:(?=\s)|[^\s{}\[\],:'\"][^{}\[\],:]*", text)
        self.i = 0

    def take(self):
        self.i += 1
        return self.tokens[self.i - 1].strip()

    def value(self):
        token = self.take()
        if token == "{":
            pairs = {}
            while self.tokens[self.i] != "}":
                name = self.take()
                if self.take() != ":":
                    raise ValueError(f"no `: ` behind {name}")
                pairs[name] = self.value()
                if self.tokens[self.i] == ",":
                    self.i += 1
            self.i += 1
            return pairs
        if token == "[":
            items = []
            while self.tokens[self.i] != "]":
                items.append(self.value())
                if self.tokens[self.i] == ",":
                    self.i += 1
            self.i += 1
            return items
        if token[0] in "'\"":
            return token[1:-1]
        for kind in (int, float):
            try:
                return kind(token)
            except ValueError:
                pass
        return {"true": True, "false": False}.get(token, token)


def filled(where, line, of, value, what):
    """A value from YAML into a field."""
    if of.many or isinstance(value, list):
        if not (of.many and isinstance(value, list)):
            problem(where, line, f"`{what}` is {of}, and is given {value!r}")
            return
        for one in value:
            filled(where, line, of.element(), one, what)
    elif isinstance(value, dict):
        for name, inner in value.items():
            wanted = field_of(where, line, of, name)
            if wanted:
                filled(where, line, wanted, inner, name)
    else:
        given = type(value).__name__
        # YAML's 4 is good for a float.
        given = "float" if given == "int" and of.name in FLOATS else given
        fits(where, line, of, given, what)


def document(where):
    text = where.read_text().replace("\\\n", "  ")
    calls = 0
    for found in re.finditer(r'ros2 (service call|action send_goal)(?: --feedback)? (\S+)\s+(\S+)\s+"(\{.*?\})"', text, re.DOTALL):
        line = text[: found.start()].count("\n") + 1
        of = Of(found[3] + ("/Request" if found[1] == "service call" else "/Goal"))
        if of.name not in TYPES:
            problem(where, line, f"there is no {found[3]}")
            continue
        try:
            filled(where, line, of, Flow(found[4]).value(), found[2])
        except (ValueError, IndexError) as error:
            problem(where, line, f"cannot be read as YAML: {error}")
        calls += 1
    if calls == 0 or calls != len(re.findall(r"ros2 (?:service call|action send_goal)[^\n]*\{", text)):
        problem(where, 1, f"{calls} calls of ros2 are read, and more or none are there")


def main():
    our_interfaces()
    python_package(EXAMPLES / "omir_examples")
    cpp_package(EXAMPLES / "omir_examples_cpp")
    for name in DOCUMENTS:
        document(ROOT / name)
    nodes = [*EXAMPLES.rglob("omir_examples/omir_examples/*.py"), *EXAMPLES.rglob("*.cpp")]
    for source in nodes:
        imported = set(re.findall(r"omir_msgs(?:\.|::)(?:msg|srv)\b", source.read_text()))
        if imported and len(uses.get(source, {})) < 3:
            problem(source, 1, "hardly a field was found: is it read at all?")
    if problems:
        sys.exit("\n".join(problems))
    for source, types in uses.items():
        fields = sum(len(names) for names in types.values())
        print(f"{source.relative_to(ROOT)}: {fields} fields and constants of {len(types)} types")


if __name__ == "__main__":
    main()
