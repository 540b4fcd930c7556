"""A daemon as a process of its own, for the checks that programs of others make of it."""

import contextlib
import os
import socket
import subprocess


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
