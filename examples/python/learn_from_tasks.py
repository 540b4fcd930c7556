"""A task loop that learns where it is: before each task it asks for hints near the place, and afterwards it records what it used,
how that ended, and where.

`drive` and `dock` stand for what Nav2 would do; it is not needed. Needs only Python and a daemon with HTTP.

Usage: TOKEN=… learn_from_tasks.py [URL]
    with TOKEN of `omir token add loop --scope experience:read --scope experience:write`
"""

import datetime
import json
import os
import sys
import urllib.error
import urllib.request
import uuid

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:7449"
TOKEN = os.environ["TOKEN"]
# The ways to dock that the robot knows, the usual one first.
DOCKINGS = ["dock_by_beacon", "dock_by_marker"]
# Docks of the robot, in metres in its map. The sun shines on that of station 2.
STATIONS = {"station 2": (4.0, 1.5), "station 5": (21.0, 3.0)}


class Experience:
    """Experience and hints, as docs/experience.md has them."""

    def ask(self, path, body=None):
        """Returns the answer, also of an error: the contract says in the body what was wrong."""
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        body = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{URL}/api/v0/{path}", body, headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refused:
            if refused.code == 404 or refused.code == 409:
                return json.load(refused)
            raise RuntimeError(refused.read().decode()) from refused

    def hints(self, intent, place):
        """What is worth using, by the tasks that ended within 5 m of a place."""
        body = {"request_id": str(uuid.uuid4()), "query_type": "intent", "intent": intent, "deadline_ms": 2000,
                "context": {"current_tools": DOCKINGS}}
        return self.ask("hints?near={},{}".format(*place), body)["hints"]

    def succeeded(self, task_id):
        return self.ask(f"experiences/{task_id}")["result"]["success"]

    def record(self, task_id, title, used, place, summary, success, began, ended):
        body = {
            "request_id": str(uuid.uuid4()), "task_id": task_id, "title": title, "nodes_used": used,
            "result": {"summary": summary, "success": success},
            "timestamps": {"started_at": began.isoformat(), "finished_at": ended.isoformat()},
        }
        # With a section [ros2] omird knows where the robot is, and needs no `at`.
        return self.ask("record?at={},{}".format(*place), body)["status"]


def drive(station):
    """What NavigateToPose would do: returns where the robot has got to."""
    x, y = STATIONS[station]
    return x + 0.3, y - 0.1


def dock(way, station):
    """What DockRobot would do. In the sun the robot does not see the beacon."""
    return "failure" if way == "dock_by_beacon" and station == "station 2" else "success"


def choose(experience, hints):
    """Returns the first way that did not fail here, and why."""
    # A hint counts uses everywhere. The tasks that it names are those of this place.
    here = {hint["ref"]: hint["metadata"]["tasks"] for hint in hints}
    failed = [way for way in DOCKINGS if way in here and not any(map(experience.succeeded, here[way]))]
    way = next((way for way in DOCKINGS if way not in failed), DOCKINGS[0])
    if way in here:
        return way, "it worked here"
    return way, f"{', '.join(failed)} failed here" if failed else "no experience here"


def run(experience, day, station, began):
    place = drive(station)
    title = f"Dock at {station}"
    # An answer is kept for a minute. These days are seconds apart, so each asks in words of its own.
    way, why = choose(experience, experience.hints(f"{title}, day {day}", place))
    outcome = dock(way, station)
    print(f"day {day}, {station}: {way} ({why}): {outcome}")
    used = [{"type": "tool", "ref": way, "outcome": outcome}]
    ended = began + datetime.timedelta(seconds=40)
    task_id = f"dock-{station[-1]}-day-{day}"
    stored = experience.record(task_id, title, used, place, outcome, outcome == "success", began, ended)
    assert stored == "recorded", stored


def main():
    experience = Experience()
    now = datetime.datetime.now(datetime.timezone.utc)
    for day in (1, 2, 3):
        for station in STATIONS:
            run(experience, day, station, now - datetime.timedelta(days=3 - day, minutes=1))


main()
