"""A task loop that learns: before each task it asks for hints, and afterwards it records what it used and how that ended.

The tasks stand for what Nav2 would do; it is not needed. Needs only Python and a daemon with HTTP.

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


class Experience:
    """Experience and hints, as docs/experience.md has them."""

    def ask(self, path, body):
        """Returns the answer, also of an error: the contract says in the body what was wrong."""
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        request = urllib.request.Request(URL + path, json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refused:
            if refused.code == 404 or refused.code == 409:
                return json.load(refused)
            raise RuntimeError(refused.read().decode()) from refused

    def hints(self, intent):
        body = {"request_id": str(uuid.uuid4()), "query_type": "intent", "intent": intent, "deadline_ms": 2000,
                "context": {"current_tools": DOCKINGS}}
        return self.ask("/api/v0/hints", body)["hints"]

    def record(self, task_id, title, used, summary, success, began, ended):
        body = {
            "request_id": str(uuid.uuid4()), "task_id": task_id, "title": title, "nodes_used": used,
            "result": {"summary": summary, "success": success},
            "timestamps": {"started_at": began.isoformat(), "finished_at": ended.isoformat()},
        }
        return self.ask("/api/v0/record", body)["status"]


def dock(way, is_sunny):
    """What the robot would do. In the sun it does not see the beacon."""
    return "failure" if way == "dock_by_beacon" and is_sunny else "success"


def best_docking(hints):
    """The way that worked best so far; those that nobody tried come after those that worked."""
    rates = {hint["ref"]: hint["usage_stats"]["success_rate"] for hint in hints if hint["ref"] in DOCKINGS}
    return max(DOCKINGS, key=lambda way: rates.get(way, 0.5))


def run(experience, day, is_sunny, began):
    title = "Dock at station 2"
    # An answer is kept for a minute. These days are seconds apart, so each asks in words of its own.
    hints = experience.hints(f"{title}, {day}")
    way = best_docking(hints)
    why = next((hint["reason"] for hint in hints if hint["ref"] == way), "no experience yet")
    outcome = dock(way, is_sunny)
    print(f"{day}: {way} ({why}): {outcome}")
    used = [{"type": "tool", "ref": way, "outcome": outcome, "notes": "sun" if is_sunny else "shade"}]
    ended = began + datetime.timedelta(seconds=40)
    stored = experience.record(f"dock-{day}", title, used, outcome, outcome == "success", began, ended)
    assert stored == "recorded", stored


def main():
    experience = Experience()
    now = datetime.datetime.now(datetime.timezone.utc)
    for ago, day in ((2, "the day before"), (1, "yesterday"), (0, "today")):
        run(experience, day, True, now - datetime.timedelta(days=ago, minutes=1))


main()
