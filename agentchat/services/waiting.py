"""Waiting for decisions: woken at once, and, since a wake-up may be lost, one shared look at the database every few
seconds, one query for all who wait in this process."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from agentchat import conf
from agentchat.events import Cause, Kind
from agentchat.exceptions import Gone, Invalid
from agentchat.journal import process
from agentchat.models import OutputItem, Resolution, clock, outage
from agentchat.services import approvals

log = logging.getLogger(__name__)
CHECK_SECONDS = 0.5
CheckConnection = Callable[[], Awaitable[None] | None]
_WAKES = {Kind.APPROVAL_RESOLVED, Kind.CHAT_DELETED}


@dataclass(slots=True, eq=False)
class _Waiter:
    item_id: UUID
    expires_at: datetime | None
    woken: asyncio.Event
    deadline: float | None = None
    """When it expires, by the clock of the loop."""


_waiters: set[_Waiter] = set()
_polling: asyncio.Task[None] | None = None


async def wait(item_id: UUID, chat_id: UUID, expires_at: datetime | None, check: CheckConnection | None) -> Resolution:
    """The resolution of a request, as soon as there is one; at `expires_at` that of nobody.

    Raises Gone if the chat is deleted meanwhile, and whatever `check` (called every 0.5 s) raises.
    """
    here = process.current()
    waiter = _Waiter(item_id, expires_at, asyncio.Event())

    def listener(kinds: frozenset[Kind]) -> None:
        if not kinds or kinds & _WAKES:
            waiter.woken.set()

    stop_listening = here.hub.listen(str(chat_id), listener)
    _waiters.add(waiter)
    _start_polling()
    try:
        await _set_deadline(waiter)
        return await _until_resolved(waiter, check)
    finally:
        _waiters.discard(waiter)
        stop_listening()


async def _until_resolved(waiter: _Waiter, check: CheckConnection | None) -> Resolution:
    waiter.woken.set()
    while True:
        if waiter.woken.is_set():
            waiter.woken.clear()
            found: dict[UUID, Resolution] = await process.insist(_look, [waiter.item_id])
            if waiter.item_id in found:
                return found[waiter.item_id]
        if check and inspect.isawaitable(answer := check()):
            await answer
        await _pause(waiter, CHECK_SECONDS if check else None)


async def _pause(waiter: _Waiter, longest: float | None) -> None:
    """Until woken or expired, or for as long as `longest`."""
    left = None if waiter.deadline is None else waiter.deadline - asyncio.get_running_loop().time()
    pauses = [pause for pause in (left, longest) if pause is not None]
    try:
        async with asyncio.timeout(max(0.02, min(pauses)) if pauses else None):
            await waiter.woken.wait()
    except TimeoutError:
        if left is not None and left <= (longest or left):
            await _expire_now(waiter)


async def _expire_now(waiter: _Waiter) -> None:
    if await process.insist(_expire, waiter.item_id):
        waiter.woken.set()
    else:
        await _set_deadline(waiter)


async def _set_deadline(waiter: _Waiter) -> None:
    """How far off it is, says the database: the clock of this machine may be wrong, and may be set while we wait."""
    if waiter.expires_at is not None:
        left = await process.insist(_seconds_to, waiter.expires_at)
        waiter.deadline = asyncio.get_running_loop().time() + left


def _seconds_to(moment: datetime) -> float:
    return (moment - clock.now()).total_seconds()


def _expire(item_id: UUID) -> bool:
    """Whether it is over; the database's clock decides."""
    try:
        approvals.close(item_id, Cause.TIMEOUT)
    except Invalid:
        return False
    return True


def _look(items: Iterable[UUID]) -> dict[UUID, Resolution]:
    """Raises Gone if one of the items belongs to a deleted chat."""
    wanted = list(items)
    found = {row.item_id: row for row in Resolution.objects.filter(item__in=wanted)}
    missing = [item for item in wanted if item not in found]
    if missing and _alive(missing) < len(missing):
        raise Gone("The chat was deleted, so nobody can answer any more.")
    return found


def _alive(items: list[UUID]) -> int:
    return OutputItem.objects.filter(pk__in=items, message__chat__deleted_at=None).count()


# The shared poll


def _start_polling() -> None:
    global _polling
    if _polling is None or _polling.done():
        _polling = asyncio.get_running_loop().create_task(_poll_loop(), name="approvals are looked at")


async def _poll_loop() -> None:
    """Lives as long as somebody waits."""
    here = process.current()
    while _waiters:
        await asyncio.sleep(conf.poll_seconds())
        try:
            await _poll(here)
        except Exception:
            outage.report(log, "Looking for decisions failed; it is tried again in %s s.", conf.poll_seconds())


async def _poll(here: process.Process) -> None:
    waiters = {waiter.item_id: waiter for waiter in _waiters}
    still_open = set(await here.run(_open, list(waiters)))
    for item_id, waiter in waiters.items():
        if item_id not in still_open:
            waiter.woken.set()


def _open(items: list[UUID]) -> list[UUID]:
    """Those that still wait for somebody."""
    return list(OutputItem.objects.pending().filter(pk__in=items).values_list("pk", flat=True))
