"""Somebody who watches a chat through every fault: connects again by the cursor, and remembers every event."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import websockets
from websockets.sync.client import connect

from tests.services.client import Client, until
from tests.services.server import Server

LOST = (websockets.WebSocketException, OSError, TimeoutError)


class Viewer:
    """`with Viewer(client, chat, server, other): ...` watches at the first server that lets it in."""

    def __init__(self, client: Client, chat: str, *servers: Server) -> None:
        self._cookies = "; ".join(f"{name}={value}" for name, value in client.http.cookies.items())
        self._chat, self._servers = chat, servers
        self.events: list[dict[str, Any]] = []
        self.connections = self.refused = 0
        self.wrong = ""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def begin(self) -> None:
        """`with` does it, and waits until somebody lets us in."""
        if not self._thread.ident:
            self._thread.start()

    def __enter__(self) -> Self:
        self.begin()
        until(lambda: self.connections)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join(10)

    def _watch(self) -> None:
        turn = 0
        while not self._over.is_set():
            try:
                self._hear(self._servers[turn % len(self._servers)])
            except LOST:
                self.refused += 1
                time.sleep(0.05)
            turn += 1

    def _hear(self, server: Server) -> None:
        url = f"{server.ws_url}/ws/chats/{self._chat}/?after={self._cursor()}"
        headers = {"Cookie": self._cookies}
        with connect(url, additional_headers=headers, origin=server.url, open_timeout=5) as socket:  # type: ignore[arg-type]
            self.connections += 1
            while not self._over.is_set():
                try:
                    self._take(json.loads(socket.recv(timeout=0.2)))
                except TimeoutError:
                    continue

    def _cursor(self) -> int:
        return int(self.events[-1]["seq"]) if self.events else 0

    def _take(self, frame: dict[str, Any]) -> None:
        for event in frame.get("events", []):
            if event["seq"] != self._cursor() + 1:
                self.wrong = f"{event['seq']} came after {self._cursor()}"
            self.events.append(event)
        if "events" not in frame:
            self.wrong = f"a {frame.get('type')} came where events were expected"

    def has(self, enough: Callable[[list[dict[str, Any]]], Any], seconds: float = 40) -> None:
        """Wait until the events are enough."""
        try:
            until(lambda: enough(self.events), seconds)
        except AssertionError:
            last = self.events[-1] if self.events else None
            raise AssertionError(f"it was not seen; {len(self.events)} events, the last: {last}") from None

    def text(self) -> str:
        """What the deltas say, each once and where it belongs."""
        said = ""
        for event in self.events:
            if event["kind"] == "item.delta":
                assert event["offset"] == len(said), "text twice, or a gap"
                said += event["text"]
        return said


def says(viewer: Viewer, words: str) -> Callable[[Any], bool]:
    return lambda events: words in viewer.text()


def asked(call_id: str) -> Callable[[list[dict[str, Any]]], Any]:
    """The request of this call is there."""
    return lambda events: [
        event for event in events if event["kind"] == "item.added" and event["item"].get("call_id") == call_id
    ]


def ended(events: list[dict[str, Any]]) -> bool:
    return any(event["kind"] == "run.changed" and event["changes"].get("ended_at") for event in events)
