"""An Output in memory that writes down what is called; each test says what is decided."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Decide = Callable[[str, Any], dict[str, Any]]


def allow(name: str, arguments: Any) -> dict[str, Any]:
    return {"action": "approve", "arguments": arguments}


def deny(name: str, arguments: Any) -> dict[str, Any]:
    return {"action": "reject", "cause": "person", "arguments": arguments}


class FakeOutput:
    def __init__(self, decide: Decide = allow) -> None:
        self.decide = decide
        self.state: dict[str, Any] = {}
        self.usage: dict[str, Any] | None = None
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.streamed = asyncio.Event()
        """Set when a piece of output arrived."""
        self.gate: asyncio.Event | None = None
        """If there is one, `tool_output` waits for it."""

    def of(self, name: str) -> list[dict[str, Any]]:
        return [facts for kind, facts in self.calls if kind == name]

    @property
    def printed(self) -> str:
        return "".join(facts["text"] for facts in self.of("tool_output"))

    @property
    def said(self) -> str:
        return "".join(facts["text"] for facts in self.of("text") if not facts["reasoning"])

    async def text(self, text: str, reasoning: bool = False) -> None:
        self.calls.append(("text", {"text": text, "reasoning": reasoning}))

    async def tool(
        self,
        call_id: str,
        name: str,
        arguments: Any,
        native: Any = None,
        result: Any = None,
        done: bool = False,
        *,
        failed: bool = False,
        meta: Mapping[str, Any] | None = None,
        parent_call_id: str = "",
    ) -> None:
        facts = {"call_id": call_id, "name": name, "arguments": arguments, "native": native, "result": result}
        rest = {"done": done, "failed": failed, "meta": meta, "parent": parent_call_id}
        self.calls.append(("tool", facts | rest))

    async def tool_output(self, call_id: str, text: str) -> None:
        self.calls.append(("tool_output", {"call_id": call_id, "text": text}))
        self.streamed.set()
        if self.gate:
            await self.gate.wait()

    async def approve(
        self,
        name: str,
        arguments: Any,
        native: Any = None,
        timeout: float | None = None,
        *,
        call_id: str | None = None,
        request: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        facts = {"name": name, "arguments": arguments, "timeout": timeout, "call_id": call_id}
        self.calls.append(("approve", facts | {"request": request}))
        await asyncio.sleep(0)
        return self.decide(name, arguments)

    async def notice(self, text: str, level: str = "info") -> None:
        self.calls.append(("notice", {"text": text, "level": level}))

    async def plan(self, steps: list[dict[str, str]]) -> None:
        self.calls.append(("plan", {"steps": steps}))

    async def flush(self, done: bool = False, force: bool = False, persist: bool = False) -> None:
        self.calls.append(("flush", {"done": done, "force": force, "persist": persist}))


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def gone(pids: list[int], seconds: float) -> bool:
    """Whether all of these processes end within this time."""
    end = time.monotonic() + seconds
    while any(map(alive, pids)):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def pids_in(path: Path, count: int, seconds: float = 10) -> list[int]:
    """The process ids that a command wrote into a file, one a line, once there are enough."""
    end = time.monotonic() + seconds
    while True:
        found = path.read_text().split() if path.exists() else []
        if len(found) >= count:
            return [int(pid) for pid in found]
        assert time.monotonic() < end, f"only {found} of {count} processes started"
        time.sleep(0.01)
