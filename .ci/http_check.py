"""Holds HTTP against programs of others: what omird says of itself, and what it answers.

- the OpenAPI document is valid (openapi-spec-validator), and each of its paths and verbs is served
- a client that is generated from it (openapi-python-client) remembers and recalls
- schemathesis asks each operation with what the document allows and what it does not, from a fixed seed: no 5xx, and no
  answer that the document does not tell of
- health needs no token, metrics does, and a parser of OpenMetrics reads them (prometheus_client)
- events arrive as the document has them

Usage: http_check.py OMIRD
"""

import contextlib
import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import urllib.request

import jsonschema
from openapi_spec_validator import OpenAPIV31SpecValidator
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from omird_process import facts, request, running

HOOKS = pathlib.Path(__file__).parent / "http_check_hooks.py"
SEED = 2026
# For each operation. Its phase `coverage` walks every keyword of the resources' schemas and takes over ten minutes, so
# the gate leaves it to whoever changes a schema: PHASES=examples,coverage,fuzzing.
EXAMPLES = 12
PHASES = os.environ.get("PHASES", "examples,fuzzing")
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,"
    "response_schema_conformance,ignored_auth"
)


class Daemon:
    """The way to a daemon: its address and its token."""

    def __init__(self, url, token):
        self.url, self.token = url, token

    def ask(self, path, verb="GET", body=None, token=True, headers=None):
        return request(self.url + path, verb, body, self.token if token else None, headers, timeout=30)


@contextlib.contextmanager
def daemon(omird, folder):
    data = pathlib.Path(folder, "data")
    with running(
        omird, "--robot", "rover", "--data", data, "--http", "127.0.0.1:0", "--listen", "tcp/127.0.0.1:0",
        told=(line := []),
    ):
        token = pathlib.Path(data, "keys", "local.token").read_text().strip()
        yield Daemon(f"http://{facts(line[0])['http']}", token)


def check_document(robot):
    assert robot.ask("/openapi.json", token=False)[0] == 401
    status, headers, body = robot.ask("/openapi.json")
    assert status == 200 and headers["Content-Type"] == "application/json", (status, headers)
    document = json.loads(body)
    OpenAPIV31SpecValidator(document).validate()
    count = 0
    for path, verbs in document["paths"].items():
        place = path.replace("{type}", "Entity").replace("{id}", "none").replace("{task_id}", "none")
        place = place.replace("{name}", "hint_request.v0")
        for verb, operation in verbs.items():
            status, _, body = robot.ask(place, verb.upper(), token=False)
            expected = (200,) if "security" in operation else (401,)
            assert status in expected, f"{verb} {path} without a token: {status} {body}"
            count += 1
        status, headers, _ = robot.ask(place, "PATCH")
        allowed = {verb.strip().lower() for verb in headers["Allow"].split(",")} - {"head"}
        assert status == 405 and allowed == set(verbs), f"{path}: {status}, {allowed}"
    return document, count


def check_health(robot):
    for path, state in (("/health/live", "live"), ("/health/ready", "ready")):
        status, _, body = robot.ask(path, token=False)
        assert (status, json.loads(body)) == (200, {"status": state, "reasons": []}), (path, status, body)


def check_metrics(robot):
    assert robot.ask("/metrics", token=False)[0] == 401
    status, headers, body = robot.ask("/metrics")
    assert status == 200 and headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0"), headers
    families = {family.name: family for family in text_string_to_metric_families(body.decode())}
    requests = families["omird_requests"].samples
    ended = {(s.labels["method"], s.labels["outcome"]): s.value for s in requests if s.name.endswith("_total")}
    assert ended[("remember", "ok")] > 0 and ended[("metrics", "UNAUTHENTICATED")] > 0, ended
    took = families["omird_request_duration_seconds"]
    assert took.type == "histogram" and took.unit == "seconds", took
    assert {"omird_memories", "omird_card_state", "omird_queue_bytes", "process_resident_memory_bytes"} <= set(families)
    names = set().union(*[sample.labels for family in families.values() for sample in family.samples])
    known = {"protocol", "method", "transport", "outcome", "le", "type", "tier", "state", "version"}
    assert names <= known, names - known
    return len(families)


def check_events(robot, document):
    """The first events of a stream have the form that the document says."""
    schema = {"$ref": "#/components/schemas/Event", "components": document["components"]}
    headers = {"Authorization": f"Bearer {robot.token}"}
    request = urllib.request.Request(robot.url + "/omir/v1/events", headers=headers)
    with urllib.request.urlopen(request, timeout=30) as stream:
        assert stream.headers["Content-Type"].startswith("text/event-stream"), stream.headers
        entity = {"resourceType": "Entity", "id": "told-of", "name": "told of"}
        stored = threading.Timer(0.2, robot.ask, ("/omir/v1/remember", "POST", entity))
        stored.start()
        fields = {}
        while "data" not in fields:
            line = stream.readline().decode().rstrip("\n")
            name, _, value = line.partition(": ")
            fields[name] = value
        stored.join()
    event = json.loads(fields["data"])
    jsonschema.Draft202012Validator(schema).validate(event)
    assert (fields["event"], event["ref"]) == ("recorded", "Entity/told-of"), fields
    assert event["resource"]["name"] == "told of" and fields["id"], fields


def check_client(robot, document, folder):
    """A client that nobody wrote."""
    (folder / "openapi.json").write_text(json.dumps(document))
    (folder / "settings.yml").write_text("post_hooks: []\npackage_name_override: omird_generated\n")
    made = subprocess.run(
        [sys.executable, "-m", "openapi_python_client", "generate", "--path", "openapi.json", "--meta", "none",
         "--config", "settings.yml", "--output-path", "omird_generated"],
        cwd=folder, capture_output=True, text=True,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    sys.path.insert(0, str(folder))
    of = lambda name: importlib.import_module(f"omird_generated.{name}")
    client = of("client").AuthenticatedClient(base_url=robot.url, token=robot.token)
    record = of("models.new_memory_record").NewMemoryRecord.from_dict(
        {"resourceType": "MemoryRecord", "id": "generated", "content": "a generated client was here"}
    )
    stored = of("api.memory.remember").sync(client=client, body=record)
    assert stored.durable and stored.stored[0].ref == "MemoryRecord/generated", stored
    found = of("api.memory.recall_by_query").sync(client=client, q="generated client", limit=1)
    assert found.total >= 1 and found.hits[0].resource.id == "generated", found
    asked = of("models.recall_request").RecallRequest(q="generated", limit=1)
    assert of("api.memory.recall").sync(client=client, body=asked).total >= 1
    refused = of("api.memory.explain_by_query").sync(client=client, ref="MemoryRecord/none")
    assert refused.code == "NOT_FOUND", refused


def check_with_schemathesis(robot, folder):
    words = [
        sys.executable, "-m", "schemathesis.cli", "run", "openapi.json", "--url", robot.url,
        "-H", f"Authorization: Bearer {robot.token}", "--exclude-path", "/omir/v1/events",
        "--checks", CHECKS, "--phases", PHASES, "--max-examples", str(EXAMPLES),
        "--seed", str(SEED), "--workers", "2", "--request-timeout", "30", "--no-color", "--continue-on-failure",
        "--generation-database", "none", "--suppress-health-check", "all",
    ]
    environment = {"SCHEMATHESIS_HOOKS": "http_check_hooks", "PYTHONPATH": str(HOOKS.parent)}
    ran = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stdout[-20000:] + ran.stderr[-2000:]
    return ran.stdout.strip().splitlines()[-1].strip("= ")


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        with daemon(sys.argv[1], folder) as robot:
            document, count = check_document(robot)
            check_health(robot)
            check_client(robot, document, folder)
            check_events(robot, document)
            families = check_metrics(robot)
            found = check_with_schemathesis(robot, folder)
            check_health(robot)
            check_metrics(robot)
    print(f"{count} operations, {families} measures; schemathesis: {found}")


main()
