"""Five hundred viewers of one stream, one on a slow line, and an inbox of five hundred chats."""

from __future__ import annotations

import asyncio
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import websockets

from bench.crowd import Crowd
from bench.figures import Figure
from tests.cases.helpers import cookie
from tests.reducer import condensed
from tests.services.client import Client
from tests.services.server import Server
from tests.services.slow_line import SlowLine

MANY, FEW = 500, 50
PER_SECOND, SECONDS = 20, 15
LINE = 20_000
TICK = os.sysconf("SC_CLK_TCK")
STREAM = json.dumps(
    {"repeat": PER_SECOND * SECONDS, "steps": [{"text": "some words of it\n", "every": 1 / PER_SECOND}]}
)
LOG = "".join(f"{n * 7919 % 100_003} cc -o part{n}.o\n" for n in range(2_500))
BUILD = [
    {"tool": {"id": "c", "name": "shell", "arguments": {"command": "make"}}},
    {"repeat": 8, "steps": [{"output": {"id": "c", "text": LOG}, "chunk": 3600, "every": 0.05}]},
    {"tool": {"id": "c", "name": "shell", "done": True}},
    {"text": "It is built."},
]
"""Some 400 KB at 72 KB/s, in pieces of 3.6 KB."""


@dataclass(frozen=True, slots=True)
class Watched:
    """CPU in seconds for each delivery, deliveries for each viewer, events amiss in all, KiB for an idle viewer."""

    cpu: float
    frames: float
    gaps: int
    idle: float


def seconds_of(pid: int) -> float:
    """CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def resident_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def serving(server: Server) -> int:
    """The one process that serves; the other looks after it."""
    return int(Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()[0])


async def ended(client: Client, chat: str) -> None:
    while not (await asyncio.to_thread(client.run, chat))["ended_at"]:
        await asyncio.sleep(0.5)


async def watched(server: Server, client: Client, count: int) -> Watched:
    """One stream, watched by `count` browsers from its first token on."""
    chat = client.post("/chats/", {"provider": "scripted"}).json()["id"]
    pid, after = serving(server), client.snapshot(chat)["cursor"]
    before = resident_of(pid)
    path = f"/ws/chats/{chat}/?after={after}"
    async with Crowd(server.port, path, cookie(client)["Cookie"], count) as crowd:
        await asyncio.sleep(3)
        idle = (resident_of(pid) - before) / count / 1024
        used = seconds_of(pid)
        await asyncio.to_thread(client.say, chat, STREAM)
        await asyncio.sleep(SECONDS)
        used = seconds_of(pid) - used
        delivered = crowd.delivered
        await ended(client, chat)
        await asyncio.sleep(1)
        gaps = sum(browser.gaps(after) for browser in crowd.browsers)
    return Watched(used / delivered, delivered / count, gaps, idle)


async def crowds() -> list[Figure]:
    with Server("--processes", "1") as server:
        client = Client(server)
        await watched(server, client, 5)
        few = await watched(server, client, FEW)
        many = await watched(server, client, MANY)
    how = f"uvicorn, {SECONDS} s, {PER_SECOND} frames/s, deflated, {many.frames / SECONDS:.1f} frames/s came to each"
    return [
        Figure(f"CPU of {MANY} viewers of one stream at 20 frames/s", many.cpu * MANY * PER_SECOND, "cores", 0.7, how),
        Figure("the same, for one delivery", many.cpu * 1e6, "us", None, how),
        Figure(f"events lost or twice at {MANY} viewers", many.gaps, "", 0, "every frame of each of them is read"),
        Figure(f"CPU of a delivery at {MANY} viewers, of that at {FEW}", many.cpu / few.cpu, "x", 1.3, how),
        Figure("memory of an idle viewer", many.idle, "KiB", 45, f"resident, {MANY} more sockets, deflated"),
    ]


@dataclass(slots=True)
class Seen:
    state: Any
    at: float = 0.0


async def follow(client: Client, port: int, chat: str, after: Any) -> Seen:
    """The chat as it is at the end of its run, and when that was known."""
    url = f"ws://127.0.0.1:{port}/ws/chats/{chat}/?condense=1&after={after['cursor']}"
    seen = Seen(after)
    async with websockets.connect(
        url, additional_headers=cookie(client), origin=f"http://127.0.0.1:{port}", compression=None, max_size=None
    ) as socket:  # type: ignore[arg-type]
        over = False
        while not over:
            frame = json.loads(await socket.recv())
            seen.state = condensed(seen.state, frame)
            over = any(event["kind"] == "run.changed" and event["changes"].get("ended_at") for event in frame["events"])
    seen.at = time.monotonic()
    return seen


async def slow() -> list[Figure]:
    """A line that carries a quarter of the stream, as no compression is used."""
    with Server("--processes", "1") as server:
        client = Client(server)
        chat = client.post("/chats/", {"provider": "scripted"}).json()["id"]
        first = client.snapshot(chat)
        async with SlowLine(server.port, LINE) as line:
            both = [asyncio.create_task(follow(client, port, chat, first)) for port in (line.port, server.port)]
            await asyncio.sleep(1)
            await asyncio.to_thread(client.say, chat, "\n".join(map(json.dumps, BUILD)))
            late, prompt = await asyncio.gather(*both)
        same = late.state == prompt.state == client.snapshot(chat)
        carried = line.carried
    how = f"a line of {LINE // 1000} kB/s, a stream of 72 kB/s, not deflated; it carried {carried // 1000} kB"
    return [
        Figure("a viewer on a slow line, behind at the end", late.at - prompt.at, "s", 2, how),
        Figure("the same, chats that differ from the journal at the end", int(not same), "", 0, how),
    ]


async def all_of_it() -> list[Figure]:
    return [*await crowds(), *await slow()]


def measure() -> list[Figure]:
    return asyncio.run(all_of_it())
