"""What an idle server takes: a token from `Output.text` to a browser, and a decision to the agent in another process."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

from django.db import connection

from agentchat.events import Via
from agentchat.models import OutputItem
from agentchat.services import approvals, signin
from agentchat.services.approvals import Decision
from bench.figures import Figure
from bench.stamping import Stamping, stamps
from bench.world import FOLDER, db, journal
from tests.cases.helpers import socket
from tests.services.client import Client, until
from tests.services.cluster import WebProcess
from tests.services.server import Server

TOKENS, DECISIONS = 200, 150
PROGRAM = (sys.executable, "-m", "bench.stamping")
SHARED = ("DATABASE_URL", "REDIS_URL", "SECRET_KEY")


class Embedded(Server):
    """`manage.py serve`, with the agent that stamps."""

    def _open(self, log: IO[bytes], **more: Any) -> Any:
        return super()._open(log, args=[*PROGRAM, "serve", "--port", str(self.port)], **more)


class Web(WebProcess):
    """One of several, likewise."""

    program = PROGRAM


@contextmanager
def servers() -> Iterator[list[Server]]:
    """On the database of the bench: on SQLite one, on PostgreSQL two."""
    given: dict[str, Any] = {"var": Path(FOLDER)}
    given["env"] = {name: os.environ[name] for name in SHARED if name in os.environ}
    with ExitStack() as stack:
        kinds = [Web, Web] if connection.vendor == "postgresql" else [Embedded]
        yield [stack.enter_context(kind(**given)) for kind in kinds]


async def heard(line: Any, pid: int) -> list[tuple[bool, float]]:
    """Of each token: whether it comes from this process, and the milliseconds that it took."""
    found: list[tuple[bool, float]] = []
    while len(found) < TOKENS:
        frame, now = await line.recv(), time.monotonic_ns()
        for event in json.loads(frame)["events"]:
            if event["kind"] == "item.delta":
                found += [(sender == pid, (now - moment) / 1e6) for sender, moment in stamps(event["text"])]
    return found


async def tokens(client: Client, at: list[Server]) -> list[tuple[bool, float]]:
    """As a browser at each server gets them; the run is in one of them."""
    chat = client.post("/chats/", {"provider": Stamping.key}).json()["id"]
    async with asyncio.timeout(120):
        lines = [await socket(server, client, chat, 0) for server in at]
        await asyncio.sleep(1)
        await asyncio.to_thread(client.say, chat, f"tokens {TOKENS}")
        both = await asyncio.gather(*(heard(line, server.pid) for line, server in zip(lines, at, strict=True)))
        await asyncio.gather(*(line.close() for line in lines))
    return [each for found in both for each in found]


async def decisions(client: Client) -> list[float]:
    """Milliseconds from the commit of a decision here to the return of `approve` in a server."""
    chat = client.chat(f"requests {DECISIONS}", Stamping.key)
    owner, committed = await db(signin.owner), []
    async with journal():
        for _ in range(DECISIONS):
            while not (item := await db(OutputItem.objects.pending().first)):
                await asyncio.sleep(0.02)
            await asyncio.sleep(0.1)
            committed.append(await db(decide, owner, item))
            await asyncio.sleep(0.1)
    await asyncio.to_thread(until, lambda: client.run(chat)["ended_at"])
    said = "".join(item["content"][0]["text"] for item in client.items(chat) if item["type"] == "message")
    return [(moment - before) / 1e6 for (_, moment), before in zip(stamps(said), committed, strict=True)]


def decide(owner: Any, item: OutputItem) -> int:
    """When the commit had returned."""
    approvals.decide(owner, item.pk, Decision("approve", item.digest), via=Via.API, proof="bench")
    return time.monotonic_ns()


def of_tokens(found: list[tuple[bool, float]]) -> list[Figure]:
    figures: list[Figure] = []
    server = "daphne" if connection.vendor == "sqlite" else "uvicorn"
    how = f"{TOKENS} tokens, one at a time; {server} in a process of its own, a websocket with deflate in another"
    for where, wanted, bar in (("same process", True, 15), ("across processes", False, 25)):
        if took := [ms for is_here, ms in found if is_here == wanted]:
            figures += pair(f"token from Output.text to its bytes at a browser, {where}", took, (bar, None), how)
    return figures


def of_decisions(took: list[float]) -> list[Figure]:
    how = f"{len(took)} decisions, from the return of the commit; the run is in one of two servers, the decision in neither"
    return pair("decision committed in one process to approve() returning in another", took, (10, 25), how)


def pair(name: str, took: list[float], bars: tuple[float, float | None], how: str) -> list[Figure]:
    values = {"median": statistics.median(took), "p95": statistics.quantiles(took, n=20)[-1]}
    return [
        Figure(f"{name}, {key}", value, "ms", bar, how) for (key, value), bar in zip(values.items(), bars, strict=True)
    ]


def measure() -> list[Figure]:
    with servers() as at:
        client = Client(at[0])
        figures = of_tokens(asyncio.run(tokens(client, at)))
        if connection.vendor == "postgresql":
            figures += of_decisions(asyncio.run(decisions(client)))
    return figures
