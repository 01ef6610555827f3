"""What waits for one socket: bounded. A socket that falls behind is caught up from the journal by its cursor."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from agentchat import conf
from agentchat.exceptions import CursorTooOld


class Page(Protocol):
    """Events from the journal, up to the number `cursor`; `last_seq` was the chat's when they were read."""

    @property
    def cursor(self) -> int: ...
    @property
    def last_seq(self) -> int: ...
    def frame(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Wire:
    """How an outbox reaches the socket and the journal."""

    send: Callable[[str], Awaitable[None]]
    read: Callable[[int], Awaitable[Page]]
    """A page of the journal after a cursor."""
    snapshot: Callable[[], Awaitable[tuple[int, str]]]
    """A cursor and the snapshot's frame."""


class Outbox:
    """Frames for one socket, in order, without gaps. `cursor` is the last event that was sent."""

    def __init__(self, cursor: int, bound: int = conf.OUTBOX_BYTES) -> None:
        self.cursor, self._bound = cursor, bound
        self._last = cursor
        self._frames: deque[tuple[int, str]] = deque()
        self._bytes = 0
        self._behind = True
        self._closed = self._ending = False
        self._woken = asyncio.Event()
        self._woken.set()

    def push(self, first: int, last: int, text: str) -> None:
        """Queue a frame of the events `first` to `last`; the hub calls it for every viewer of the chat."""
        self._woken.set()
        if self._behind or last <= self._last:
            return
        if first != self._last + 1 or (self._frames and self._bytes + len(text) > self._bound):
            self._fall_behind()
            return
        self._frames.append((last, text))
        self._bytes += len(text)
        self._last = last

    def expect(self, last: int) -> None:
        """The journal holds events up to `last`: read it if they have not arrived."""
        if not self._behind and self._last < last:
            self._fall_behind()

    def close(self) -> None:
        """End now; what is queued is dropped."""
        self._closed = True
        self._woken.set()

    def end(self) -> None:
        """End once everything is sent."""
        self._ending = True
        self._woken.set()

    async def drain(self, wire: Wire) -> None:
        """Send until closed or ended."""
        while not self._closed:
            await self._woken.wait()
            self._woken.clear()
            if self._behind:
                await self._catch_up(wire)
            while self._frames and not self._closed:
                self.cursor, text = self._frames.popleft()
                self._bytes -= len(text)
                await wire.send(text)
            if self._ending and not self._behind and not self._frames:
                return

    def _fall_behind(self) -> None:
        self._frames.clear()
        self._bytes = 0
        self._behind = True
        self._woken.set()

    async def _catch_up(self, wire: Wire) -> None:
        while self._behind and not self._closed:
            self._woken.clear()
            try:
                page = await wire.read(self.cursor)
            except CursorTooOld:
                self.cursor, text = await wire.snapshot()
                await wire.send(text)
                continue
            if page.cursor > self.cursor:
                self.cursor = page.cursor
                await wire.send(page.frame())
            if self.cursor >= page.last_seq and not self._woken.is_set():
                # Nothing was pushed since the read began, so what comes next follows the cursor without a gap.
                self._last = self.cursor
                self._behind = False
