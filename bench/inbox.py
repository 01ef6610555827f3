"""One person's inbox, beside 500 chats that each have something to decide."""

from __future__ import annotations

import asyncio
import json
import math
import time
from contextlib import suppress
from typing import Any

from channels.testing import WebsocketCommunicator
from django.test import Client

from agentchat.consumers import INBOX_PAUSE, InboxConsumer
from agentchat.events import Via
from agentchat.models import OutputItem
from agentchat.services import approvals, signin
from agentchat.services.approvals import Decision
from bench.figures import Figure
from bench.opening import Opened, opened
from bench.world import db, fresh_output, journal

FEW, MANY = 10, 500
HOW = f"{MANY} chats with a request each"


async def asked(count: int) -> list[asyncio.Task[Any]]:
    """So many more chats whose agents ask."""
    before = await db(OutputItem.objects.pending().count)
    outputs = [(await fresh_output())[1] for _ in range(count)]
    asking = [asyncio.create_task(output.approve("shell", {"command": "make"})) for output in outputs]
    while await db(OutputItem.objects.pending().count) < before + count:
        await asyncio.sleep(0.1)
    return asking


def page(owner: Any) -> Opened:
    client = Client(SERVER_NAME="localhost")
    client.force_login(owner)
    return opened(client, "/approvals/")


def decide(owner: Any) -> None:
    for item in OutputItem.objects.pending():
        approvals.decide(owner, item.pk, Decision("approve", item.digest), via=Via.API, proof="bench")


async def told(owner: Any) -> tuple[list[int], float]:
    """What the inbox hears while all is decided, and how many seconds that took."""
    socket = WebsocketCommunicator(InboxConsumer.as_asgi(), "/ws/inbox/")
    socket.scope["user"] = owner
    await socket.connect()
    heard = [json.loads(await socket.receive_from())["pending"]]
    deciding, begun = asyncio.create_task(db(decide, owner)), time.monotonic()
    while not deciding.done() or heard[-1]:
        with suppress(TimeoutError):
            frame = await asyncio.wait_for(socket.output_queue.get(), 5)
            heard.append(json.loads(frame["text"])["pending"])
    return heard, time.monotonic() - begun


async def whole() -> tuple[Opened, Opened, list[int], float]:
    async with journal():
        owner = await db(signin.owner)
        asking = await asked(FEW)
        few = await db(page, owner)
        asking += await asked(MANY - FEW)
        many = await db(page, owner)
        heard, took = await told(owner)
        await asyncio.gather(*asking)
    return few, many, heard, took


def measure() -> list[Figure]:
    few, many, heard, took = asyncio.run(whole())
    most = math.ceil(took / INBOX_PAUSE) + 1
    said = f"{HOW}; all are decided while the inbox listens; it hears the number once in {INBOX_PAUSE:g} s"
    return [
        Figure("queries of the inbox with 500 chats, of those with 10", many.queries / few.queries, "x", 1, HOW),
        Figure("time of the inbox with 500 chats", many.ms, "ms", 200, f"{HOW}; django.test.Client in this process"),
        Figure("the same, first payload", many.bytes / 1e6, "MB", 1, HOW),
        Figure("frames to the inbox for 500 decisions, of those that it may get", len(heard) / most, "x", 1, said),
    ]
