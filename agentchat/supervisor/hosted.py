"""One run in this process: its provider is driven, and then the run is ended or given back, whatever happened."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agentchat.events import RunStatus
from agentchat.exceptions import AgentChatError
from agentchat.journal import process
from agentchat.models import Chat, Message, Run, outage
from agentchat.providers import registry
from agentchat.providers.base import Turn
from agentchat.services import agent_state, parking, runs
from agentchat.services.output import Output
from agentchat.supervisor import limits

log = logging.getLogger(__name__)
WENT_DOWN = "The server was stopped while the agent worked."
AFRESH = "What the agent had kept of this chat is not used, because {}. It starts afresh."
IN_THAT_INSTANT = "The agent had waited for long, and was given back in the instant in which it got its answer."
AGAIN_AFTER = 3.0
"""Seconds between two attempts to end a run."""


class HostedRun:
    """A task from the moment when the run was taken; `ended` is called when it is over."""

    def __init__(self, run: Run, ended: Callable[[Run], None]) -> None:
        self._run, self._ended = run, ended
        self._output: Output | None = None
        self._gives_back = self._leaves = False
        self._cancelled_as, self._error = RunStatus.INTERRUPTED, WENT_DOWN
        self._counted, self._worked = time.monotonic(), 0.0
        self.task = asyncio.create_task(self._host(), name=f"run {run.pk}")

    def waits_for(self) -> float:
        """For how many seconds the agent has only waited for people, if another process could go on; else 0."""
        if self._output is None or self._gives_back or not (self._run.resumable and self._output.is_resumable):
            return 0
        return self._output.waits_for()

    def stop(self) -> None:
        self.task.cancel()

    def give_back(self) -> None:
        """End here, with what it asked left open for whoever goes on after the decision."""
        if self._output:
            self._gives_back, self._error = True, IN_THAT_INSTANT
            self._output.leave_requests_open()
        self.task.cancel()

    def beyond(self) -> str:
        """Call now and then: which limit the run has passed, as a sentence; it does not count while it waits for people."""
        now = time.monotonic()
        if self._output and self._output.waits_for():
            self._counted = now
            return ""
        self._worked, self._counted = self._worked + now - self._counted, now
        return limits.passed(self._run, self._worked)

    def fail(self, why: str) -> None:
        self._cancelled_as, self._error = RunStatus.FAILED, why
        self.task.cancel()

    def leave(self) -> None:
        """The server stops."""
        self._leaves = True
        if self.waits_for():
            self.give_back()
        else:
            self.task.cancel()

    async def _host(self) -> None:
        status, error = RunStatus.COMPLETED, ""
        try:
            await self._drive()
        except asyncio.CancelledError:
            status, error = self._cancelled_as, self._error
            log.info("Run %s was %s.", self._run.pk, "given back" if self._gives_back else "stopped")
        except AgentChatError as problem:
            status, error = RunStatus.FAILED, problem.message
        except Exception as problem:
            log.exception("Run %s failed.", self._run.pk)
            status, error = RunStatus.FAILED, str(problem) or type(problem).__name__
        await self._end(status, error)

    async def _end(self, status: RunStatus, error: str) -> None:
        """Also for a task that is cancelled again: ending is never left half done."""
        ending = asyncio.ensure_future(self._finish(status, error))
        while not ending.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(ending)
        self._ended(self._run)

    async def _finish(self, status: RunStatus, error: str) -> None:
        """Until it is done: we beat for all our runs, so nobody else would end one that we forget."""
        if self._gives_back and self._output:
            with contextlib.suppress(AgentChatError):
                await self._output.end_text()
        while True:
            try:
                await process.current().writer.settled(self._run.chat_id)
                await self._call(_finish, self._run, status, error, self._gives_back, self._output is not None)
                return
            except Exception:
                outage.report(log, "Run %s could not be ended.", self._run.pk)
            if self._leaves:
                return
            await asyncio.sleep(AGAIN_AFTER)

    async def _call(self, function: Any, *arguments: Any) -> Any:
        return await process.current().run(function, *arguments)

    async def _drive(self) -> None:
        output, turn, refused = await process.insist(_prepare, self._run)
        output.state.update(turn.state)
        if refused and turn.resumed:
            raise AgentChatError(f"The agent cannot go on where it had asked, because {refused}.")
        if refused:
            await output.notice(AFRESH.format(refused), "warn")
        self._output = output
        provider = registry.load(self._run.provider)()
        try:
            await provider.run(output, turn)
        except Exception:
            await output.save()
            raise
        await output.flush(done=True)


def _finish(run: Run, status: RunStatus, error: str, gives_back: bool, has_begun: bool) -> None:
    if status == RunStatus.INTERRUPTED:
        if gives_back and parking.park(run.pk, run.worker):
            return
        if not has_begun and runs.put_back(run.pk, run.worker):
            return
    runs.finish(run.pk, status, error, run.worker)


def _prepare(run: Run) -> tuple[Output, Turn, str]:
    """The last says why the agent's state is not used."""
    message = Message.objects.select_related("chat__owner", "parent").get(pk=run.message_id)
    chat = message.chat
    metadata = {"chat_id": chat.pk, "message_id": message.pk, "task_id": run.pk, "fence": run.fence}
    workspace = Path(chat.workspace)
    if not workspace.is_dir():
        raise AgentChatError(f"The folder {workspace} is gone. Make it again, or start a chat in another.")
    text = message.parent.text if message.parent else ""
    resumed = run.attempt > 1
    state, refused = _state(chat, message if resumed else _last_with_state(message))
    turn = Turn(str(run.pk), text, workspace, chat.approval_mode, state, resumed)
    return Output(metadata, chat.owner), turn, refused


def _last_with_state(message: Message) -> Message | None:
    earlier = Message.objects.filter(chat=message.chat_id, position__lt=message.position, meta__has_key="agent")
    return earlier.order_by("-position").first()


def _state(chat: Chat, message: Message | None) -> tuple[dict[str, Any], str]:
    """What the provider kept with this message, and if that cannot be used, why."""
    if message is None or "agent" not in message.meta:
        return {}, ""
    try:
        return agent_state.read(message.meta["agent"], user_id=chat.owner_id, chat_id=chat.pk), ""
    except agent_state.Refused as refusal:
        log.warning("The state of the agent in chat %s is not used: %s.", chat.pk, refusal)
        return {}, str(refusal)
