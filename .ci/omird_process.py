"""A daemon as a process of its own, for the checks that programs of others make of it."""

import contextlib
import http.client
import json
import os
import pathlib
import socket
import subprocess
import threading
import urllib.error
import urllib.request


def free_port():
    """A port on loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(*words, stderr=None, told=None):
    """Runs a program that is a daemon, and waits until it serves. Its first line is added to the list `told`."""
    # Two daemons on one machine would ask for the same default port; who needs HTTP names an address with `--http`.
    environment = {"OMIRD_HTTP": "off", **os.environ}
    daemon = subprocess.Popen(
        words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr, text=True
    )
    line = daemon.stdout.readline()
    assert line.startswith("ready robot="), line
    if told is not None:
        told.append(line)
    return daemon


def facts(line):
    """The facts in the first line of a daemon, such as `http`, the address of its port."""
    return dict(word.split("=", 1) for word in line.split()[1:])


def stop(daemon):
    daemon.terminate()
    assert daemon.wait(60) == 0, "a clean stop is status 0"


@contextlib.contextmanager
def running(*words, **options):
    """The same until the end of a block, after which it must stop cleanly."""
    daemon = start(*words, **options)
    try:
        yield daemon
    except BaseException:
        daemon.kill()
        daemon.wait()
        raise
    stop(daemon)


def request(url, verb="GET", body=None, token=None, headers=None, timeout=60):
    """Asks once over HTTP; bytes are sent as they are, and anything else as JSON. Returns status, headers and body of the
    answer, also where that is a refusal."""
    headers = dict(headers or {})
    if token:
        headers["Authorization"] = f"Bearer {token}"
    if body is not None:
        headers.setdefault("Content-Type", "application/json")
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
    asked = urllib.request.Request(url, data=body, method=verb, headers=headers)
    try:
        with urllib.request.urlopen(asked, timeout=timeout) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.headers, refused.read()


class Robot:
    """A daemon on a folder, with a configuration, and a connection of each thread to its HTTP."""

    def __init__(self, omird, folder, config=""):
        self.omird, self.data = omird, pathlib.Path(folder, "data")
        self.config = pathlib.Path(folder, "omird.toml")
        self.config.write_text(config)
        self.endpoint = f"tcp/127.0.0.1:{free_port()}"
        self.begin()

    def begin(self):
        words = ["--config", self.config, "--robot", "rover", "--data", self.data, "--http", "127.0.0.1:0"]
        self.process = start(self.omird, *words, "--listen", self.endpoint, told=(line := []))
        self.host, port = facts(line[0])["http"].rsplit(":", 1)
        self.port = int(port)
        self.connections = threading.local()

    def end(self):
        stop(self.process)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def fetch(self, verb, path, raw=None, headers=None):
        """Asks over the connection of this thread, which a daemon may have ended: then over another, once. Returns status,
        headers and text of the answer."""
        for last in (False, True):
            connection = getattr(self.connections, "one", None)
            if connection is None:
                connection = self.connections.one = http.client.HTTPConnection(self.host, self.port, timeout=60)
            try:
                connection.request(verb, path, body=raw, headers=headers or {})
                answer = connection.getresponse()
                return answer.status, answer.headers, answer.read().decode()
            except (ConnectionError, http.client.HTTPException):
                # A refused body may end the connection before it is read.
                connection.close()
                self.connections.one = None
                if last:
                    raise
