"""Start and end of what a server process does beside answering requests: journal, hub, bus, runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.conf import settings
from django.db import close_old_connections, connection

from agentchat.journal import process
from agentchat.journal.threads import DatabaseThread
from agentchat.services import upkeep
from agentchat.supervisor.host import Host
from agentchat.supervisor.presence import Presence

log = logging.getLogger(__name__)
READERS = 4
_stoppers: list[Callable[[], Awaitable[None]]] = []


class Readers:
    """A few threads, each with a connection of its own, for everything but the journal's writing."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(READERS, "agentchat database")

    async def __call__(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._pool, _clean, function, *arguments)

    def close(self) -> None:
        self._pool.shutdown()


def _clean(function: Callable[..., Any], *arguments: Any) -> Any:
    close_old_connections()
    try:
        return function(*arguments)
    finally:
        close_old_connections()


async def start(*, host_runs: bool = True, takes_runs: bool | None = None) -> None:
    """Call on the server's loop before the first request.

    A host that takes no runs (the default beside workers) still notices workers that die.
    """
    write, read = DatabaseThread("agentchat journal", durable=False), Readers()
    await process.start(write, read, with_bus=bool(settings.REDIS_URL), with_others=connection.vendor == "postgresql")
    _stoppers.append(_closer(write, read))
    _stoppers.append(process.stop)
    keeper = asyncio.create_task(upkeep.loop(read), name="upkeep")
    _stoppers.append(_canceller(keeper))
    if host_runs:
        takes = settings.AGENTCHAT_QUEUE == "inprocess" if takes_runs is None else takes_runs
        host = Host(Presence(settings.VAR / "workers"), settings.AGENTCHAT_MAX_RUNS if takes else 0)
        await host.start()
        _stoppers.append(host.stop)


async def stop() -> None:
    """The reverse, each part even if one before it fails."""
    while _stoppers:
        try:
            await _stoppers.pop()()
        except Exception:
            log.exception("A part of the server did not end cleanly.")


def _closer(write: DatabaseThread, read: Readers) -> Callable[[], Awaitable[None]]:
    async def close() -> None:
        await asyncio.to_thread(write.close)
        await asyncio.to_thread(read.close)

    return close


def _canceller(task: asyncio.Task[None]) -> Callable[[], Awaitable[None]]:
    async def cancel() -> None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    return cancel
