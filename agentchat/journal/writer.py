"""Group commit: one writer per process collects what all its runs have to say and commits it in one transaction.

The only throttle of the system is here: one commit per tick (50 ms), the first thing after a silence at once, urgent
entries at once, and deltas of one item merged.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from django.db import InterfaceError, OperationalError

from agentchat import conf
from agentchat.events import Kind
from agentchat.exceptions import Backlog, Gone, JournalClosed
from agentchat.journal import store
from agentchat.journal.entry import Committed, Entry, body

log = logging.getLogger(__name__)
Run = Callable[..., Awaitable[Any]]
"""Runs a function where it may use the database: `await run(function, *arguments)`."""
Done = Callable[[Committed | Exception], None]


@dataclass(slots=True)
class _Delta:
    """Text that an item grew by, still growing until it is committed."""

    entry: Entry
    item: UUID
    offset: int
    parts: list[str] = field(default_factory=list)
    chars: int = 0

    def close(self) -> None:
        payload = {"item": str(self.item), "offset": self.offset, "text": "".join(self.parts)}
        self.entry.events.append((Kind.ITEM_DELTA, body(Kind.ITEM_DELTA, payload)))


class Writer:
    """Entries of one chat are committed in the order in which they were submitted."""

    def __init__(self, run: Run, publish: Callable[[Sequence[Committed]], None], tick: float | None = None) -> None:
        self._run, self._publish = run, publish
        self._tick = conf.tick_seconds() if tick is None else tick
        self._entries: list[Entry] = []
        self._deltas: dict[UUID, _Delta] = {}
        self._chars = 0
        self._due, self._room = asyncio.Event(), asyncio.Event()
        self._room.set()
        self._next_tick = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._closing = False
        self._give_up = math.inf
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._loop(), name="journal writer")

    async def stop(self) -> None:
        """Commit what is there, then end; soon also if the database takes nothing."""
        self._closing = True
        self._give_up = asyncio.get_running_loop().time() + conf.LAST_TRY_SECONDS
        self._due.set()
        if self._task:
            await self._task

    def submit(self, entry: Entry, urgent: bool = False) -> None:
        """Queue an entry. `entry.done` is called with what became of it, on the loop."""
        self._require_open()
        self._end_deltas(entry.chat_id)
        self._entries.append(entry)
        self._wake(urgent)

    def committed(self, entry: Entry) -> asyncio.Future[Committed]:
        """Queue an urgent entry; the future is done when it is in the database, or holds the error."""
        future: asyncio.Future[Committed] = asyncio.get_running_loop().create_future()

        def settle(result: Committed | Exception) -> None:
            if future.done():
                return
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)

        entry.done = settle
        self.submit(entry, urgent=True)
        return future

    async def settled(self, chat_id: UUID) -> None:
        """Wait until everything that was submitted for a chat so far is in the database or was refused."""
        try:
            await self.committed(Entry(chat_id))
        except Gone:
            return

    def delta(self, chat_id: UUID, item: UUID, offset: int, text: str, done: Done, fence: int | None = None) -> None:
        """Queue text that an item grew by. `offset` counts code points."""
        self._require_open()
        open_one = self._deltas.get(item)
        if open_one is None or open_one.chars + len(text) > conf.DELTA_CHARS:
            if open_one:
                open_one.close()
            open_one = self._deltas[item] = _Delta(Entry(chat_id, done=done, fence=fence), item, offset)
            self._entries.append(open_one.entry)
        open_one.parts.append(text)
        open_one.chars += len(text)
        self._chars += len(text)
        if self._chars > conf.BACKLOG_CHARS:
            self._room.clear()
        self._wake(False)

    @property
    def is_full(self) -> bool:
        """Too much text waits for the database."""
        return not self._room.is_set()

    async def room(self) -> None:
        """Wait while it is full."""
        await self._room.wait()

    def _require_open(self) -> None:
        if self._closing or self._task is None or self._task.done():
            raise JournalClosed()

    def _wake(self, urgent: bool) -> None:
        if urgent:
            self._due.set()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_at(self._next_tick, self._due.set)

    def _end_deltas(self, chat_id: UUID) -> None:
        """What follows must not be overtaken by text that came after it."""
        for item in [item for item, delta in self._deltas.items() if delta.entry.chat_id == chat_id]:
            self._deltas.pop(item).close()

    async def _loop(self) -> None:
        loop = asyncio.get_running_loop()
        while not (self._closing and not self._entries):
            await self._due.wait()
            self._next_tick = loop.time() + self._tick
            await self._commit(self._take())

    def _take(self) -> list[Entry]:
        for delta in self._deltas.values():
            delta.close()
        self._deltas.clear()
        entries, self._entries = self._entries, []
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if not self._closing:
            self._due.clear()
        return entries

    async def _commit(self, entries: list[Entry]) -> None:
        if not entries:
            return
        chars = self._chars
        results = await self._persist(entries)
        self._chars -= chars
        if lost := {
            entry.chat_id for entry, result in zip(entries, results, strict=True) if isinstance(result, Backlog)
        }:
            self._lose(lost)
        self._room.set()
        self._publish([result for result in results if isinstance(result, Committed) and result.events])
        for entry, result in zip(entries, results, strict=True):
            if entry.done:
                entry.done(result)

    def _lose(self, chats: set[UUID]) -> None:
        """Nothing is stored after what was lost: a text would have a hole that nobody sees."""
        self._deltas = {item: delta for item, delta in self._deltas.items() if delta.entry.chat_id not in chats}
        self._chars = sum(delta.chars for delta in self._deltas.values())
        after = [entry for entry in self._entries if entry.chat_id in chats]
        self._entries = [entry for entry in self._entries if entry.chat_id not in chats]
        for entry in after:
            if entry.done:
                entry.done(Backlog())

    async def _persist(self, entries: list[Entry]) -> list[store.Result]:
        """Repeat while the database is away, for a bounded time; then the runs are told."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        pause, key = 0.05, uuid4()
        while True:
            try:
                results: list[store.Result] = await self._run(store.commit, entries, key)
            except (OperationalError, InterfaceError) as error:
                if loop.time() > min(begun + conf.RETRY_SECONDS, self._give_up):
                    away = loop.time() - begun
                    log.error("The database took nothing for %d s; %d entries are lost.", away, len(entries))
                    return [Backlog()] * len(entries)
                log.warning("A commit failed and is repeated in %.2f s: %s", pause, error)
                await asyncio.sleep(pause)
                pause = min(pause * 2, 2)
            else:
                return results
