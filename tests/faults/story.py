"""A run that is watched while something breaks: text, a request, text, a request. It goes no further than it is let."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from tests.e2e.conftest import script
from tests.faults.viewer import Viewer, asked, ended
from tests.services.client import Client
from tests.services.cluster import Pair, WebProcess

PARTS = 3


def part(nth: int) -> str:
    return "".join(f"{nth}.{number} " for number in range(120))


def story(parts: int = PARTS) -> str:
    """Text, then a request, and so on: the run goes no further than the test lets it."""
    steps: list[Any] = [{"unresumable": True}]
    for nth in range(parts):
        steps += [{"text": part(nth), "chunk": 3, "every": 0.005}, gate(nth)]
    return script(*steps)


def gate(nth: int) -> dict[str, Any]:
    return {"approve": {"id": f"gate-{nth}", "name": "shell", "arguments": {"command": str(nth)}}}


@dataclass
class Watched:
    """A story that runs in one process and is watched, and decided about, in the other."""

    pair: Pair
    client: Client
    chat: str
    viewer: Viewer
    host: WebProcess
    other: WebProcess

    def reach(self, nth: int) -> None:
        self.viewer.has(asked(f"gate-{nth}"))

    def allow(self, nth: int) -> None:
        """At the process that does not drive the run."""
        item = next(row["item"] for row in self.client.pending() if row["item"]["call_id"] == f"gate-{nth}")
        answer = self.client.decide(item)
        assert answer.status_code == 200, answer.text

    def is_whole(self, parts: int = PARTS) -> None:
        self.viewer.has(ended)
        assert not self.viewer.wrong
        pieces = {}
        for event in self.viewer.events:
            if event["kind"] == "item.delta":
                seen = pieces.setdefault(event["item"], "")
                assert event["offset"] == len(seen), "text twice, or a gap"
                pieces[event["item"]] = seen + event["text"]
        answer = self.client.snapshot(self.chat)["messages"][-1]
        stored = [item["content"][0]["text"] for item in answer["items"] if item["type"] == "message"]
        assert list(pieces.values()) == stored == [part(nth) for nth in range(parts)]
        assert answer["run"]["status"] == "completed"
        assert [event["seq"] for event in self.viewer.events] == list(range(1, len(self.viewer.events) + 1))


def watched(pair: Pair, stack: ExitStack, parts: int) -> Watched:
    client = Client(pair.one)
    chat = client.post("/chats/", {"provider": "scripted"}).json()["id"]
    client.say(chat, story(parts))
    host, other = pair.host_of(client.run(chat)["id"])
    there = client.at(other)
    return Watched(pair, there, chat, stack.enter_context(Viewer(there, chat, other)), host, other)
