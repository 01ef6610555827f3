"""What this process runs: the loop with its hub, writer and bus. Services announce here, from any thread.

A process without a loop of ours (a management command, a test) announces nothing; the others find what is new by
their slow comparison.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from agentchat import conf
from agentchat.events import Kind
from agentchat.exceptions import JournalClosed
from agentchat.journal import bus as buses
from agentchat.journal.bus import Bus
from agentchat.journal.entry import Committed
from agentchat.journal.hub import Hub
from agentchat.journal.lookout import Lookout
from agentchat.journal.writer import Run, Writer
from agentchat.models import outage

log = logging.getLogger(__name__)
T = TypeVar("T")
INSIST_EVERY = 0.5


@dataclass(slots=True)
class Process:
    loop: asyncio.AbstractEventLoop
    hub: Hub
    writer: Writer
    bus: Bus | None
    lookout: Lookout | None
    run: Run
    """Runs a function in a thread that may use the database."""


_current: Process | None = None


def current() -> Process:
    if _current is None:
        raise JournalClosed("The journal does not run in this process. Start the server (manage.py serve).")
    return _current


def is_running() -> bool:
    return _current is not None


async def start(
    write: Run, read: Run, *, with_bus: bool, with_others: bool = False, tick: float | None = None
) -> Process:
    """Start the hub, the writer and, with Redis, the bus on the running loop.

    `with_others`: other processes may work on the same database, so what no bus tells is looked for.
    """
    global _current
    bus = Bus(_received) if with_bus else None
    hub = Hub(read, bus)
    writer = Writer(write, _publish, tick)
    lookout = Lookout(read, hub, bus) if with_others else None
    _current = Process(asyncio.get_running_loop(), hub, writer, bus, lookout, read)
    if bus:
        bus.start()
    if lookout:
        lookout.start()
    hub.start()
    writer.start()
    return _current


async def stop() -> None:
    """Commit what is queued, close the sockets, end the tasks."""
    global _current
    if (process := _current) is None:
        return
    await process.writer.stop()
    await process.hub.stop()
    if process.lookout:
        await process.lookout.stop()
    if process.bus:
        await process.bus.stop()
    _current = None


async def insist(function: Callable[..., T], *arguments: Any) -> T:
    """`run`, and again while the database is away, as long as the writer would: for what a run cannot go on without.

    The function must bear being repeated, also after a commit whose answer was lost.
    """
    give_up = time.monotonic() + conf.RETRY_SECONDS
    while True:
        try:
            result: T = await current().run(function, *arguments)
        except outage.ERRORS as error:
            if time.monotonic() > give_up:
                raise
            log.warning("The database is away, so %s is repeated: %s", getattr(function, "__name__", "a query"), error)
            await asyncio.sleep(INSIST_EVERY)
        else:
            return result


def announce(committed: Sequence[Committed]) -> None:
    """Publish what a service committed. From any thread; never waits, never fails."""
    if _current:
        _current.loop.call_soon_threadsafe(_publish, committed)


def signal(topic: str) -> None:
    """Wake the listeners of a topic, here and elsewhere. From any thread."""
    if _current:
        _current.loop.call_soon_threadsafe(_signal, topic)


def _publish(committed: Sequence[Committed]) -> None:
    if _current and committed:
        _current.hub.publish(committed)
        if _current.bus:
            _current.bus.publish(committed)


def _signal(topic: str) -> None:
    if _current:
        _current.hub.signal(topic)
        if _current.bus:
            _current.bus.signal(topic)


def _received(message: dict[str, Any]) -> None:
    if _current is None:
        return
    if "last" not in message:
        _current.hub.signal(message["topic"])
    elif batch := buses.committed(message):
        _current.hub.publish([batch])
    else:
        kinds = frozenset(Kind(kind) for kind in message["kinds"])
        _current.hub.hint(buses.chat_of(message), message["last"], kinds)
