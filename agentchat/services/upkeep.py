"""Upkeep: old events, idempotency keys and sessions are dropped. No table only grows, but those of what people did."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from importlib import import_module
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Max

from agentchat.models import Chat, Event, IdempotencyKey, clock, outage
from agentchat.services import fold

log = logging.getLogger(__name__)
EVERY = 60.0
CHATS = 100
AT_ONCE = 5_000
"""Events that are dropped in one transaction."""
KEEP_KEYS = timedelta(days=2)


async def loop(run: Callable[..., Awaitable[Any]]) -> None:
    while True:
        await asyncio.sleep(EVERY)
        try:
            dropped = await run(compact)
            if dropped:
                log.info("%d old events were dropped.", dropped)
        except Exception:
            outage.report(log, "The upkeep failed; it is tried again in %d s.", EVERY)


def compact() -> int:
    """Drop keys, sessions and events that nobody needs any more; returns how many events.

    An event is needed for AGENTCHAT_KEEP_DELTAS_SECONDS, and while an open item grew by it since its checkpoint.
    """
    now = clock.now()
    IdempotencyKey.objects.filter(created_at__lt=now - KEEP_KEYS).delete()
    import_module(settings.SESSION_ENGINE).SessionStore.clear_expired()
    old = Event.objects.filter(created_at__lt=now - timedelta(seconds=settings.AGENTCHAT_KEEP_DELTAS_SECONDS))
    dropped, after = 0, UUID(int=0)
    while chats := list(old.filter(chat__gt=after).order_by("chat").values_list("chat").annotate(Max("seq"))[:CHATS]):
        dropped += sum(_compact(chat, last) for chat, last in chats)
        after = chats[-1][0]
    return dropped


def _compact(chat_id: UUID, last: int) -> int:
    """In short transactions, since nobody else can write meanwhile."""
    dropped = 0
    while part := _drop_some(chat_id, last):
        dropped += part
    return dropped


@transaction.atomic
def _drop_some(chat_id: UUID, last: int) -> int:
    chat = Chat.objects.locked().get(pk=chat_id)
    needed = fold.first_needed(chat_id, chat.floor_seq)
    floor = min(last, chat.floor_seq + AT_ONCE, last if needed is None else needed - 1)
    if floor <= chat.floor_seq:
        return 0
    chat.floor_seq = floor
    chat.save(update_fields=["floor_seq"])
    return Event.objects.filter(chat=chat, seq__lte=floor).delete()[0]
