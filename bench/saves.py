"""What one save costs in a chat with few and with many earlier messages."""

from __future__ import annotations

import asyncio
import statistics
from typing import Any

from django.db import connection

from agentchat.models import Chat, Message, OutputItem, ids
from agentchat.services import chats, runs, signin
from agentchat.services.output import Output
from bench.figures import Figure
from bench.prose import TEXT
from bench.world import cpu, db, journal

SAVES = 200
FEW, MANY = 10, 1_000


async def output_after(earlier: int) -> Output:
    """The output of the answer to the last message of a chat."""
    owner = await db(signin.owner)
    chat = await db(chats.create, user=owner, provider="scripted")
    await db(fill, chat, earlier)
    _, run = await db(chats.post, user=owner, chat_id=chat.pk, text="go")
    await db(runs.claim, "bench:worker")
    return Output({"chat_id": chat.pk, "message_id": run.message_id, "task_id": run.pk}, owner)


def fill(chat: Any, count: int) -> None:
    """As they are when their events are no longer kept."""
    now = chat.created_at
    Chat.objects.filter(pk=chat.pk).update(last_seq=count, floor_seq=count)
    messages = [
        Message(chat=chat, position=n + 1, role="assistant", created_at=now, ended_at=now) for n in range(count)
    ]
    Message.objects.bulk_create(messages)
    columns = {"type": "message", "status": "completed", "text": TEXT[:2000], "created_at": now, "ended_at": now}
    OutputItem.objects.bulk_create(OutputItem(pk=ids.random(), message=row, position=0, **columns) for row in messages)


def written() -> int:
    """Bytes that the database has written to its log so far."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint")
            return int(cursor.fetchone()[0])
    with open("/proc/self/io") as file:
        return int(next(line for line in file if line.startswith("wchar")).split()[1])


async def one(earlier: int) -> tuple[float, float]:
    """Bytes written and seconds of CPU of one save: the median."""
    output = await output_after(earlier)
    sizes, seconds = [], []
    await output.text("x")
    for n in range(SAVES):
        await output.text(f"Word {n}. ")
        await output.flush(force=True)
        before = await db(written)
        with cpu() as used:
            output.usage = {"output_tokens": n}
            await output.save()
        sizes.append(await db(written) - before)
        seconds.append(used())
    return statistics.median(sizes), statistics.median(seconds)


async def both() -> list[Figure]:
    async with journal():
        await one(FEW)
        few, many = await one(FEW), await one(MANY)
    how = f"median of {SAVES} saves; {MANY} earlier messages by {FEW}"
    return [
        Figure("bytes written by one save, 1,000 earlier messages by 10", many[0] / few[0], "x", 1.1, how),
        Figure("CPU of one save, 1,000 earlier messages by 10", many[1] / few[1], "x", 1.1, how),
        Figure("bytes written by one save", many[0], "B", None, f"{MANY} earlier messages"),
    ]


def measure() -> list[Figure]:
    return asyncio.run(both())
