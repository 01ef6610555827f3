"""Output: what a runner calls to say what its agent does. The names and meanings are those of the reference class.

Everything is in the database within a tick (50 ms) and on every screen right after; each call costs what its new text
costs. Calls may come from several tasks of one loop at once.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.utils import timezone

from agentchat.events import ItemStatus, ItemType, Kind
from agentchat.journal.entry import Entry, Write, event
from agentchat.models import Message
from agentchat.services import agent_state, calls, clean
from agentchat.services.asking import Asking, Decided
from agentchat.services.waiting import CheckConnection
from agentchat.services.writing import MessageWriter
from agentchat.wire import time

JSON = Any


class Output:
    """The output of one message. A second Output of the same message goes on after what is there.

    `metadata` has `chat_id`, `message_id` and, in a run, `task_id` (the run's id). `user` is whose chat it is.
    `check_connection` is called every 0.5 s while a request waits and raises if the agent is gone. `form_data` may
    hold `approval_mode` (else it is the chat's).

    `items` (OpenAI Responses shapes), `content`, `state` (kept, signed, for the provider's next turn), `usage`.
    Every method raises Gone if the chat was deleted and MessageEnded after `done`.
    """

    def __init__(
        self,
        metadata: Mapping[str, Any],
        user: Any,
        check_connection: CheckConnection | None = None,
        form_data: Mapping[str, Any] | None = None,
    ) -> None:
        ids = [uuid.UUID(str(metadata[name])) for name in ("chat_id", "message_id")]
        run_id = uuid.UUID(str(metadata["task_id"])) if metadata.get("task_id") else None
        self._user = user
        self._writer = MessageWriter(ids[0], ids[1], run_id, metadata.get("fence"))
        self._asking = Asking(self._writer, check_connection, (form_data or {}).get("approval_mode"))
        self.state: dict[str, JSON] = {}
        self.is_resumable = True
        self._signed: dict[str, JSON] = {}
        self.usage: dict[str, JSON] | None = None

    @property
    def items(self) -> list[dict[str, JSON]]:
        return [piece.wire() for piece in self._writer.pieces.all]

    @property
    def content(self) -> str:
        return self._writer.pieces.content

    async def text(self, text: str, reasoning: bool = False) -> None:
        """Add to the message (or to the reasoning); text of one kind that follows itself is one item."""
        await self._writer.ready()
        clean.require_text(text)
        self._writer.prose(ItemType.REASONING if reasoning else ItemType.MESSAGE, text)
        await self._writer.room()

    async def tool(
        self,
        call_id: str,
        name: str,
        arguments: JSON,
        native: JSON = None,
        result: JSON = None,
        done: bool = False,
        *,
        failed: bool = False,
        meta: Mapping[str, JSON] | None = None,
        parent_call_id: str = "",
    ) -> None:
        """Start or finish a call. A call that was never started is made; the same result again replaces the first.

        An id that is used again, after its call ended, for a start or with other arguments is a new call. `result`
        None keeps what `tool_output` streamed. Raises Invalid if the arguments are not JSON; a result that is not is
        converted to text.
        """
        await self._writer.ready()
        wanted = calls.columns(call_id, name, arguments, native, parent_call_id)
        text = None if result is None else clean.result(result)
        facts: dict[str, JSON] = clean.jsonable(dict(meta or {}))
        call = calls.start(self._writer, wanted, facts, done)
        if done:
            calls.finish(self._writer, call, text, failed, facts)
        await self._writer.room()

    async def tool_output(self, call_id: str, text: str) -> None:
        """Add to the output of a running call. Raises Invalid if there is no such call or it has ended."""
        await self._writer.ready()
        clean.require_text(text)
        calls.stream(self._writer, call_id, text)
        await self._writer.room()

    async def approve(
        self,
        name: str,
        arguments: JSON,
        native: JSON = None,
        timeout: float | None = None,
        *,
        call_id: str | None = None,
        request: Mapping[str, JSON] | None = None,
    ) -> Decided:
        """Ask for a decision and wait for it; the card is stored before anybody sees it.

        Returns `{"action": "approve" | "reject" | "answer", "cause", "reason", "answers", "arguments" (what may run),
        "edited", "digest"}`, and `"timed_out": True` if nobody answered within `timeout` seconds. Given the id of a
        call, the card belongs to that call, which the caller then finishes with `tool`; else it is a call of its own,
        finished here. Raises what `check_connection` raises, Gone, AlreadyDelivered (another run took the decision).
        """
        await self._writer.ready()
        wanted = calls.columns(call_id or f"approval_{uuid.uuid4().hex}", name, arguments, native)
        if timeout is None:
            timeout = settings.AGENTCHAT_APPROVAL_TIMEOUT
        keep_open = call_id is not None
        return await self._asking.approve(wanted, request, timeout, keep_open, self._changed_state())

    async def plan(self, steps: list[dict[str, str]]) -> None:
        """Show or replace the plan: steps `{"step": words, "state": "pending" | "active" | "done"}`."""
        await self._writer.ready()
        facts = {"steps": clean.jsonable(steps)}
        if piece := self._writer.pieces.of_type(ItemType.PLAN):
            self._writer.change(piece, meta=facts)
        else:
            self._writer.add(ItemType.PLAN, meta=facts, status=ItemStatus.COMPLETED)

    async def notice(self, text: str, level: str = "info") -> None:
        """A line between what the agent says. Levels: `info`, `warn`, `bad`."""
        await self._writer.ready()
        facts = {"level": clean.text(level)}
        self._writer.add(ItemType.NOTICE, clean.text(text), meta=facts, status=ItemStatus.COMPLETED)

    async def flush(self, done: bool = False, force: bool = False, persist: bool = False) -> None:
        """Wait until everything is stored, if `force` or `persist`; end the message if `done`.

        Without either there is nothing to do: the pace is the journal's.
        """
        if done or persist:
            await self.save(done)
        elif force:
            await self._writer.ready()
            await self._writer.settled()

    async def save(self, done: bool = False) -> None:
        """Store everything, with usage and state, in one transaction. `done` ends the message: text after it is an error."""
        await self._writer.ready()
        if done:
            self._writer.close_text()
        entry = self._entry(done)
        self._writer.checkpoint(entry)
        self._writer.ended = done
        await self._writer.commit(entry)

    def _entry(self, done: bool) -> Entry:
        message = self._writer.loaded()[1]
        usage = message.usage if self.usage is None else clean.jsonable(self.usage)
        changes: dict[str, JSON] = {"usage": usage} if usage != message.usage else {}
        values: dict[str, Any] = {"text": self.content, "usage": usage, "meta": message.meta | self._signed_state()}
        if done:
            now = timezone.now()
            values["ended_at"], changes["ended_at"] = now, time(now)
        message.usage = usage
        entry = Entry(self._writer.chat_id, [], [Write(Message, message.pk, values)])
        if changes:
            entry.events.append(event(Kind.MESSAGE_CHANGED, message=str(message.pk), changes=changes))
        return entry

    async def cannot_resume(self) -> None:
        """No other process could go on with this run: what it asks ends with this process."""
        await self._writer.ready()
        self.is_resumable = False
        if self._writer.run_id:
            await self._writer.commit(self._writer.entry_of_run(resumable=False))

    def waits_for(self) -> float:
        """For how many seconds the agent has done nothing but wait for people; 0 if it does something."""
        return self._writer.idle() if self._asking.waits else 0

    def leave_requests_open(self) -> None:
        """From now on a cancelled `approve` leaves its request to whoever goes on with this message."""
        self._asking.leaves_open = True

    async def end_text(self) -> None:
        """Text that was said is whole, although nothing follows it yet."""
        await self._writer.ready()
        self._writer.close_text()

    def _changed_state(self) -> list[Write]:
        """What the provider keeps, if that is new: stored with a request, so that another process can go on there."""
        if clean.jsonable(self.state) == self._signed:
            return []
        message = self._writer.loaded()[1]
        message.meta = message.meta | self._signed_state()
        return [Write(Message, message.pk, {"meta": message.meta})]

    def _signed_state(self) -> dict[str, str]:
        state = self._signed = clean.jsonable(self.state)
        if not state and "agent" not in self._writer.loaded()[1].meta:
            return {}
        return {"agent": agent_state.sign(state, user_id=self._user.pk, chat_id=self._writer.chat_id)}
