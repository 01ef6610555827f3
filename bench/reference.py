"""The design to compare with, as it is described by what it does: the state of the whole message is sent each time.

- at most every 50 ms the whole content and all items (so the text twice) go to two rooms, each encoded anew;
- at most once a second all items are copied and kept as a snapshot in a store beside the database;
- nothing is in the database before `save`, which writes the whole chat as one JSON document.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from typing import Any

import orjson

FLUSH_SECONDS = 0.05
SNAPSHOT_SECONDS = 1.0
ROOMS = ("chat", "user")


class ReferenceModel:
    """`send(room, text)` is called with each encoded event, a text frame."""

    def __init__(self, send: Callable[[str, str], Any], earlier: list[dict[str, Any]] | None = None) -> None:
        self._send = send
        self._messages = earlier or []
        self._content = ""
        self._items: list[dict[str, Any]] = []
        self._flushed = self._kept = -1.0
        self.snapshot = self.stored = b""

    async def text(self, text: str) -> None:
        if not self._items or self._items[-1]["type"] != "message":
            self._items.append({"type": "message", "content": [{"type": "output_text", "text": ""}]})
        self._items[-1]["content"][0]["text"] += text
        self._content += text
        await self.flush()

    async def tool(self, call_id: str, name: str, arguments: Any, result: str) -> None:
        self._items.append({"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments})
        self._items.append({"type": "function_call_output", "call_id": call_id, "output": [{"text": result}]})
        await self.flush(force=True)

    async def flush(self, done: bool = False, force: bool = False) -> None:
        now = asyncio.get_running_loop().time()
        if not (done or force) and now - self._flushed < FLUSH_SECONDS:
            return
        self._flushed = now
        for room in ROOMS:
            event = {"content": self._content, "items": copy.deepcopy(self._items), "done": done, "usage": None}
            self._send(room, orjson.dumps(event).decode())
        if now - self._kept > SNAPSHOT_SECONDS:
            self._kept = now
            self.snapshot = orjson.dumps(copy.deepcopy(self._items))

    async def save(self) -> None:
        message = {"role": "assistant", "content": self._content, "items": copy.deepcopy(self._items)}
        self.stored = orjson.dumps({"messages": [*self._messages, message]})
