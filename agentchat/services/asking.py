"""Asking people: one card from request to result, and a decision that is used once."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction

from agentchat.events import Action, Cause, ItemStatus, ItemType, Kind, RunStatus
from agentchat.exceptions import AlreadyDelivered, Gone, Stale
from agentchat.journal import process
from agentchat.journal.entry import Entry, Write, event
from agentchat.models import Chat, OutputItem, Receipt, Resolution, Run, clock
from agentchat.services import approvals, calls, canonical, clean, permissions, waiting
from agentchat.services.answers import in_words
from agentchat.services.pieces import Piece
from agentchat.services.writing import MessageWriter
from agentchat.wire import receipt_of

Decided = dict[str, Any]
_STATUS = {
    Action.APPROVE: ItemStatus.IN_PROGRESS,
    Action.REJECT: ItemStatus.REJECTED,
    Action.ANSWER: ItemStatus.COMPLETED,
}
WORDS = {
    Cause.PERSON: "The person said no.",
    Cause.TIMEOUT: "Nobody answered in time. This is not a no: nobody saw it, or nobody decided.",
    Cause.STOPPED: "The run was stopped before this was decided.",
    Cause.AGENT_GONE: "The connection to the agent was lost before this was decided.",
    Cause.RULE: "A rule refused this.",
}
"""What an agent is told when nothing may run and the person gave no reason."""


class Asking:
    def __init__(self, writer: MessageWriter, check: waiting.CheckConnection | None, mode: str | None) -> None:
        self._writer, self._check, self._mode = writer, check, mode
        self._open = 0
        """Requests that wait right now; the run is `waiting` as long as there is one."""
        self._asked_again: set[uuid.UUID] = set()
        self.leaves_open = False
        """Whoever stops waiting does not withdraw the request: another process goes on."""

    async def approve(
        self,
        wanted: calls.Columns,
        request: Mapping[str, Any] | None,
        timeout: float | None,
        keep_open: bool,
        state: Sequence[Write] = (),
    ) -> Decided:
        """Ask, wait, and take the decision. `keep_open`: the provider finishes the call itself with `tool`.

        `state`: by what another process can go on, stored with the request.
        """
        if piece := self._asked_before(wanted):
            return await self._deliver(piece, await self._wait(piece, self._again(piece, wanted, state)), keep_open)
        facts = {"kind": "tool", **clean.jsonable(dict(request or {}))}
        if permissions.is_question(wanted["name"], facts):
            facts["kind"] = "question"
        chat, _ = self._writer.loaded()
        mode = self._mode or chat.approval_mode
        asks = permissions.requires_approval(mode, wanted["name"], facts, chat.workspace)
        expires_at = await process.insist(_in, timeout) if asks and timeout is not None else None
        piece, entry = self._record(wanted, facts, expires_at, asks)
        entry.writes += state
        if asks:
            resolution = await self._wait(piece, entry)
        else:
            await self._writer.commit(entry)
            resolution = await process.insist(approvals.allow_by_mode, piece.id)
        return await self._deliver(piece, resolution, keep_open)

    # Asking again: what a process that is gone had asked

    def _asked_before(self, wanted: calls.Columns) -> Piece | None:
        """The first request for the same tool and the same arguments that nobody here has asked again yet."""
        for piece in self._writer.pieces.all:
            same = (piece.row.name, piece.row.digest) == (wanted["name"], wanted["digest"])
            if same and piece.was_asked and piece.id not in self._asked_again:
                self._asked_again.add(piece.id)
                return piece
        return None

    def _again(self, piece: Piece, wanted: calls.Columns, state: Sequence[Write]) -> Entry:
        """The call gets the id by which the agent knows it now."""
        new = {
            name: wanted[name] for name in ("call_id", "native") if wanted[name] not in (None, getattr(piece.row, name))
        }
        entry = self._writer.pieces.change(piece, **new) if new else Entry(self._writer.chat_id)
        entry.writes += state
        self._wait_in_run(entry)
        return entry

    # Recording

    def _record(
        self, wanted: calls.Columns, facts: Any, expires_at: datetime | None, asks: bool
    ) -> tuple[Piece, Entry]:
        """The request and what the database has to be told; the card is stored before anybody sees it."""
        status = ItemStatus.PENDING if asks else ItemStatus.IN_PROGRESS
        piece, entry = self._entry(wanted, {"request": facts, "expires_at": expires_at, "status": status})
        if asks:
            requested = {"item": str(piece.id), "message": str(self._writer.message_id)}
            entry.events.append(event(Kind.APPROVAL_REQUESTED, **requested))
            self._wait_in_run(entry)
        return piece, entry

    def _entry(self, wanted: calls.Columns, columns: dict[str, Any]) -> tuple[Piece, Entry]:
        """The request belongs to the open call of its id, if that has not asked yet; else it is a call of its own."""
        pieces = self._writer.pieces
        call = pieces.call(wanted["call_id"])
        if call and call.is_open and call.row.request is None:
            native = wanted["native"] if wanted["native"] is not None else call.row.native
            return call, pieces.change(call, **{**wanted, "native": native, **columns})
        self._writer.close_text()
        return pieces.add(ItemType.CALL, **wanted, **columns)

    @property
    def waits(self) -> bool:
        return self._open > 0

    def _wait_in_run(self, entry: Entry) -> None:
        self._open += 1
        if self._open == 1:
            self._set_run(entry, RunStatus.RUNNING, RunStatus.WAITING)

    def _set_run(self, entry: Entry, before: RunStatus, after: RunStatus) -> None:
        """Guarded: a run that was ended meanwhile is not brought back to life."""
        if (run_id := self._writer.run_id) is None:
            return
        changes = {"message": str(self._writer.message_id), "changes": {"status": str(after)}}
        entry.events.append(event(Kind.RUN_CHANGED, **changes))
        entry.writes.append(Write(Run, run_id, {"status": after}, guard={"status": before}))

    # Waiting

    async def _wait(self, piece: Piece, entry: Entry) -> Resolution:
        try:
            await self._writer.commit(entry)
            process.signal(f"user:{self._writer.loaded()[0].owner_id}")
            return await waiting.wait(piece.id, self._writer.chat_id, piece.row.expires_at, self._check)
        except BaseException:
            self._open -= 1
            if not self.leaves_open:
                await asyncio.shield(asyncio.ensure_future(self._withdraw(piece)))
            raise

    async def _withdraw(self, piece: Piece) -> None:
        """Once the request is stored (it may still be on its way), close it: nobody waits any more."""
        await process.current().writer.settled(self._writer.chat_id)
        await process.insist(_withdraw, piece.id, self._writer.fence or 0)
        if self._open == 0:
            entry = Entry(self._writer.chat_id)
            self._set_run(entry, RunStatus.WAITING, RunStatus.RUNNING)
            with contextlib.suppress(Gone):  # the run has ended meanwhile
                await self._writer.commit(entry)

    # Delivering

    async def _deliver(self, piece: Piece, resolution: Resolution, keep_open: bool) -> Decided:
        """The receipt is the only use of a decision: whoever comes second gets AlreadyDelivered and must not act."""
        now = await process.insist(clock.now)
        receipt = Receipt(resolution=resolution, run_id=self._writer.run_id, worker=_worker(), delivered_at=now)
        entry = Entry(self._writer.chat_id, durable=True)
        columns = {"resolution": resolution.pk, "run": receipt.run_id, "worker": receipt.worker, "delivered_at": now}
        entry.writes.append(Write(Receipt, None, columns, insert=True))
        delivered = {"item": str(piece.id), "receipt": receipt_of(receipt)}
        entry.events.append(event(Kind.APPROVAL_DELIVERED, **delivered))
        self._settle(piece, resolution, entry, keep_open)
        try:
            await self._writer.commit(entry)
        except IntegrityError as error:
            raise AlreadyDelivered() from error
        return _as_dict(piece, resolution)

    def _settle(self, piece: Piece, resolution: Resolution, entry: Entry, keep_open: bool) -> None:
        status = _STATUS[Action(resolution.action)]
        if status == ItemStatus.IN_PROGRESS:
            status = self._reported(piece) if keep_open else ItemStatus.COMPLETED
        _join(entry, self._writer.pieces.change(piece, status=status))
        if resolution.cause != Cause.MODE:
            self._open -= 1
            if self._open == 0:
                self._set_run(entry, RunStatus.WAITING, RunStatus.RUNNING)
        if not keep_open or resolution.action == Action.ANSWER:
            _, added = self._writer.pieces.add(
                ItemType.OUTPUT, _output_text(resolution, keep_open), call_id=piece.row.call_id, name=piece.row.name,
                output_of_id=piece.id, status=ItemStatus.COMPLETED,
            )  # fmt: skip
            _join(entry, added)

    def _reported(self, piece: Piece) -> ItemStatus:
        """How the call ended, if its agent said so before the decision; else it goes on now."""
        output = self._writer.pieces.output(piece)
        return ItemStatus.IN_PROGRESS if output is None or output.is_open else ItemStatus(output.row.status)


def _join(entry: Entry, other: Entry) -> None:
    entry.events += other.events
    entry.writes += other.writes


def _output_text(resolution: Resolution, keep_open: bool) -> str:
    if keep_open:
        return in_words(resolution.answers)
    said: Decided = {"action": resolution.action, "cause": resolution.cause}
    if resolution.reason:
        said["reason"] = resolution.reason
    if resolution.answers is not None:
        said["answers"] = resolution.answers
    return clean.result(said)


def _as_dict(piece: Piece, resolution: Resolution) -> Decided:
    """What the runner gets. The digest of what may run is computed again from the very text that is handed over.

    Raises Stale if it is not what was decided on.
    """
    text = resolution.arguments or piece.row.arguments
    if canonical.digest(text) != resolution.final_digest:
        raise Stale("The arguments are not those that were decided on, so nothing may run.")
    return {
        "action": str(resolution.action),
        "cause": str(resolution.cause),
        "reason": resolution.reason or WORDS.get(Cause(resolution.cause), "") if resolution.action == "reject" else "",
        "answers": resolution.answers,
        "arguments": canonical.parse(text),
        "edited": bool(resolution.arguments),
        "digest": resolution.final_digest,
        **({"timed_out": True} if resolution.cause == Cause.TIMEOUT else {}),
    }


def _in(seconds: float) -> datetime:
    return clock.now() + timedelta(seconds=seconds)


@transaction.atomic
def _withdraw(item_id: uuid.UUID, fence: int) -> None:
    """Nobody waits any more: say why, unless somebody decided first, or the run is another worker's by now."""
    if Chat.objects.locked().filter(messages__items=item_id, deleted_at=None, fence=fence).first():
        stopped = OutputItem.objects.filter(pk=item_id, message__run__stop_requested_at__isnull=False).exists()
        approvals.close(item_id, Cause.STOPPED if stopped else Cause.AGENT_GONE)


def _worker() -> str:
    return socket.gethostname()[:200]
