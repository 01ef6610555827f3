"""Hosts runs: takes them, drives their providers, stops them, and recovers those of dead workers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings

from agentchat import conf
from agentchat.events import RunStatus
from agentchat.exceptions import AgentChatError
from agentchat.journal import process
from agentchat.models import Chat, Message, Run, clock, outage
from agentchat.providers import registry
from agentchat.providers.base import Turn
from agentchat.services import agent_state, runs
from agentchat.services.output import Output
from agentchat.supervisor.presence import HOST, Presence

log = logging.getLogger(__name__)
LOOK_EVERY = 3.0
"""Seconds between two looks for work and for the dead, should a signal be lost."""
WENT_DOWN = "The server was stopped while the agent worked."
DIED = "The server died while the agent worked."


class Host:
    def __init__(self, presence: Presence) -> None:
        self._presence = presence
        self._tasks: dict[UUID, asyncio.Task[None]] = {}
        self._woken = asyncio.Event()
        self._loops: list[asyncio.Task[None]] = []
        self._stop_listening: Callable[[], None] | None = None
        self._leaving = False
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
        """Take nothing more; what runs is interrupted and says so."""
        self._leaving = True
        if self._stop_listening:
            self._stop_listening()
        for task in [*self._loops, *self._tasks.values()]:
            task.cancel()
        _, late = await asyncio.wait([*self._loops, *self._tasks.values()], timeout=conf.LEAVE_SECONDS)
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
        for run_id in await self._call(runs.beat, self._presence.worker):
            if task := self._tasks.get(run_id):
                task.cancel()
        while len(self._tasks) < settings.AGENTCHAT_MAX_RUNS:
            run = await self._call(runs.claim, self._presence.worker)
            if run is None:
                return
            self._tasks[run.pk] = asyncio.create_task(self._host(run), name=f"run {run.pk}")

    async def _beat_loop(self) -> None:
        while True:
            await asyncio.sleep(conf.HEARTBEAT_SECONDS)
            try:
                await self._call(runs.beat, self._presence.worker)
                self._has_beaten()
                await self._recover()
            except Exception:
                outage.report(log, "The heartbeat failed; it is tried again in %d s.", conf.HEARTBEAT_SECONDS)

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
            if await self._call(runs.finish, run.pk, RunStatus.INTERRUPTED, DIED, run.worker):
                log.warning("Run %s of a dead worker is closed; %d of its processes were killed.", run.pk, killed)

    async def _clock_was_set(self) -> bool:
        """By the new time everybody has been silent for long. Until all could beat by it, nobody is dead for that."""
        before, self._ahead = self._ahead, await self._call(_ahead)
        if before is None or abs(self._ahead - before) < conf.HEARTBEAT_SECONDS:
            return False
        log.warning("The database's clock was set by %+d s.", self._ahead - before)
        self._steady_since = time.monotonic()
        return True

    # One run

    async def _host(self, run: Run) -> None:
        """Drive the provider, then end the run, whatever happened."""
        status, error = RunStatus.INTERRUPTED, WENT_DOWN
        try:
            await self._drive(run)
            status, error = RunStatus.COMPLETED, ""
        except asyncio.CancelledError:
            log.info("Run %s was stopped.", run.pk)
        except AgentChatError as problem:
            status, error = RunStatus.FAILED, problem.message
        except Exception as problem:
            log.exception("Run %s failed.", run.pk)
            status, error = RunStatus.FAILED, str(problem) or type(problem).__name__
        await self._end(run, status, error)

    async def _end(self, run: Run, status: RunStatus, error: str) -> None:
        """Also for a task that is cancelled again: ending is never left half done."""
        ending = asyncio.ensure_future(self._finish(run, status, error))
        while not ending.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(ending)
        self._tasks.pop(run.pk, None)
        self._woken.set()

    async def _finish(self, run: Run, status: RunStatus, error: str) -> None:
        """Until it is done: we beat for all our runs, so nobody else would end one that we forget."""
        while True:
            try:
                await process.current().writer.settled(run.chat_id)
                await self._call(runs.finish, run.pk, status, error, self._presence.worker)
                return
            except Exception:
                outage.report(log, "Run %s could not be ended.", run.pk)
            if self._leaving:
                return
            await asyncio.sleep(LOOK_EVERY)

    async def _drive(self, run: Run) -> None:
        output, turn = await process.insist(_prepare, run)
        output.state.update(turn.state)
        provider = registry.load(run.provider)()
        try:
            await provider.run(output, turn)
        except Exception:
            await output.save()
            raise
        await output.flush(done=True)


def _ahead() -> float:
    """How far the database's clock is ahead of one that nobody can set."""
    return clock.now().timestamp() - time.monotonic()


def _prepare(run: Run) -> tuple[Output, Turn]:
    message = Message.objects.select_related("chat__owner", "parent").get(pk=run.message_id)
    chat = message.chat
    metadata = {"chat_id": chat.pk, "message_id": message.pk, "task_id": run.pk}
    workspace = Path(chat.workspace)
    if not workspace.is_dir():
        raise AgentChatError(f"The folder {workspace} is gone. Make it again, or start a chat in another.")
    text = message.parent.text if message.parent else ""
    turn = Turn(str(run.pk), text, workspace, chat.approval_mode, _last_state(chat, message))
    return Output(metadata, chat.owner), turn


def _last_state(chat: Chat, message: Message) -> dict[str, Any]:
    """What the provider kept at the end of the chat's last message that has any."""
    earlier = Message.objects.filter(chat=chat, position__lt=message.position, meta__has_key="agent")
    row = earlier.order_by("-position").first()
    return agent_state.read(row.meta["agent"], user_id=chat.owner_id, chat_id=chat.pk) if row else {}


def _reap(run: Run) -> int:
    try:
        return registry.load(run.provider).reap(str(run.pk))
    except ValueError:
        log.warning(
            "The provider %r of run %s is not known here, so its processes are not looked for.", run.provider, run.pk
        )
        return 0
