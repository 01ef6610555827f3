"""One stream to one viewer, by a clock that is as fast as the work: 200 tokens a second, 20 commits a second."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from bench import clock
from bench.figures import Figure, exponent
from bench.reference import ReferenceModel
from bench.prose import size, tokens
from bench.world import cpu, fresh_output, installation, journal, watching

PAUSE = 1 / 200
OUTPUT = "x" * 4096
SIZES = (1_000, 5_000, 20_000, 100_000)


@dataclass(frozen=True, slots=True)
class Cost:
    bytes: int
    cpu: float


def deflate() -> Callable[[Any], None]:
    """What permessage-deflate does with each frame, as `websockets` does it, with one context for the connection."""
    encoder = zlib.compressobj(wbits=-12, memLevel=5)

    def take(frame: str | bytes) -> None:
        encoder.compress(frame.encode() if isinstance(frame, str) else frame)
        encoder.flush(zlib.Z_SYNC_FLUSH)

    return take


def steps(count: int, calls: int) -> Iterator[tuple[str, str | None]]:
    """What the agent does: a token, and now and then a call with an id."""
    for n, token in enumerate(tokens(count)):
        yield token, f"c{n}" if calls and n % (count // calls) == 0 else None


async def harness(count: int) -> Cost:
    with cpu() as used:
        for _ in steps(count, 0):
            await asyncio.sleep(PAUSE)
    return Cost(0, used())


async def ours(count: int, calls: int = 0, viewed: bool = True, take: Any = None) -> Cost:
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
    return Cost(viewer.bytes, used())


async def theirs(count: int, calls: int = 0, viewed: bool = True, take: Any = None) -> Cost:
    size = 0

    def send(room: str, text: str) -> None:
        nonlocal size
        if room == "chat" and viewed:
            size += len(text.encode())
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
    return Cost(size, used())


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
    own = {size: clock.run(harness(size)).cpu for size in SIZES}
    mine = {size: clock.run(ours(size)) for size in SIZES}
    model = {20_000: clock.run(theirs(20_000))}
    tools = clock.run(ours(20_000, calls=50))
    alone = {size: clock.run(ours(size, viewed=False)) for size in SIZES}
    model_alone = {size: clock.run(theirs(size, viewed=False)) for size in (20_000, 100_000)}
    alone_tools, model_tools = (clock.run(side(20_000, calls=50, viewed=False)) for side in (ours, theirs))
    packed, model_packed = clock.run(ours(20_000, take=deflate())), clock.run(theirs(20_000, take=deflate()))
    return [
        *_bytes(mine, model, tools),
        *_cpu(own, alone, model_alone),
        *_ratios(own, alone_tools, model_tools, packed, model_packed),
    ]


def _bytes(mine: dict[int, Cost], model: dict[int, Cost], tools: Cost) -> list[Figure]:
    text = size(20_000)
    return [
        Figure("bytes to one browser per byte of text, 20,000 tokens at 200/s", mine[20_000].bytes / text, "x", 5, "virtual clock; frames as the socket gets them"),
        Figure("the same, of what the reference model sends to one room", mine[20_000].bytes / model[20_000].bytes, "x", 1 / 300, "both in this run"),
        Figure("the same, growth with the text, 1,000 to 100,000 tokens", exponent((n, c.bytes) for n, c in mine.items()), "exponent", 1.05, "slope of the log-log fit"),
        Figure("bytes with 50 calls of 4 KB, per byte of text and output", tools.bytes / (text + 50 * 4096), "x", 3, "virtual clock"),
        Figure("bytes for 200 tokens after a result of 5 MB", clock.run(after_a_large_result()), "KiB", 64, "virtual clock"),
    ]  # fmt: skip


def _cpu(own: dict[int, float], mine: dict[int, Cost], model: dict[int, Cost]) -> list[Figure]:
    net = {size: cost.cpu - own[size] for size, cost in mine.items()}
    other = {size: cost.cpu - own[size] for size, cost in model.items()}
    how = "process CPU, virtual clock, without the harness; ours is persisted, the model's is not"
    return [
        Figure("worker CPU, of the reference model's, 20,000 tokens", net[20_000] / other[20_000], "x", 2, how),
        Figure("worker CPU, of the reference model's, 100,000 tokens", net[100_000] / other[100_000], "x", 1, how),
        Figure("worker CPU, growth with the text", exponent(net.items()), "exponent", 1.05, "slope of the log-log fit"),
        Figure("worker CPU for a token", net[20_000] / 20_000 * 1e6, "us", None, "20,000 tokens, virtual clock"),
    ]  # fmt: skip


def _ratios(own: dict[int, float], tools: Cost, model_tools: Cost, packed: Cost, model_packed: Cost) -> list[Figure]:
    ratio, deflated = (
        (a.cpu - own[20_000]) / (b.cpu - own[20_000]) for a, b in ((tools, model_tools), (packed, model_packed))
    )
    return [
        Figure("worker CPU, of the reference model's, with 50 calls of 4 KB", ratio, "x", 1 / 3, "20,000 tokens"),
        Figure("server CPU with one compressing browser, of the model's with one", deflated, "x", 1 / 4, "20,000 tokens; zlib as permessage-deflate uses it"),
    ]  # fmt: skip


if __name__ == "__main__":
    from bench.figures import table

    with installation():
        print(table(measure()))
