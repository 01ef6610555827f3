"""Open items: their rows are true up to a checkpoint, and the events after it say how they grew since."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from agentchat.events import PROGRESS, ItemStatus, ItemType, Kind
from agentchat.models import Event, OutputItem
from agentchat.wire import Text

OPEN = (ItemStatus.IN_PROGRESS, ItemStatus.PENDING)
GROWING = (ItemType.MESSAGE, ItemType.REASONING, ItemType.OUTPUT)
"""Types of items whose text comes in pieces."""


def progress(chat_id: UUID, items: Iterable[OutputItem]) -> dict[str, list[dict[str, Any]]]:
    """Per item id, the events that grew it after its checkpoint, in order."""
    checkpoints = {str(item.pk): item.checkpoint_seq for item in items if grows(item)}
    grown: dict[str, list[dict[str, Any]]] = defaultdict(list)
    if not checkpoints:
        return grown
    rows = Event.objects.filter(chat_id=chat_id, seq__gt=min(checkpoints.values()), kind__in=PROGRESS)
    for seq, body in rows.order_by("seq").values_list("seq", "body"):
        event = json.loads(body)
        if seq > checkpoints.get(event["item"], seq):
            grown[event["item"]].append(event)
    return grown


def grows(item: OutputItem) -> bool:
    return item.status in OPEN and item.type in GROWING


def first_needed(chat_id: UUID, floor: int) -> int | None:
    """The first event after `floor` by which an open item grew since its checkpoint."""
    items = OutputItem.objects.filter(message__chat=chat_id, status__in=OPEN, type__in=GROWING)
    found = (
        _first_of(chat_id, item, max(floor, checkpoint))
        for item, checkpoint in items.values_list("pk", "checkpoint_seq")
    )
    return min((seq for seq in found if seq is not None), default=None)


def _first_of(chat_id: UUID, item: UUID, after: int) -> int | None:
    grown = Event.objects.filter(chat_id=chat_id, seq__gt=after, kind__in=PROGRESS, body__contains=str(item))
    return grown.order_by("seq").values_list("seq", flat=True).first()


def apply(row: OutputItem, text: Text, events: Iterable[dict[str, Any]]) -> None:
    """Bring a row (in memory) and its text on the wire up to date."""
    for event in events:
        if event["kind"] == Kind.ITEM_DELTA:
            text.grow(event["text"][max(0, text.chars - event["offset"]) :], row.type)
        else:
            _add_block(row, event)


def complete(row: OutputItem, events: Iterable[dict[str, Any]]) -> None:
    """The same for a row that holds its whole text."""
    parts, chars = [row.text], len(row.text)
    for event in events:
        if event["kind"] == Kind.ITEM_DELTA:
            parts.append(event["text"][max(0, chars - event["offset"]) :])
            chars += len(parts[-1])
        else:
            _add_block(row, event)
    row.text = "".join(parts)


def _add_block(row: OutputItem, event: dict[str, Any]) -> None:
    if event["index"] == row.blocks:
        row.html += event["html"]
        row.html_end = event["end"]
        row.blocks += 1
