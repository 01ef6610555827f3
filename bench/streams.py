"""One stream to one viewer, by a clock that is as fast as the work: 200 tokens a second, 20 commits a second."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from agentchat.supervisor import compression
from bench import clock
from bench.figures import Figure, exponent
from bench.prose import size, tokens
from bench.reference import ReferenceModel
from bench.world import cpu, fresh_output, installation, journal, watching

PAUSE = 1 / 200
OUTPUT = "x" * 4096
SIZES = (1_000, 5_000, 20_000, 100_000)


DEFLATED = "virtual clock; frames deflated as the server's sockets deflate them"


@dataclass(frozen=True, slots=True)
class Cost:
    """`bytes` before and `packed` after permessage-deflate, to one browser; `cpu` in seconds."""

    bytes: int
    packed: int
    cpu: float


class Deflate:
    """What permessage-deflate does with each frame, with one context for the connection."""

    def __init__(self) -> None:
        self._encoder = zlib.compressobj(wbits=-compression.WINDOW_BITS, memLevel=compression.MEMORY_LEVEL)
        self.bytes = 0

    def __call__(self, frame: str) -> None:
        packed = self._encoder.compress(frame.encode()) + self._encoder.flush(zlib.Z_SYNC_FLUSH)
        self.bytes += len(packed) - 4 + HEADER


HEADER = 4
"""Bytes of a WebSocket frame before its payload, for 126 to 65,535 bytes."""


def steps(count: int, calls: int) -> Iterator[tuple[str, str | None]]:
    """What the agent does: a token, and now and then a call with an id."""
    for n, token in enumerate(tokens(count)):
        yield token, f"c{n}" if calls and n % (count // calls) == 0 else None


async def harness(count: int) -> Cost:
    with cpu() as used:
        for _ in steps(count, 0):
            await asyncio.sleep(PAUSE)
    return Cost(0, 0, used())


async def ours(count: int, calls: int = 0, viewed: bool = True, deflated: bool = False) -> Cost:
    take = Deflate() if deflated else None
    async with journal():
        chat, output = await fresh_output()
        with watching(chat.pk, chat.owner, take, viewed) as viewer:
            await asyncio.sleep(1)
            with cpu() as used:
                for token, call in steps(count, calls):
                    if call:
                        await output.tool(call, "read", {"file": call}, result=OUTPUT, done=True)
                    await output.text(token)
                    await asyncio.sleep(PAUSE)
                await output.flush(done=True)
                await asyncio.sleep(1)
    return Cost(viewer.bytes, take.bytes if take else 0, used())


async def theirs(count: int, calls: int = 0, viewed: bool = True, deflated: bool = False) -> Cost:
    take = Deflate() if deflated else None
    sent = 0

    def send(room: str, text: str) -> None:
        nonlocal sent
        if room == "chat" and viewed:
            sent += len(text.encode())
            if take:
                take(text)

    model = ReferenceModel(send)
    with cpu() as used:
        for token, call in steps(count, calls):
            if call:
                await model.tool(call, "read", {"file": call}, OUTPUT)
            await model.text(token)
            await asyncio.sleep(PAUSE)
        await model.flush(done=True)
        await model.save()
    return Cost(sent, take.bytes if take else 0, used())


async def after_a_large_result() -> float:
    """KiB to a viewer for 200 tokens after a result of 5 MB."""
    async with journal():
        chat, output = await fresh_output()
        await output.tool("c", "read", {}, result="x" * 5_000_000, done=True)
        await output.flush(force=True)
        with watching(chat.pk, chat.owner) as viewer:
            await asyncio.sleep(1)
            before = viewer.bytes
            for token in tokens(200):
                await output.text(token)
                await asyncio.sleep(PAUSE)
            await asyncio.sleep(1)
            return (viewer.bytes - before) / 1024


def measure() -> list[Figure]:
    own = {count: clock.run(harness(count)).cpu for count in SIZES}
    seen = {count: clock.run(ours(count)) for count in SIZES}
    alone = {count: clock.run(ours(count, viewed=False)) for count in SIZES}
    model = {count: clock.run(theirs(count, viewed=False)) for count in (20_000, 100_000)}
    tools = [clock.run(side(20_000, calls=50, viewed=False)) for side in (ours, theirs)]
    packed = [clock.run(side(20_000, deflated=True)) for side in (ours, theirs)]
    with_tools = clock.run(ours(20_000, calls=50, deflated=True))
    return [
        *_bytes(seen, packed[1], packed[0], with_tools),
        *_cpu(own, alone, model),
        *_ratios(own[20_000], tools, packed),
    ]


def _bytes(mine: dict[int, Cost], model: Cost, packed: Cost, tools: Cost) -> list[Figure]:
    text, how = size(20_000), "virtual clock; frames of the socket"
    growth = exponent((n, cost.bytes) for n, cost in mine.items())
    return [
        Figure("bytes to one browser per byte of text, 20,000 tokens at 200/s", packed.packed / text, "x", 5, DEFLATED),
        Figure("the same, before permessage-deflate", mine[20_000].bytes / text, "x", None, how),
        Figure(
            "the same, of what one browser gets of the reference model",
            packed.packed / model.packed,
            "x",
            1 / 300,
            DEFLATED,
        ),
        Figure("the same, before permessage-deflate of both", mine[20_000].bytes / model.bytes, "x", 1 / 300, how),
        Figure("bytes, growth from 1,000 to 100,000 tokens", growth, "exponent", 1.05, "slope of the log-log fit"),
        Figure(
            "bytes with 50 calls of 4 KB, per byte of text and output",
            tools.packed / (text + 50 * 4096),
            "x",
            3,
            DEFLATED,
        ),
        Figure("the same, before permessage-deflate", tools.bytes / (text + 50 * 4096), "x", None, how),
        Figure("bytes for 200 tokens after a result of 5 MB", clock.run(after_a_large_result()), "KiB", 64, how),
    ]


def _cpu(own: dict[int, float], mine: dict[int, Cost], model: dict[int, Cost]) -> list[Figure]:
    net = {count: cost.cpu - own[count] for count, cost in mine.items()}
    other = {count: cost.cpu - own[count] for count, cost in model.items()}
    how = "process CPU, virtual clock, without the harness; ours is persisted, the model's is not"
    return [
        Figure("worker CPU, of the reference model's, 20,000 tokens", net[20_000] / other[20_000], "x", 2, how),
        Figure("worker CPU, of the reference model's, 100,000 tokens", net[100_000] / other[100_000], "x", 1, how),
        Figure("worker CPU, growth with the text", exponent(net.items()), "exponent", 1.05, "slope of the log-log fit"),
        Figure("worker CPU for a token", net[20_000] / 20_000 * 1e6, "us", None, "20,000 tokens, virtual clock"),
    ]


def _ratios(own: float, tools: list[Cost], packed: list[Cost]) -> list[Figure]:
    ratio, deflated = ((ours.cpu - own) / (theirs.cpu - own) for ours, theirs in (tools, packed))
    return [
        Figure("worker CPU, of the model's, with 50 calls of 4 KB", ratio, "x", 1 / 3, "20,000 tokens"),
        Figure("server CPU with one compressing browser, of the model's with one", deflated, "x", 1 / 4, DEFLATED),
    ]


if __name__ == "__main__":
    from bench.figures import table

    with installation():
        print(table(measure()))
