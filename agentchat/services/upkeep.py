"""Upkeep: events that nobody needs any more are dropped, and so are old idempotency keys. No table only grows."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Max, Min

from agentchat.models import Chat, Event, IdempotencyKey, OutputItem, clock, outage
from agentchat.services import fold

log = logging.getLogger(__name__)
EVERY = 60.0
CHATS = 100
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
    """Drop events older than AGENTCHAT_KEEP_DELTAS_SECONDS that no open item needs; returns how many.

    At most CHATS chats at a time, so that each transaction stays short.
    """
    now = clock.now()
    IdempotencyKey.objects.filter(created_at__lt=now - KEEP_KEYS).delete()
    old = now - timedelta(seconds=settings.AGENTCHAT_KEEP_DELTAS_SECONDS)
    chats = Event.objects.filter(created_at__lt=old).order_by().values("chat").annotate(last=Max("seq"))[:CHATS]
    return sum(_compact(row["chat"], row["last"]) for row in chats)


@transaction.atomic
def _compact(chat_id: UUID, last: int) -> int:
    chat = Chat.objects.locked().get(pk=chat_id)
    open_items = OutputItem.objects.filter(message__chat=chat, status__in=fold.OPEN)
    needed = open_items.aggregate(first=Min("checkpoint_seq"))["first"]
    floor = last if needed is None else min(last, needed)
    if floor <= chat.floor_seq:
        return 0
    chat.floor_seq = floor
    chat.save(update_fields=["floor_seq"])
    return Event.objects.filter(chat=chat, seq__lte=floor).delete()[0]
