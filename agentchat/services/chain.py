"""The chain of a chat's resolutions: each carries the hash of the one before it.

A changed or removed row breaks the chain; so that the *last* row cannot vanish unseen, note the newest hash elsewhere.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import rfc8785

from agentchat.models import Resolution
from agentchat.wire import time

FIELDS = (
    "action", "cause", "tool", "arguments", "answers", "reason", "scope", "rule", "decided_by_name",
    "decided_via", "proof", "digest", "final_digest", "prev_hash",
)  # fmt: skip
"""What is hashed as it stands in the row; `_record` adds ids and times."""


@dataclass(frozen=True, slots=True)
class Break:
    """The first row of a chat's chain that is not what was written."""

    resolution: int
    chat: UUID
    problem: str


def hash_of(row: Resolution) -> str:
    return hashlib.sha256(rfc8785.dumps(_record(row))).hexdigest()


def _record(row: Resolution) -> dict[str, Any]:
    record: dict[str, Any] = {name: getattr(row, name) for name in FIELDS}
    return {name: str(value) if name != "answers" else value for name, value in record.items()} | {
        "item": str(row.item_id),
        "chat": str(row.chat_id),
        "decided_by": str(row.decided_by_id or ""),
        "displayed_at": time(row.displayed_at),
        "decided_at": time(row.decided_at),
    }


def seal(row: Resolution) -> None:
    """Set `prev_hash` and `hash`. The chat's row must be locked."""
    newest = Resolution.objects.filter(chat_id=row.chat_id).order_by("-pk").values_list("hash", flat=True).first()
    row.prev_hash = newest or ""
    row.hash = hash_of(row)


def verify(chat_id: UUID) -> Break | None:
    """Walk a chat's chain in the order of writing; None if every row is what was written."""
    previous = ""
    for row in Resolution.objects.filter(chat_id=chat_id).order_by("pk").iterator():
        if row.prev_hash != previous:
            return Break(row.pk, chat_id, "it does not follow the row before it: a row was removed or added")
        if row.hash != hash_of(row):
            return Break(row.pk, chat_id, "its content is not what was hashed: it was changed")
        previous = row.hash
    return None


def verify_all() -> list[Break]:
    chats = Resolution.objects.order_by("chat_id").values_list("chat_id", flat=True).distinct()
    return [found for chat_id in chats if (found := verify(chat_id))]
