"""Closing what an agent left open: text, calls without a result, requests that nobody waits for."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Max

from agentchat.events import Cause, ItemStatus, ItemType, Kind
from agentchat.journal.entry import Event, event
from agentchat.models import Chat, Message, OutputItem
from agentchat.rendering.markdown import MarkdownStream
from agentchat.services import approvals, fold
from agentchat.wire import Text, time
from agentchat.wire import item as item_wire

INTERRUPTED = {
    Cause.STOPPED: "[The run was stopped before this was done.]",
    Cause.AGENT_GONE: "[The agent ended before this was done.]",
}


def close_requests(message: Message, cause: Cause) -> None:
    for item_id in OutputItem.objects.pending().filter(message=message).values_list("pk", flat=True):
        approvals.close(item_id, cause)


def close_items(chat: Chat, message: Message, cause: Cause, now: datetime) -> list[Event]:
    """Bring the open items of a message to an end; returns the events that say so. The chat's row must be locked."""
    rows = list(OutputItem.objects.filter(message=message, status__in=fold.OPEN).order_by("position"))
    grown = fold.progress(chat.pk, rows)
    events: list[Event] = []
    for row in rows:
        fold.complete(row, grown[str(row.pk)])
        events += _close(row, now)
    answered = {row.output_of_id for row in rows if row.type == ItemType.OUTPUT}
    calls = [row for row in rows if row.type == ItemType.CALL and row.pk not in answered]
    return events + _interrupted_outputs(message, calls, cause, now)


def _close(row: OutputItem, now: datetime) -> list[Event]:
    blocks = _finish_html(row) if row.type in (ItemType.MESSAGE, ItemType.REASONING) else []
    row.status = _end_status(row)
    row.ended_at, row.version = now, row.version + 1
    row.save()
    changes = {"status": str(row.status), "ended_at": time(now), "version": row.version}
    return [*blocks, event(Kind.ITEM_CHANGED, item=str(row.pk), changes=changes)]


def _end_status(row: OutputItem) -> ItemStatus:
    """A call that was refused is not interrupted, and neither is text."""
    if row.type in (ItemType.MESSAGE, ItemType.REASONING):
        return ItemStatus.COMPLETED
    decided = getattr(row, "resolution", None)
    return ItemStatus.REJECTED if decided and decided.action == "reject" else ItemStatus.INTERRUPTED


def _finish_html(row: OutputItem) -> list[Event]:
    stream = MarkdownStream(row.html_end)
    events = []
    for block in [*stream.feed(row.text[row.html_end :]), *stream.finish()]:
        payload = {"item": str(row.pk), "index": row.blocks, "html": block.html, "end": block.end}
        events.append(event(Kind.ITEM_BLOCK, **payload))
        row.html, row.html_end, row.blocks = row.html + block.html, block.end, row.blocks + 1
    return events


def _interrupted_outputs(message: Message, calls: list[OutputItem], cause: Cause, now: datetime) -> list[Event]:
    """A call without a result would make the next turn of most agents fail: each gets one that says why."""
    has_output = set(OutputItem.objects.filter(output_of__in=calls).values_list("output_of", flat=True))
    position = OutputItem.objects.filter(message=message).aggregate(last=Max("position", default=-1))["last"]
    events = []
    for call in calls:
        if call.pk in has_output or call.status == ItemStatus.REJECTED:
            continue
        position += 1
        row = OutputItem.objects.create(
            message=message, position=position, type=ItemType.OUTPUT, call_id=call.call_id, name=call.name,
            output_of=call, text=INTERRUPTED[cause], status=ItemStatus.INTERRUPTED, created_at=now, ended_at=now,
        )  # fmt: skip
        wire = item_wire(row, Text.of(row.text, row.type))
        events.append(event(Kind.ITEM_ADDED, message=str(message.pk), item=wire))
    return events
