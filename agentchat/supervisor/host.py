"""Hosts runs: takes them, stops them, gives them back, and recovers those of dead workers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings

from agentchat import conf
from agentchat.events import RunStatus
from agentchat.journal import process
from agentchat.models import Run, clock, outage
from agentchat.providers import registry
from agentchat.services import approvals, parking, runs
from agentchat.supervisor.hosted import HostedRun
from agentchat.supervisor.presence import HOST, Presence

log = logging.getLogger(__name__)
LOOK_EVERY = 3.0
"""Seconds between two looks for work and for the dead, should a signal be lost."""
DIED = "The server died while the agent worked."


class Host:
    """`most`: how many runs it may have at a time."""

    def __init__(self, presence: Presence, most: int) -> None:
        self._presence, self._most = presence, most
        self._runs: dict[UUID, HostedRun] = {}
        self._woken = asyncio.Event()
        self._unsure = False
        """The answer of a claim was lost, so a run may be ours that we do not know of, and nobody would take it."""
        self._loops: list[asyncio.Task[None]] = []
        self._stop_listening: Callable[[], None] | None = None
        self._steady_since = self._last_beat = time.monotonic()
        self._ahead: float | None = None

    async def start(self) -> None:
        self._presence.enter()
        await self._recover()
        self._stop_listening = process.current().hub.listen(runs.TOPIC, lambda kinds: self._woken.set())
        self._loops = [
            asyncio.create_task(self._work_loop(), name="runs are taken"),
            asyncio.create_task(self._beat_loop(), name="runs beat"),
        ]

    async def stop(self) -> None:
        """Take nothing more. What only waits is given back, if another process can go on; else it is interrupted."""
        if self._stop_listening:
            self._stop_listening()
        for task in self._loops:
            task.cancel()
        for run in self._runs.values():
            run.leave()
        ending = [*self._loops, *(run.task for run in self._runs.values())]
        _, late = await asyncio.wait(ending, timeout=conf.LEAVE_SECONDS) if ending else ((), ())
        if late:
            log.error("%d runs could not be ended in %d s. The next start closes them.", len(late), conf.LEAVE_SECONDS)
        self._presence.leave()

    async def _call(self, function: Any, *arguments: Any) -> Any:
        return await process.current().run(function, *arguments)

    # The loops

    async def _work_loop(self) -> None:
        while True:
            self._woken.clear()
            try:
                await self._look()
            except Exception:
                outage.report(log, "Looking for runs failed; it is tried again in %d s.", LOOK_EVERY)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY):
                    await self._woken.wait()

    async def _look(self) -> None:
        for run_id in await self._call(runs.to_stop, self._presence.worker):
            if run := self._runs.get(run_id):
                run.stop()
        for run in self._runs.values():
            if run.waits_for() > settings.AGENTCHAT_PARK_SECONDS:
                run.give_back()
        if self._unsure:
            self._host(*await self._call(runs.held_by, self._presence.worker))
            self._unsure = False
        while len(self._runs) < self._most:
            claimed = await self._claim()
            if claimed is None:
                return
            self._host(claimed)

    async def _claim(self) -> Run | None:
        claiming = asyncio.ensure_future(self._call(runs.claim, self._presence.worker))
        try:
            claimed: Run | None = await asyncio.shield(claiming)
        except asyncio.CancelledError:
            await self._put_back(claiming)
            raise
        except Exception:
            self._unsure = True
            raise
        return claimed

    async def _put_back(self, claiming: asyncio.Future[Run | None]) -> None:
        """The server stops while it takes a run: another process is to have it."""
        try:
            if taken := await claiming:
                await self._call(runs.put_back, taken.pk, self._presence.worker)
        except Exception:
            outage.report(log, "A run that was just taken could not be put back. The next start closes it.")

    def _host(self, *taken: Run) -> None:
        for run in taken:
            if run.pk not in self._runs:
                self._runs[run.pk] = HostedRun(run, self._has_ended)

    def _has_ended(self, run: Run) -> None:
        self._runs.pop(run.pk, None)
        self._woken.set()

    async def _beat_loop(self) -> None:
        while True:
            await asyncio.sleep(conf.HEARTBEAT_SECONDS)
            try:
                await self._call(runs.beat, self._presence.worker)
                await self._call(approvals.expire)
                await self._call(runs.stop_of_the_deactivated)
                await self._hold_to_limits()
                self._has_beaten()
                await self._recover()
            except Exception:
                outage.report(log, "The heartbeat failed; it is tried again in %d s.", conf.HEARTBEAT_SECONDS)

    async def _hold_to_limits(self) -> None:
        for run in list(self._runs.values()):
            if why := await asyncio.to_thread(run.beyond):
                run.fail(why)

    def _has_beaten(self) -> None:
        """Whoever could not beat (the database was away, or we stood still) must not call others silent for it."""
        now = time.monotonic()
        if now - self._last_beat > 2 * conf.HEARTBEAT_SECONDS:
            self._steady_since = now
        self._last_beat = now

    async def _recover(self) -> None:
        alive = await asyncio.to_thread(self._presence.alive)
        steady = time.monotonic() - self._steady_since > conf.DEAD_AFTER_SECONDS
        dead = await self._call(partial(runs.dead, alive, HOST, by_silence=steady))
        if await self._clock_was_set():
            return
        for run in dead:
            killed = await asyncio.to_thread(_reap, run)
            became = await self._call(_bury, run)
            if became:
                log.warning("Run %s of a dead worker is %s; %d of its processes were killed.", run.pk, became, killed)

    async def _clock_was_set(self) -> bool:
        """By the new time everybody has been silent for long. Until all could beat by it, nobody is dead for that."""
        before, self._ahead = self._ahead, await self._call(_ahead)
        if before is None or abs(self._ahead - before) < conf.HEARTBEAT_SECONDS:
            return False
        log.warning("The database's clock was set by %+d s.", self._ahead - before)
        self._steady_since = time.monotonic()
        return True


def _ahead() -> float:
    """How far the database's clock is ahead of one that nobody can set."""
    return clock.now().timestamp() - time.monotonic()


def _bury(run: Run) -> str:
    """What became of a run whose worker is dead; nothing if somebody else was first."""
    if run.attempt < conf.ATTEMPTS and parking.park(run.pk, run.worker):
        return "left to another worker"
    return "closed" if runs.finish(run.pk, RunStatus.INTERRUPTED, DIED, run.worker) else ""


def _reap(run: Run) -> int:
    try:
        return registry.load(run.provider).reap(str(run.pk))
    except ValueError:
        log.warning(
            "The provider %r of run %s is not known here, so its processes are not looked for.", run.provider, run.pk
        )
        return 0
