"""A person in a process of its own: `python -m tests.faults.decider`, with what it needs as a line of JSON.

Then each line is a decision `{"item", "digest", "action", "at"}`. `at` is a moment of the machine's monotonic clock,
which all processes share: two deciders with the same moment begin within microseconds of each other. The answer is a
line with what became of it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

LEAD = 0.03
"""Seconds from saying when to the moment itself."""
Decide = Callable[[dict[str, Any]], dict[str, Any]]


class Decider:
    """The parent's side."""

    def __init__(self, env: dict[str, str], **given: Any) -> None:
        root = Path(__file__).resolve().parents[2]
        command = [sys.executable, "-m", "tests.faults.decider"]
        self._process = subprocess.Popen(
            command, cwd=root, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._say(given)
        assert self.answer() == {"ready": True}

    def _say(self, what: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()

    def decide(self, item: Any, digest: str, action: str, at: float) -> None:
        self._say({"item": str(item), "digest": digest, "action": action, "at": at})

    def answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the decider ended with {self._process.wait()}"
        found: dict[str, Any] = json.loads(line)
        return found

    def __enter__(self) -> Decider:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()


def together(deciders: dict[str, Decider], item: Any, digest: str) -> dict[str, dict[str, Any]]:
    """Let each decide for its action in the same instant; the answers by action."""
    at = time.monotonic() + LEAD
    for action, decider in deciders.items():
        decider.decide(item, digest, action, at)
    return {action: decider.answer() for action, decider in deciders.items()}


# The child's side


def by_services(given: dict[str, Any]) -> Decide:
    import django

    django.setup()
    from django.contrib.auth import get_user_model
    from django.db import connection

    from agentchat.events import Via
    from agentchat.exceptions import Undecidable
    from agentchat.services import approvals

    user = get_user_model().objects.get(pk=given["user"])
    connection.ensure_connection()

    def decide(said: dict[str, Any]) -> dict[str, Any]:
        decision = approvals.Decision(said["action"], said["digest"])
        try:
            row = approvals.decide(user, said["item"], decision, via=Via.API, proof=f"process:{given['user']}")
        except Undecidable as refused:
            return {"error": type(refused).__name__, "resolution": refused.context["resolution"]}
        return {"resolution": {"id": row.pk, "action": row.action, "hash": row.hash}}

    return decide


def by_http(given: dict[str, Any]) -> Decide:
    import httpx

    http = httpx.Client(base_url=given["url"], cookies=given["cookies"], timeout=30)
    assert http.get("/api/v1/chats/").status_code == 200  # and the connection stays open

    def decide(said: dict[str, Any]) -> dict[str, Any]:
        body = {"action": said["action"], "digest": said["digest"]}
        headers = {"X-CSRFToken": given["cookies"]["agentchat_csrf"]}
        answer = http.post(f"/api/v1/approvals/{said['item']}/decision/", json=body, headers=headers)
        return {"status": answer.status_code, **answer.json()}

    return decide


def main() -> None:
    given = json.loads(sys.stdin.readline())
    decide = by_http(given) if "url" in given else by_services(given)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        said = json.loads(line)
        while time.monotonic() < said["at"]:
            continue  # awake, since a sleep would end late
        print(json.dumps(decide(said)), flush=True)


if __name__ == "__main__":
    main()
