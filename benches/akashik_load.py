"""Measures a field under load: AGENTS agents that record RATE units a second each over HTTP for SECONDS, while one listens by
server-sent events. Prints answers a second, latencies of answers and of notifications, and conflicts that were put off.

A second listener never reads: it must harm nobody.

Usage: akashik_load.py OMIRD [AGENTS [RATE [SECONDS]]]
"""

import http.client
import json
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / ".ci"))
from omird_process import free_port, start  # noqa: E402


def at(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))] * 1000 if values else float("nan")


def main(omird, agents=100, rate=5, seconds=60):
    agents, rate, seconds = int(agents), float(rate), float(seconds)
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder, "data")
        words = ["--robot", "r", "--data", data, "--http", "127.0.0.1:0", "--listen", f"tcp/127.0.0.1:{free_port()}"]
        process = start(omird, *words, told=(line := []), stderr=subprocess.DEVNULL)
        told = dict(word.split("=", 1) for word in line[0].split()[1:])
        host, port = told["http"].rsplit(":", 1)
        headers = {
            "Authorization": "Bearer " + pathlib.Path(data, "keys", "local.token").read_text().strip(),
            "Content-Type": "application/json",
        }

        def connect():
            return http.client.HTTPConnection(host, int(port), timeout=60)

        def ask(connection, agent, operation, number, payload):
            message = {
                "protocol": "akashik", "version": "0.1.0", "id": f"{agent}-{operation}-{number}", "operation": operation,
                "agent_id": agent, "session_id": None, "epoch": 0, "payload": payload,
            }
            connection.request("POST", f"/akashik/v1/{operation.lower()}", json.dumps(message).encode(), headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())

        sent, heard, answered, faults, deferred = {}, {}, [], [], []
        one = connect()
        for agent in ("listener", "sleeper"):
            assert ask(one, agent, "REGISTER", 0, {"id": agent, "role": "listener"})[0] == 201
            wish = {"action": "subscribe", "subscription": {"events": ["memory.recorded"]}}
            assert ask(one, agent, "SUBSCRIBE", 0, wish)[0] == 201

        sleeper = socket.create_connection((host, int(port)))
        sleeper.sendall(
            f"GET /akashik/v1/events?agent_id=sleeper HTTP/1.1\r\nHost: {host}\r\n"
            f"Authorization: {headers['Authorization']}\r\n\r\n".encode())

        def listen():
            connection = connect()
            connection.request("GET", "/akashik/v1/events?agent_id=listener", headers=headers)
            answer = connection.getresponse()
            while line := answer.readline():
                if line.startswith(b"data: "):
                    data = json.loads(line[6:])
                    if data.get("memory_unit_id"):
                        heard[data["memory_unit_id"]] = time.monotonic()

        threading.Thread(target=listen, daemon=True).start()
        time.sleep(0.5)
        began = time.monotonic()

        def record(index):
            agent, connection = f"agent-{index}", connect()
            ask(connection, agent, "REGISTER", 0, {"id": agent, "role": "mapper"})
            number = 0
            while (now := time.monotonic()) < began + seconds:
                due = began + (number + index / agents) / rate
                if due > now:
                    time.sleep(due - now)
                before = time.monotonic()
                status, answer = ask(connection, agent, "RECORD", number, {
                    "type": "finding", "content": f"Shelf {number} of hall {index} holds {number * index % 97} boxes.",
                    "intent": {"purpose": "count boxes"}, "confidence": {"score": 0.8, "reasoning": "seen"}})
                after = time.monotonic()
                number += 1
                if status == 201:
                    answered.append(after - before)
                    sent[answer["memory_unit_id"]] = after
                    deferred.extend([1] * ("conflict_detection" in answer))
                else:
                    faults.append((status, answer))

        threads = [threading.Thread(target=record, args=(index,)) for index in range(agents)]
        [one.start() for one in threads]
        [one.join() for one in threads]
        took = time.monotonic() - began
        until = time.monotonic() + 30
        while len(heard) < len(sent) and time.monotonic() < until:
            time.sleep(0.1)
        late = [max(0.0, heard[unit] - sent[unit]) for unit in sent if unit in heard]
        print(f"{len(answered)} units in {took:.1f} s: {len(answered) / took:.0f}/s of {agents * rate:.0f}/s asked for, "
              f"{len(faults)} refused, detection put off {len(deferred)} times")
        print(f"answers: P50 {at(answered, 0.5):.1f} ms, P99 {at(answered, 0.99):.1f} ms")
        print(f"notifications after the answer: {len(late)} of {len(sent)}, P50 {at(late, 0.5):.1f} ms, P99 {at(late, 0.99):.1f} ms")
        if faults:
            print("first fault:", faults[0])
        process.terminate()
        process.wait(60)


if __name__ == "__main__":
    main(*sys.argv[1:])
