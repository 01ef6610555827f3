"""What the bus would have told: while it does not carry (or there is none, but other processes are), we look.

Viewers and waiting agents have their own slow looks (hub, services.waiting). This one is for the people whose inbox
is open here: every two seconds, one query for all of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from uuid import UUID

from agentchat.journal.bus import Bus
from agentchat.journal.hub import Hub
from agentchat.journal.writer import Run
from agentchat.models import OutputItem

log = logging.getLogger(__name__)
EVERY = 2.0
USER = "user:"
Pending = dict[int, set[UUID]]


class Lookout:
    def __init__(self, run: Run, hub: Hub, bus: Bus | None) -> None:
        self._run, self._hub, self._bus = run, hub, bus
        self._known: Pending | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._loop(), name="lookout")

    async def stop(self) -> None:
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _loop(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            try:
                await self._look()
            except Exception as error:
                log.warning("Looking for what waits for people failed; it is tried again in %d s: %s", EVERY, error)

    async def _look(self) -> None:
        """Signal those for whom something has changed since the last look; at the first look, all."""
        people = [int(topic.removeprefix(USER)) for topic in self._hub.topics() if topic.startswith(USER)]
        if not people or (self._bus and self._bus.carries):
            self._known = None
            return
        found: Pending = await self._run(_pending, people)
        for person in people:
            if self._known is None or self._known.get(person, set()) != found.get(person, set()):
                self._hub.signal(f"{USER}{person}")
        self._known = found


def _pending(people: list[int]) -> Pending:
    """The open requests of each person."""
    found: Pending = defaultdict(set)
    rows = OutputItem.objects.pending().filter(message__chat__owner__in=people)
    for person, item in rows.values_list("message__chat__owner", "pk"):
        found[person].add(item)
    return found
