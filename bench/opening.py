"""Opening a chat of 5,000 messages with 20,000 items, beside one of 50 messages: the page, and the snapshot by REST.

An agent leaves one turn, with all the rows that a turn has; both chats are copies of it, over and over.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from dataclasses import dataclass
from itertools import count
from typing import Any

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agentchat.events import RunStatus, Via
from agentchat.models import Chat, Message, OutputItem, Receipt, Resolution, Run, ids
from agentchat.models.message import USER
from agentchat.services import approvals, chats, runs
from agentchat.services.approvals import Decision
from bench.figures import Figure
from bench.prose import TEXT
from bench.world import db, fresh_output, journal

MANY, FEW = 5_000, 50
CALLS = 3
PROSE, RESULT = TEXT[:2000], TEXT[2000:3500]
TIMES = 10
TURN: dict[Any, str] = {
    Message: "chat",
    Run: "chat",
    OutputItem: "message__chat",
    Resolution: "chat",
    Receipt: "resolution__chat",
}
"""The rows of a turn, in the order in which they refer to each other, and how they refer to their chat."""
SIZES = (
    f"{MANY:,} messages with {MANY // 2 * (2 + 2 * CALLS):,} items; an answer is reasoning, {CALLS} calls (one approved)"
    f" with {len(RESULT):,} characters of output, {len(PROSE):,} characters of Markdown"
)


@dataclass(frozen=True, slots=True)
class Opened:
    queries: int
    bytes: int
    ms: float


async def answered() -> Any:
    """A chat in which an agent has answered once."""
    async with journal():
        chat, output = await fresh_output()
        await output.text(PROSE[:500], reasoning=True)
        await approved(chat.owner, output)
        for n in range(CALLS):
            await output.tool(f"c{n}", "shell", {"command": f"make part-{n}"}, result=RESULT, done=True)
        await output.text(PROSE)
        await output.flush(done=True)
        run = await db(Run.objects.get, chat=chat)
        await db(runs.finish, run.pk, RunStatus.COMPLETED)
    return chat


async def approved(owner: Any, output: Any) -> None:
    """The first call waits for the person, who allows it."""
    request = {"kind": "command", "title": "make part-0"}
    asking = asyncio.create_task(output.approve("shell", {"command": "make part-0"}, call_id="c0", request=request))
    while not (item := await db(OutputItem.objects.pending().first)):
        await asyncio.sleep(0.01)
    await db(decide, owner, item)
    await asking


def decide(owner: Any, item: OutputItem) -> None:
    approvals.decide(owner, item.pk, Decision("approve", item.digest), via=Via.API, proof="bench")


def copies(source: Chat, messages: int) -> Chat:
    """A chat of so many messages, as it is when its events are no longer kept."""
    chat = chats.create(user=source.owner, provider=source.provider, title=f"{messages} messages")
    Chat.objects.filter(pk=chat.pk).update(last_seq=messages, floor_seq=messages)
    rows = [row for model, path in TURN.items() for row in model.objects.filter(**{path: source})]
    numbers = count(Resolution.objects.count() + 1)
    made = [row for nth in range(messages // 2) for row in turn(rows, chat, nth, next(numbers))]
    for model in TURN:
        model.objects.bulk_create([row for row in made if type(row) is model], batch_size=500)
    return chat


def turn(rows: list[Any], chat: Chat, nth: int, number: int) -> list[Any]:
    """The rows of a turn under new keys, which refer to each other as the old ones do."""
    keys: dict[Any, Any] = {(type(row), row.pk): number if isinstance(row.pk, int) else ids.ordered() for row in rows}
    keys[Chat, rows[0].chat_id] = chat.pk
    made = [again(row, keys) for row in rows]
    for row in made:
        if isinstance(row, Message):
            row.position = 2 * nth + (1 if row.role == USER else 2)
        if isinstance(row, Resolution):
            row.prev_hash, row.hash = str(nth), str(nth + 1)
    return made


def again(row: Any, keys: dict[Any, Any]) -> Any:
    values = {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}
    for field in row._meta.concrete_fields:
        if field.primary_key or field.related_model:
            key = field.related_model or type(row), values[field.attname]
            values[field.attname] = keys.get(key, key[1])
    return type(row)(**values)


def opened(client: Client, path: str) -> Opened:
    """The time is the median of several, without the count of the queries."""
    with CaptureQueriesContext(connection) as queries:
        answer = client.get(path)
    assert answer.status_code == 200, answer.status_code
    asked, took = len(queries), []
    for _ in range(TIMES):
        begun = time.perf_counter()
        client.get(path)
        took.append((time.perf_counter() - begun) * 1000)
    return Opened(asked, len(answer.content), statistics.median(took))


def figures(what: str, many: Opened, few: Opened) -> list[Figure]:
    said = f"{SIZES}; the newest 50 messages are sent"
    timed = f"median of {TIMES}, django.test.Client in this process; {SIZES}"
    return [
        Figure(f"queries to open 5,000 messages, of those for 50, {what}", many.queries / few.queries, "x", 1, said),
        Figure(f"queries to open a chat of 5,000 messages, {what}", many.queries, "", None, said),
        Figure(f"first payload of a chat of 5,000 messages, {what}", many.bytes / 1e6, "MB", 1, said),
        Figure(f"time to open a chat of 5,000 messages, {what}", many.ms, "ms", 200, timed),
        Figure(f"time to open a chat of 50 messages, {what}", few.ms, "ms", None, timed),
    ]


def measure() -> list[Figure]:
    source = asyncio.run(answered())
    few, many = copies(source, FEW), copies(source, MANY)
    client = Client(SERVER_NAME="localhost")
    client.force_login(source.owner)
    found = []
    for what, path in (("page", "/chats/{}/"), ("REST snapshot", "/api/v1/chats/{}/snapshot/")):
        found += figures(what, *(opened(client, path.format(chat.pk)) for chat in (many, few)))
    return found
