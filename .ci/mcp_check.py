"""Uses every tool of MCP with the protocol's own Python package: over stdio through `omir mcp`, over HTTP with a token, and
each by the newest revision of the protocol and by the handshake of the older ones. The package checks each result against
the schema of its tool; this checks what the result says. The examples of docs/mcp.md are checked against the daemon too.

Usage: mcp_check.py OMIRD OMIR
"""

import asyncio
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import httpx2
import jsonschema
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from omird_process import free_port, start, stop

ROOT = pathlib.Path(__file__).parent.parent
PAGE = (ROOT / "docs/mcp.md").read_text()
READING = {"recall", "get", "explain", "where_is", "what_is_near", "timeline"}
AKASHIK = {f"akashik_{name}" for name in ("register", "record", "attune", "detect", "merge", "replay", "compact")}
ALL = READING | {"remember", "forget", "anchor", "feedback"} | AKASHIK


async def ask(client, tool, **arguments):
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, f"{tool} {arguments}: {result.content}"
    assert json.loads(result.content[0].text) == result.structured_content
    jsonschema.validate(result.structured_content, SCHEMAS[tool])
    return result.structured_content


async def refusal(client, tool, **arguments):
    result = await client.call_tool(tool, arguments)
    assert result.is_error, f"{tool} {arguments}: {result.content}"
    return json.loads(result.content[0].text)


SCHEMAS = {}


async def listed(client):
    tools = (await client.list_tools()).tools
    for tool in tools:
        for schema in (tool.input_schema, tool.output_schema):
            jsonschema.Draft202012Validator.check_schema(schema)
        SCHEMAS[tool.name] = tool.output_schema
    return {tool.name: tool for tool in tools}


async def every_tool(client):
    """Through every tool, and what each says."""
    tools = await listed(client)
    assert set(tools) == ALL, set(tools)
    assert tools["recall"].annotations.read_only_hint and tools["forget"].annotations.destructive_hint
    mug = await ask(client, "remember", text="the red mug is on the table", x=1.5, y=2.0, entities=["Entity/red-mug"], importance=0.7)
    assert mug["durable"] and mug["reference"].startswith("MemoryRecord/"), mug
    for number in range(12):
        await ask(client, "remember", text=f"passed the door {number}", x=10 + number, y=0, entities=["Entity/door"])
    found = await ask(client, "recall", query="mug", type="MemoryRecord")
    assert found["memories"][0]["reference"] == mug["reference"] and not found["more"], found
    got = await ask(client, "get", reference=mug["reference"])
    assert got["resource"]["content"] == got["text"] == "the red mug is on the table", got
    place = await ask(client, "where_is", thing="red mug")
    assert place["found"] and (place["x"], place["y"], place["frame"]) == (1.5, 2.0, "map"), place
    near = await ask(client, "what_is_near", x=10, y=0, radius_m=3.5)
    assert [one["distance_m"] for one in near["memories"]] == [0, 1, 2, 3], near
    seen, cursor = [], None
    while True:
        page = await ask(client, "timeline", entity="Entity/door", limit=5, **({"cursor": cursor} if cursor else {}))
        seen += [one["text"] for one in page["memories"]]
        cursor = page.get("next_cursor")
        if not cursor:
            break
    assert seen == [f"passed the door {number}" for number in reversed(range(12))], seen
    assert (await ask(client, "anchor", reference=mug["reference"]))["anchored"]
    assert (await ask(client, "feedback", reference=mug["reference"], outcome="confirmed"))["alpha"] == 2
    explained = await ask(client, "explain", reference=mug["reference"])
    assert explained["anchored"] and explained["tier"] == "working", explained
    error = await refusal(client, "recall", since="yesterday")
    assert error["code"] == "INVALID_QUERY" and error["path"] == "/since", error
    status = json.loads((await client.read_resource("omir://status")).contents[0].text)
    assert status["robot"] == "rover", status
    memory = json.loads((await client.read_resource("omir://memory/" + mug["reference"])).contents[0].text)
    assert memory["content"] == got["text"]
    assert [one.uri for one in (await client.list_resources()).resources] == ["omir://status"]
    mapper = f"mapper-{os.urandom(4).hex()}"
    joined = await ask(client, "akashik_register", agent_id=mapper, id=mapper, role="mapper")
    assert joined["status"] == "registered", joined
    recorded = await ask(client, "akashik_record", agent_id=mapper, type="finding", content="The ramp is free.",
                         intent={"purpose": "map"}, confidence={"score": 0.8, "reasoning": "seen"})
    assert recorded["status"] == "accepted", recorded
    seen = await ask(client, "akashik_attune", agent_id=mapper, scope={"role": "mapper", "max_units": 5, "since_epoch": 0})
    assert seen["epoch"] > recorded["epoch"], seen
    for tool, arguments in (
        ("akashik_detect", {"mode": "list"}),
        ("akashik_replay", {"target_type": "memory_unit", "target_id": recorded["memory_unit_id"], "depth": "detailed"}),
        ("akashik_compact", {"strategy": "archive", "filter": {"unit_ids": [recorded["memory_unit_id"]]}}),
    ):
        try:
            assert (await ask(client, tool, agent_id=mapper, **arguments))["status"] == "ok"
        except AssertionError as error:
            # A token without a number has 4.
            assert tool == "akashik_compact" and "INSUFFICIENT_AUTHORITY" in str(error), error
    error = await refusal(client, "akashik_merge", agent_id=mapper, conflict_id="none", strategy="last_write_wins",
                          resolution={"rationale": "x"})
    assert "CONFLICT_NOT_FOUND" in str(error), error
    gone = [one["reference"] for one in (await ask(client, "recall", limit=50))["memories"]]
    assert (await ask(client, "forget", references=gone))["forgotten"] == len(gone)
    return len(tools)


async def reads_only(client, why="omir:write"):
    found = set(await listed(client))
    # Whoever is held to reading may have the scope of Akashik; DETECT may only list then.
    assert found - {"akashik_attune", "akashik_detect", "akashik_replay"} == READING, found
    error = await refusal(client, "remember", text="a secret")
    assert error["code"] == "UNAUTHORIZED" and why in error["message"], error
    assert (await ask(client, "recall"))["total"] == 0


def stdio(omir, *words, **environment):
    return StdioServerParameters(command=omir, args=["mcp", *words], env={"HOME": os.environ.get("HOME", "/"), **environment})


@contextlib.asynccontextmanager
async def http(address, token, mode):
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as connection:
        transport = streamable_http_client(f"http://{address}/mcp", http_client=connection)
        async with Client(transport, mode=mode) as client:
            yield client


def run(omir, *words, **environment):
    environment = {**os.environ, **environment}
    return subprocess.run([omir, *words], env=environment, input="", capture_output=True, text=True, timeout=60)


async def by_hand(omir, data, restart):
    """Lines as the page shows them; a daemon that goes and comes back under them."""
    bridge = await asyncio.create_subprocess_exec(
        omir, "mcp", "--data", data, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )

    async def say(message):
        bridge.stdin.write((message if isinstance(message, str) else json.dumps(message)).encode() + b"\n")
        return json.loads(await asyncio.wait_for(bridge.stdout.readline(), 60))

    lines = re.search(r"```json-lines\n(.*?)```", PAGE, re.S).group(1).splitlines()
    for line in lines:
        if json.loads(line).get("id") is None:
            bridge.stdin.write(line.encode() + b"\n")
            continue
        answer = await say(line)
        assert answer["id"] == json.loads(line)["id"] and "result" in answer, answer
    assert (await say("nonsense"))["error"]["code"] == -32700
    call = {"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": {"name": "recall", "arguments": {}}}
    restart.down()
    answer = await say(call)
    assert answer["id"] == "a" and "omird --data" in answer["error"]["message"], answer
    restart.up()
    answer = await say(call)
    assert answer["result"]["structuredContent"]["total"] == 0, answer
    bridge.stdin.close()
    assert await bridge.wait() == 0


class Daemon:
    def __init__(self, omird, data):
        self.address = f"127.0.0.1:{free_port()}"
        endpoint = f"tcp/127.0.0.1:{free_port()}"
        self.words = [omird, "--robot", "rover", "--data", data, "--http", self.address, "--listen", endpoint]
        self.up()

    def up(self):
        self.process = start(*self.words)

    def down(self):
        stop(self.process)


async def main(omird, omir):
    with tempfile.TemporaryDirectory() as data:
        nobody = run(omir, "mcp", "--data", data)
        assert nobody.returncode == 4 and "Start it with `omird" in nobody.stderr and not nobody.stdout, nobody
        assert run(omir, "mcp", "--url", "http://127.0.0.1:1", OMIR_TOKEN="").returncode == 2
        daemon = Daemon(omird, data)
        try:
            def token(name, *scopes):
                words = [word for scope in scopes for word in ("--scope", scope)]
                return run(omir, "token", "--data", data, "add", name, *words).stdout.strip()

            writer, reader = token("writer", "omir:read", "omir:write", "akashik:agent"), token("reader", "omir:read")
            await asyncio.sleep(1.5)
            count = 0
            for mode in ("auto", "legacy"):
                async with Client(stdio(omir, "--data", data), mode=mode) as client:
                    await reads_only(client, "--write")
                async with Client(stdio(omir, "--data", data, "--write"), mode=mode) as client:
                    count += await every_tool(client)
                url = f"http://{daemon.address}"
                async with Client(stdio(omir, "--url", url, OMIR_TOKEN=writer), mode=mode) as client:
                    await reads_only(client, "--write")
                async with Client(stdio(omir, "--url", url, "--write", OMIR_TOKEN=writer), mode=mode) as client:
                    count += await every_tool(client)
                async with Client(stdio(omir, "--data", data, "--write", OMIR_TOKEN=reader), mode=mode) as client:
                    await reads_only(client)
                async with http(daemon.address, writer, mode) as client:
                    count += await every_tool(client)
                async with http(daemon.address, reader, mode) as client:
                    await reads_only(client)
                with contextlib.suppress(Exception):
                    async with http(daemon.address, "wrong", mode) as client:
                        raise SystemExit(f"a wrong token was let in: {await client.list_tools()}")
            await by_hand(omir, data, daemon)
            told = set(re.findall(r"^\| `(\w+)` \|", PAGE.split("## Tools")[1].split("\n## ")[0], re.M))
            assert told == ALL, told ^ ALL
        finally:
            daemon.process.terminate()
            daemon.process.wait(60)
    print(f"{count} tools used over stdio and HTTP, by the newest revision and by the handshake of older ones")


asyncio.run(main(*sys.argv[1:3]))
