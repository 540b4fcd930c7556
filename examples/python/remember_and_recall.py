"""Remembers where the charger is, asks what is near, and watches events. Needs only `pip install eclipse-zenoh`.

Usage: remember_and_recall.py [ROBOT [ENDPOINT]]
"""

import json
import sys
import threading

import zenoh

ROBOT = sys.argv[1] if len(sys.argv) > 1 else "rover"
ENDPOINT = sys.argv[2] if len(sys.argv) > 2 else "tcp/127.0.0.1:7448"


class Memory:
    """The memory of one robot."""

    def __init__(self, session, robot):
        self.session, self.prefix = session, f"omir/{robot}/"

    def ask(self, operation, payload=None):
        """Returns the answer to an operation of docs/keys.md, or raises an error with code, message and path."""
        body = {} if payload is None else {"payload": json.dumps(payload), "encoding": "application/json"}
        for reply in self.session.get(self.prefix + operation, **body):
            if reply.ok is None:
                raise RuntimeError(reply.err.payload.to_string())
            return json.loads(reply.ok.payload.to_string())
        raise RuntimeError(f"no daemon answers {self.prefix}{operation}; is its name right?")


def pose(frame, *position):
    return {
        "url": "https://omir.io/spec/R1/extension/spatial-pose",
        "valueJson": {"frame": frame, "position": position},
    }


def main():
    config = zenoh.Config()
    config.insert_json5("mode", '"client"')
    config.insert_json5("connect/endpoints", json.dumps([ENDPOINT]))
    with zenoh.open(config) as session:
        memory, heard = Memory(session, ROBOT), threading.Event()
        session.declare_subscriber(f"omir/{ROBOT}/event/recorded/**", lambda sample: heard.set())

        stored = memory.ask(
            "remember",
            {
                "resourceType": "MemoryRecord",
                "content": "the charger is by the window",
                "importance": 0.9,
                "extension": [pose("map", 1.5, 0.2, 0.0)],
            },
        )
        charger = stored["stored"][0]["ref"]
        print("stored durably:", stored["durable"])
        print("an event told of it:", heard.wait(5))

        for hit in memory.ask("recall", {"near": [1, 0], "radius": 2})["hits"]:
            print(f"{hit['distance']:.2f} m away: {hit['resource']['content']}")

        # The robot docked there: the memory proved right.
        confirmed = memory.ask(f"feedback?ref={charger};outcome=confirmed")
        print("confidence:", round(confirmed["confidence"]["calibrated"], 2))


main()
