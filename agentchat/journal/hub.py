"""The hub: one per process. Committed events go to the sockets of this process, encoded once, and wake who waits.

What arrives is a hint. A gap in the numbers is healed from the journal, once per chat; a lost last message is found by
comparing `last_seq` every two seconds, one query for all chats shown.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from uuid import UUID

from agentchat import conf
from agentchat.events import Kind
from agentchat.exceptions import CursorTooOld, Gone
from agentchat.journal import reader
from agentchat.journal.bus import Bus
from agentchat.journal.entry import Committed, frame
from agentchat.journal.outbox import Outbox
from agentchat.journal.writer import Run
from agentchat.models import outage

log = logging.getLogger(__name__)
HEAL_AFTER = 0.02
COMPARE_EVERY = 2.0
Listener = Callable[[frozenset[Kind]], None]


class _Room:
    """A chat with viewers in this process. `last` is the last event that they were given or will find."""

    def __init__(self, chat_id: UUID) -> None:
        self.chat_id = chat_id
        self.last = -1
        self.outboxes: set[Outbox] = set()
        self.healing: asyncio.Task[None] | None = None


class Hub:
    def __init__(self, run: Run, bus: Bus | None = None) -> None:
        self._run, self._bus = run, bus
        self._rooms: dict[UUID, _Room] = {}
        self._listeners: dict[str, set[Listener]] = defaultdict(set)
        self._comparing: asyncio.Task[None] | None = None
        self._closed = False

    def start(self) -> None:
        self._comparing = asyncio.create_task(self._compare_loop(), name="hub compares cursors")

    async def stop(self) -> None:
        """Close every socket with 1001 and end."""
        self._closed = True
        for room in list(self._rooms.values()):
            for outbox in list(room.outboxes):
                outbox.close()
        for topic in list(self._listeners):
            self.signal(topic)
        tasks = [room.healing for room in self._rooms.values() if room.healing]
        if self._comparing:
            tasks.append(self._comparing)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def is_closed(self) -> bool:
        return self._closed

    # Viewers

    def attach(self, chat_id: UUID, cursor: int, bound: int = conf.OUTBOX_BYTES) -> Outbox:
        """A new viewer, who has seen events up to `cursor`; the outbox starts by catching up from the journal."""
        room = self._rooms.setdefault(chat_id, _Room(chat_id))
        outbox = Outbox(cursor, bound)
        room.outboxes.add(outbox)
        if self._bus:
            self._bus.join(str(chat_id))
        if self._closed:
            outbox.close()
        return outbox

    def detach(self, chat_id: UUID, outbox: Outbox) -> None:
        room = self._rooms[chat_id]
        room.outboxes.discard(outbox)
        if not room.outboxes:
            self._rooms.pop(chat_id)
            if room.healing:
                room.healing.cancel()
        if self._bus:
            self._bus.leave(str(chat_id))

    # Listeners: people who wait for something to look at

    def listen(self, topic: str, listener: Listener) -> Callable[[], None]:
        """Call `listener` with the kinds of events whenever something happens on a topic; returns how to stop that.

        Topics are chat ids, `user:<id>` (something to decide has changed) and `runs` (there is work to take).
        """
        self._listeners[topic].add(listener)
        if self._bus:
            self._bus.join(topic)

        def stop() -> None:
            self._listeners[topic].discard(listener)
            if not self._listeners[topic]:
                del self._listeners[topic]
            if self._bus:
                self._bus.leave(topic)

        return stop

    def topics(self) -> list[str]:
        """Those that somebody listens to in this process."""
        return list(self._listeners)

    def signal(self, topic: str, kinds: frozenset[Kind] = frozenset()) -> None:
        for listener in list(self._listeners.get(topic, ())):
            listener(kinds)

    # What was committed

    def publish(self, committed: Sequence[Committed]) -> None:
        """Give committed events to the viewers and listeners of this process. Call on the loop."""
        for batch in _joined(committed):
            if room := self._rooms.get(batch.chat_id):
                self._deliver(room, batch)
            self.signal(str(batch.chat_id), frozenset(kind for kind, _ in batch.events))

    def hint(self, chat_id: UUID, last: int, kinds: frozenset[Kind]) -> None:
        """Something was committed elsewhere up to `last`; the events themselves did not come along."""
        if (room := self._rooms.get(chat_id)) and last > room.last:
            self._heal_soon(room, 0)
        self.signal(str(chat_id), kinds)

    def _deliver(self, room: _Room, batch: Committed) -> None:
        if batch.last <= room.last:
            return
        if room.last >= 0 and batch.first > room.last + 1:
            self._heal_soon(room, HEAL_AFTER)
            return
        text = frame(batch.first, [body for _, body in batch.events])
        for outbox in room.outboxes:
            outbox.push(batch.first, batch.last, text)
        room.last = batch.last

    def _heal_soon(self, room: _Room, delay: float) -> None:
        if room.healing is None or room.healing.done():
            room.healing = asyncio.create_task(self._heal(room, delay), name=f"hub heals {room.chat_id}")

    async def _heal(self, room: _Room, delay: float) -> None:
        """After a moment (messages may only be out of order) read what is missing, once for all viewers."""
        await asyncio.sleep(delay)
        while True:
            start = room.last
            try:
                page = await self._run(reader.read, room.chat_id, start)
            except (CursorTooOld, Gone):
                self._expect(room, room.last + 1)
                return
            if not page.bodies:
                return
            if room.last == start:
                text = frame(page.first, page.bodies)
                for outbox in room.outboxes:
                    outbox.push(page.first, page.cursor, text)
                room.last = page.cursor
            if room.last >= page.last_seq:
                return

    async def _compare_loop(self) -> None:
        while True:
            await asyncio.sleep(COMPARE_EVERY)
            try:
                await self._compare()
            except Exception:
                outage.report(log, "Comparing cursors failed; it is tried again in %d s.", COMPARE_EVERY)

    async def _compare(self) -> None:
        chats = list(self._rooms)
        if not chats:
            return
        for chat_id, last in (await self._run(reader.last_seqs, chats)).items():
            if room := self._rooms.get(chat_id):
                self._expect(room, last)

    def _expect(self, room: _Room, last: int) -> None:
        for outbox in room.outboxes:
            outbox.expect(last)


def _joined(committed: Sequence[Committed]) -> list[Committed]:
    """One batch a chat: contiguous results of one commit become one frame."""
    joined: dict[UUID, Committed] = {}
    apart: list[Committed] = []
    for batch in committed:
        before = joined.get(batch.chat_id)
        if before is None:
            joined[batch.chat_id] = batch
        elif batch.first == before.last + 1:
            joined[batch.chat_id] = Committed(batch.chat_id, before.first, before.events + batch.events)
        else:
            apart.append(batch)
    return [*joined.values(), *apart]
