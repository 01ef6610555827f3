"""A thousand approvals that wait, and how long a decision takes to reach the agent."""

from __future__ import annotations

import asyncio
import gc
import statistics
import time
from typing import Any

from django.conf import settings

from agentchat.events import Via
from agentchat.journal import process
from agentchat.models import OutputItem
from agentchat.services import approvals, signin
from agentchat.services.approvals import Decision
from bench.figures import Figure
from bench.world import cpu, db, fresh_output, journal, resident

WAITERS = 1_000
PER_CHAT = 100
SECONDS = 20


async def thousand() -> list[Figure]:
    outputs = [(await fresh_output())[1] for _ in range(WAITERS // PER_CHAT)]
    gc.collect()
    before = resident()
    asking = [
        asyncio.create_task(output.approve("shell", {"command": f"make step-{n}"}, call_id=f"c{n}"))
        for output in outputs
        for n in range(PER_CHAT)
    ]
    while await db(OutputItem.objects.pending().count) < WAITERS:
        await asyncio.sleep(0.1)
    await asyncio.sleep(2)
    each = (resident() - before) / WAITERS / 1024
    asked, core = await quiet()
    for task in asking:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    how = f"{WAITERS} tasks in approve(), {SECONDS} s, a look every {settings.AGENTCHAT_POLL_SECONDS:g} s"
    return [
        Figure("looks at the database by 1,000 waiting approvals in 5 s", asked, "", 1.25, how),
        Figure("CPU of 1,000 waiting approvals", core * 100, "% of a core", 1, how),
        Figure("memory of a waiting approval, its task and its request included", each, "KiB", 24, how),
    ]


async def quiet() -> tuple[float, float]:
    """Calls of the database in 5 s, and the part of a core, while nothing happens."""
    here, counted = process.current(), 0
    run = here.run

    async def counting(function: Any, *arguments: Any) -> Any:
        nonlocal counted
        counted += function.__module__.startswith("agentchat.services.waiting")
        return await run(function, *arguments)

    here.run = counting
    with cpu() as used:
        await asyncio.sleep(SECONDS)
    here.run = run
    return counted * 5 / SECONDS, used() / SECONDS


async def decided(rounds: int = 200) -> list[float]:
    """Milliseconds from the commit of a decision to the return of `approve`."""
    _, output = await fresh_output()
    owner, took = await db(signin.owner), []
    for n in range(rounds):
        asking = asyncio.create_task(output.approve("shell", {"n": n}))
        while not (item := await db(OutputItem.objects.pending().first)):
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.1)
        ended = await db(decide, owner, item)
        await asking
        took.append((time.perf_counter() - ended) * 1000)
    return took


def decide(owner: Any, item: OutputItem) -> float:
    """When the commit had returned."""
    approvals.decide(owner, item.pk, Decision("approve", item.digest), via=Via.API, proof="bench")
    return time.perf_counter()


async def all_of_it() -> list[Figure]:
    async with journal():
        took = await decided()
        how = f"{len(took)} decisions, from the return of the commit"
        return [
            Figure(
                "decision committed to approve() returning, same process, median", statistics.median(took), "ms", 6, how
            ),
            Figure("the same, p95", statistics.quantiles(took, n=20)[-1], "ms", 25, how),
            *await thousand(),
        ]


def measure() -> list[Figure]:
    return asyncio.run(all_of_it())
