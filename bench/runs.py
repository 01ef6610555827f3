"""A hundred runs in one process, each streaming 50 tokens a second to a viewer: what arrives, when, and what it costs."""

from __future__ import annotations

import asyncio
import json
import logging
import statistics
import time
from bisect import bisect_right
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import accumulate, takewhile
from typing import Any

from agentchat.journal import process
from agentchat.models import OutputItem, Run
from agentchat.providers import registry
from agentchat.providers.base import Provider, Turn
from agentchat.services import chats, signin
from agentchat.supervisor import lifecycle
from bench.figures import Figure
from bench.prose import tokens
from bench.world import cpu, db, watching

RUNS, SECONDS, PAUSE = 100, 20, 1 / 50
TOKENS = SECONDS * 50
WORDS = list(tokens(TOKENS + RUNS))
KEY = "streaming"


@dataclass
class Stage:
    """What the runs share. They begin and leave together; when each token was said is kept, by run."""

    begin: asyncio.Event = field(default_factory=asyncio.Event)
    leave: asyncio.Event = field(default_factory=asyncio.Event)
    said: dict[int, list[float]] = field(default_factory=dict)

    async def stream(self, output: Any, nth: int) -> None:
        """Each run begins at another place of the text, and at another instant."""
        said = self.said[nth] = []
        await self.begin.wait()
        begun = time.perf_counter() + PAUSE * nth / RUNS
        for n, word in enumerate(WORDS[nth : nth + TOKENS]):
            await asyncio.sleep(max(0, begun + n * PAUSE - time.perf_counter()))
            said.append(time.perf_counter())
            await output.text(word)

    async def until_said(self) -> None:
        while sum(map(len, self.said.values())) < RUNS * TOKENS:
            await asyncio.sleep(0.2)


class Streaming(Provider):
    """An agent that says its part on the stage."""

    key = label = KEY
    stage: Stage

    async def run(self, output: Any, turn: Turn) -> None:
        await self.stage.stream(output, int(turn.text))
        await self.stage.leave.wait()


class Silent:
    async def text(self, text: str) -> None:
        """Does nothing."""


@dataclass
class Seen:
    """What one viewer got, and when."""

    frames: list[tuple[float, str]] = field(default_factory=list)

    def take(self, text: str) -> None:
        self.frames.append((time.perf_counter(), text))

    def deltas(self) -> Iterator[tuple[float, Any]]:
        for moment, text in self.frames:
            yield from ((moment, event) for event in json.loads(text)["events"] if event["kind"] == "item.delta")


class Refusals(logging.Handler):
    """Counts what the journal and the runs say about a database that refuses."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.count = 0
        logging.getLogger("agentchat").setLevel(logging.WARNING)
        logging.getLogger("agentchat").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        said = record.getMessage() + str(record.exc_info or "")
        self.count += "locked" in said or "commit failed" in said or "OperationalError" in said


@asynccontextmanager
async def server() -> AsyncIterator[None]:
    """All that a server has but its port."""
    registry.PROVIDERS[KEY] = f"{Streaming.__module__}.{Streaming.__name__}"
    await lifecycle.start()
    try:
        yield
    finally:
        await lifecycle.stop()


async def harness() -> float:
    """Seconds of CPU of the same tokens, said to nobody."""
    stage = Stage()
    talking = [asyncio.create_task(stage.stream(Silent(), nth)) for nth in range(RUNS)]
    with cpu() as used:
        stage.begin.set()
        await stage.until_said()
    await asyncio.gather(*talking)
    return used()


@dataclass
class Result:
    """CPU in seconds, hints to other processes that were dropped, characters that the database and the viewers lack,
    and the milliseconds of each token."""

    cpu: float
    dropped: int | None
    stored: int = 0
    delivered: int = 0
    waits: list[float] = field(default_factory=list)


async def crowd(stage: Stage) -> Result:
    Streaming.stage = stage
    owner, seen = await db(signin.owner), [Seen() for _ in range(RUNS)]
    async with server():
        made = [await db(chats.create, user=owner, provider=KEY) for _ in seen]
        with ExitStack() as stack:
            for chat, one in zip(made, seen, strict=True):
                stack.enter_context(watching(chat.pk, owner, one.take))
            result = Result(*await played(stage, owner, made))
    for nth, (chat, one) in enumerate(zip(made, seen, strict=True)):
        await compare(result, chat, one, stage.said[nth], WORDS[nth : nth + TOKENS])
    return result


async def played(stage: Stage, owner: Any, made: list[Any]) -> tuple[float, int | None]:
    """Seconds of CPU while they stream, without the beginning and the end of the runs; and hints dropped."""
    for nth, chat in enumerate(made):
        await db(chats.post, user=owner, chat_id=chat.pk, text=str(nth))
    while len(stage.said) < RUNS:
        await asyncio.sleep(0.1)
    await asyncio.sleep(1)
    with cpu() as used:
        stage.begin.set()
        await stage.until_said()
        await asyncio.sleep(0.2)
    stage.leave.set()
    while await db(Run.objects.filter(ended_at=None).count):
        await asyncio.sleep(0.2)
    bus = process.current().bus
    return used(), bus.dropped if bus else None


async def compare(result: Result, chat: Any, seen: Seen, said: list[float], words: list[str]) -> None:
    text, ends, got = "".join(words), list(accumulate(map(len, words))), ""
    for moment, event in seen.deltas():
        got += event["text"]
        new = range(bisect_right(ends, event["offset"]), bisect_right(ends, event["offset"] + len(event["text"])))
        result.waits += [(moment - said[n]) * 1000 for n in new]
    item = await db(OutputItem.objects.get, message__chat=chat)
    result.stored += lacks(item.text, text)
    result.delivered += lacks(got, text)


def lacks(got: str, text: str) -> int:
    same = takewhile(lambda pair: pair[0] == pair[1], zip(got, text, strict=False))
    return max(len(got), len(text)) - sum(1 for _ in same)


def measure() -> list[Figure]:
    own = asyncio.run(harness())
    refusals = Refusals()
    found = asyncio.run(crowd(Stage()))
    name = f"{RUNS} runs of {1 / PAUSE:g} tokens/s in one process"
    how = f"{SECONDS} s of Markdown in tokens of 4 characters; hosted as in a server, each with a viewer at the hub (no socket)"
    core = f"{how}; process CPU without the harness's {own:.1f} s, and without a database server's"
    figures = [
        Figure(f"{name}: characters not stored", found.stored, "", 0, how),
        Figure(f"{name}: characters not delivered", found.delivered, "", 0, how),
        Figure(f"{name}: CPU", (found.cpu - own) / SECONDS, "cores", 0.6, core),
        Figure(f"{name}: token to viewer, p95", statistics.quantiles(found.waits, n=20)[-1], "ms", 100, how),
        Figure(f"{name}: token to viewer, median", statistics.median(found.waits), "ms", None, how),
        Figure(f"{name}: 'database is locked' and other refusals", refusals.count, "", 0, "in the log of agentchat"),
    ]
    if found.dropped is None:
        return figures
    return [*figures, Figure(f"{name}: hints to other processes dropped", found.dropped, "", None, "by the bus")]
