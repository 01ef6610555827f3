"""Events that a service adds within its own transaction."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.db.models.functions import Now

from agentchat.journal import process
from agentchat.journal.entry import Committed, Event
from agentchat.models import Chat
from agentchat.models import Event as EventRow


def append(chat: Chat, events: Sequence[Event]) -> int:
    """Number and insert events of a chat whose row the caller holds locked; published after the commit.

    Returns the number of the last event.
    """
    first = chat.last_seq + 1
    chat.last_seq += len(events)
    chat.save(update_fields=["last_seq"])
    EventRow.objects.bulk_create(
        EventRow(chat_id=chat.pk, seq=seq, kind=kind, body=body, created_at=Now())
        for seq, (kind, body) in enumerate(events, first)
    )
    committed = Committed(chat.pk, first, tuple(events))
    transaction.on_commit(lambda: process.announce([committed]))
    return chat.last_seq
