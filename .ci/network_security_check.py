"""Does what docs/network-security.md says: its openssl commands, its files for Zenoh, its clients, and those it keeps out.

The blocks of the page are used as they stand, with folders, ports and host names of this machine. One daemon listens with
certificates on both sides, one with users, and one stands behind a router that has rules.
Usage: network_security_check.py OMIRD OMIR
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

import zenoh

from omird_process import free_port, running

PAGE = pathlib.Path(__file__).parent.parent / "docs/network-security.md"
OMIRD, OMIR = (str(pathlib.Path(program).resolve()) for program in sys.argv[1:3])
# A query that nothing allows is never answered.
SOON = 3
# The address that clients connect to, and one that no certificate names.
HOST, ELSEWHERE = "localhost", "127.0.0.1"


class Files:
    """The page's files in a folder, for ports of their own."""

    def __init__(self, folder):
        self.folder, page = folder, PAGE.read_text()
        blocks = re.findall(r"^```(sh|json5)\n(.*?)^```", page, re.M | re.S)
        self.scripts = [text for kind, text in blocks if kind == "sh"]
        titled = [text.split("\n", 1) for kind, text in blocks if kind == "json5"]
        self.texts = {title.removeprefix("// "): text for title, text in titled}
        self.ports = {port: str(free_port()) for port in ("7447", "7448", "7450")}
        self.tls = folder / "tls"

    def text(self, title, **changes):
        text = self.texts[title]
        for old, new in {
            "/etc/omird/tls": str(self.tls),
            "/etc/omird/users": str(self.folder / "users"),
            "~/.config/omir": str(self.tls),
            "rover.local": HOST,
            "hub.local": HOST,
            "0.0.0.0": "127.0.0.1",
            **self.ports,
        }.items():
            text = text.replace(old, new)
        for old, new in changes.items():
            assert old in text, f"{title}: no {old}"
            text = text.replace(old, new)
        return text

    def write(self, name, text):
        path = self.folder / f"{name}.json5"
        path.write_text(text)
        return str(path)


def connected(path):
    """A session, or None if the robot or the client refuses."""
    config = zenoh.Config.from_file(path)
    config.insert_json5("connect/timeout_ms", "3000")
    config.insert_json5("scouting/multicast/enabled", "false")
    try:
        return zenoh.open(config)
    except zenoh.ZError:
        return None


def answers(session, selector, payload=None, attachment=None):
    replies = session.get(selector, payload=payload, attachment=attachment, timeout=SOON)
    return [json.loads(reply.ok.payload.to_bytes()) for reply in replies if reply.ok]


def until(what, holds):
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.2)


def entity(name):
    return json.dumps({"resourceType": "Entity", "id": name, "name": name})


def make_certificates(files):
    subprocess.run(["bash", "-ec", files.scripts[0]], cwd=files.folder, check=True, capture_output=True)
    made = sorted(path.name for path in files.tls.iterdir() if path.suffix in (".key", ".pem"))
    names = ["ca", "hub", "operator", "rover", "viewer"]
    assert made == [f"{name}.{end}" for name in names for end in ("key", "pem")], made
    assert all(path.stat().st_mode & 0o077 == 0 for path in files.tls.iterdir()), "others can read it"
    # Two that the page warns of: of another authority, and one that has expired.
    page = files.scripts[0].replace("mkdir -p tls && cd tls", "mkdir -p other && cd other")
    subprocess.run(["bash", "-ec", page], cwd=files.folder, check=True, capture_output=True)
    expired = (
        files.scripts[0].split("# The authority")[0]
        + "issue() {" + files.scripts[0].split("issue() {")[1].split("\n}\n")[0] + "\n}\nissue late DNS:late\n"
    ).replace("-days 365", "-days -1")
    subprocess.run(["bash", "-ec", expired], cwd=files.folder, check=True, capture_output=True)


def client(files, name, certificate="operator", folder=None, host=None, port="7450"):
    """The client's file of the page, for somebody."""
    text = files.text("~/.config/omir/zenoh.json5")
    text = text.replace("operator.pem", f"{certificate}.pem").replace("operator.key", f"{certificate}.key")
    text = text.replace(files.ports["7450"], files.ports[port])
    if folder:
        for of in ("pem", "key"):
            text = text.replace(f"{files.tls}/{certificate}.{of}", f"{folder}/{certificate}.{of}")
    if host:
        text = text.replace(f"tls/{HOST}", f"tls/{host}")
    return files.write(name, text)


def check_certificates(files):
    config = files.write("rover", files.text("/etc/omird/zenoh.json5"))
    store = files.folder / "store"
    with running(OMIRD, "--robot", "rover", "--data", str(store), "--zenoh-config", config):
        operator = client(files, "operator")
        # What the page types, as it types it.
        typed = files.scripts[1].replace("~/.config/omir/zenoh.json5", operator).replace("omir ", f"{OMIR} ")
        told = subprocess.run(["bash", "-ec", typed], capture_output=True, text=True, timeout=60)
        assert told.returncode == 0 and "charger" in told.stdout, told

        with connected(operator) as session, connected(client(files, "viewer", "viewer")) as viewer:
            [remembered] = answers(session, "omir/rover/remember", entity("hall"))
            assert remembered, "the operator may do everything"
            [found] = answers(viewer, "omir/rover/recall?q=charger")
            assert found["total"] == 1, found
            for selector, payload in [
                ("omir/rover/remember", entity("door")),
                ("omir/rover/forget?ref=Entity/hall", None),
                ("**/forget?ref=Entity/hall", None),
            ]:
                assert answers(viewer, selector, payload) == [], f"a viewer: {selector}"
            viewer.delete("omir/rover/memory/Entity/hall")
            # What it sent is through when what it asks after that is answered.
            assert len(answers(viewer, "omir/rover/memory/**")) == 2, "a viewer changes nothing"
        with connected(client(files, "stranger", "hub")) as stranger:
            assert answers(stranger, "omir/rover/status") == [], "no rule names this certificate"

        refused = {
            "a certificate that has expired": client(files, "late", "late"),
            "another authority": client(files, "other", "operator", files.folder / "other"),
            "an address that the robot's certificate lacks": client(files, "elsewhere", host=ELSEWHERE),
            "no certificate": files.write("none", re.sub(r"(enable_mtls|connect_certificate|connect_private_key):.*\n", "", pathlib.Path(operator).read_text())),
            "no TLS": files.write("plain", f'{{mode: "client", connect: {{endpoints: ["tcp/127.0.0.1:{files.ports["7450"]}"]}}}}'),
        }
        for what, path in refused.items():
            assert connected(path) is None, what
        local = files.write("local", f'{{mode: "client", connect: {{endpoints: ["tcp/127.0.0.1:{files.ports["7448"]}"]}}}}')
        with connected(local) as session:
            assert len(answers(session, "omir/rover/status")) == 1, "this machine's own programs"
    return len(refused)


def check_users(files):
    """The same daemon without certificates of clients, with users."""
    robot = files.text("/etc/omird/zenoh.json5")
    auth = files.text("users of the robot, under transport").strip()
    robot = robot.replace("enable_mtls: true,", "").replace("transport: {", f"transport: {{ {auth}")
    robot = robot.replace("cert_common_names", "usernames")
    (files.folder / "users").write_text("operator:the operator's own\nviewer:the viewer's own\n")
    config = files.write("rover", robot)
    theirs = files.text("a user, under transport").strip()
    text = re.sub(r"(enable_mtls|connect_certificate|connect_private_key):.*\n", "", files.text("~/.config/omir/zenoh.json5"))
    with_user = text.replace("transport: {", f"transport: {{ {theirs}")
    assert with_user != text
    with running(OMIRD, "--robot", "rover", "--data", str(files.folder / "store"), "--zenoh-config", config):
        with connected(files.write("operator", with_user)) as session:
            assert answers(session, "omir/rover/remember", entity("lift")), "the operator may do everything"
        viewer = with_user.replace('"operator"', '"viewer"').replace("the operator's own", "the viewer's own")
        with connected(files.write("viewer", viewer)) as session:
            assert len(answers(session, "omir/rover/status")) == 1
            assert answers(session, "omir/rover/forget?ref=Entity/lift") == [], "a viewer"
        assert connected(files.write("nobody", text)) is None, "no user"
        wrong = with_user.replace("the operator's own", "a guess")
        assert connected(files.write("wrong", wrong)) is None, "a wrong password"


def check_router(files):
    """The robot behind a router whose rules keep others from answering in its name, and from hearing tokens."""
    # `hub.json5` and `behind` share names of files with the parts before: only what runs is on the disk.
    hub = files.write("hub", files.text("hub.json5, on the router"))
    rover = files.write("rover", files.text("/etc/omird/zenoh.json5, behind a router"))
    at = files.folder
    with (
        running(OMIRD, "--robot", "hub", "--data", str(at / "hub-store"), "--zenoh-config", hub),
        running(OMIRD, "--robot", "rover", "--data", str(at / "store"), "--zenoh-config", rover),
        connected(client(files, "operator", port="7447")) as operator,
        connected(client(files, "viewer", "viewer", port="7447")) as viewer,
    ):
        until("the robot is behind the router", lambda: answers(operator, "omir/rover/status"))
        token = "Bearer " + (at / "store" / "keys" / "local.token").read_text().strip()
        heard, lock = [], threading.Lock()

        def hear(what):
            with lock:
                heard.append(what)

        # A client that announces itself as the robot, or listens for what others send it.
        impostor = viewer.declare_queryable("omir/rover/**", lambda query: hear(query.attachment or query.key_expr), complete=True)
        spy = viewer.declare_subscriber("omir/rover/memory/**", lambda sample: hear(sample.key_expr))
        events = []
        watcher = viewer.declare_subscriber("omir/rover/event/**", lambda sample: events.append(str(sample.key_expr)))
        time.sleep(1)
        for name in ("ramp", "gate"):
            assert answers(operator, "omir/rover/remember", entity(name), attachment=token)
        until("events come through", lambda: any("gate" in key for key in events))
        [found] = answers(operator, "omir/rover/recall?q=ramp", attachment=token)
        assert found["total"] == 1, found
        assert not heard, f"a client heard what was said to the robot: {heard}"
        for declared in (impostor, spy, watcher):
            declared.undeclare()


def main():
    with tempfile.TemporaryDirectory() as folder:
        files = Files(pathlib.Path(folder))
        make_certificates(files)
        refused = check_certificates(files)
        check_users(files)
        check_router(files)
    print(f"{PAGE.name}: certificates, users and a router do what the page says; {refused} kinds of others are kept out")


main()
