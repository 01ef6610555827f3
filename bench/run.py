"""`make bench`: what streaming and waiting cost, as ratios measured in one run; written to bench/results.json.

More figures (many viewers, many processes, side by side with other designs) are still to come.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ["AGENTCHAT_VAR"] = tempfile.mkdtemp(prefix="agentchat-bench-")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")

import django

django.setup()

from asgiref.sync import sync_to_async  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402

from agentchat.events import Via  # noqa: E402
from agentchat.journal import process, reader  # noqa: E402
from agentchat.journal.outbox import Wire  # noqa: E402
from agentchat.models import OutputItem  # noqa: E402
from agentchat.services import approvals, chats, runs, signin  # noqa: E402
from agentchat.services.approvals import Decision  # noqa: E402
from agentchat.services.output import Output  # noqa: E402
from agentchat.supervisor import lifecycle  # noqa: E402

TOKEN = "abc "
RESULTS = Path(__file__).with_name("results.json")
Figure = dict[str, Any]


async def db(function: Any, *arguments: Any, **named: Any) -> Any:
    return await sync_to_async(function, thread_sensitive=True)(*arguments, **named)


async def fresh_output() -> tuple[Any, Output]:
    owner = await db(signin.owner)
    chat = await db(chats.create, user=owner, provider="scripted")
    _, run = await db(chats.post, user=owner, chat_id=chat.pk, text="go")
    await db(runs.claim, "bench:worker")
    return chat, Output({"chat_id": chat.pk, "message_id": run.message_id, "task_id": run.pk}, owner)


@contextmanager
def viewer(chat_id: Any) -> Iterator[list[str]]:
    """Everything that one browser gets."""
    got: list[str] = []
    here = process.current()
    outbox = here.hub.attach(chat_id, 0)

    async def send(text: str) -> None:
        got.append(text)

    async def read(after: int) -> Any:
        return await here.run(reader.read, chat_id, after)

    async def nothing() -> tuple[int, str]:
        raise AssertionError("no snapshot is needed here")

    task = asyncio.ensure_future(outbox.drain(Wire(send, read, nothing)))
    yield got
    outbox.close()
    task.cancel()
    here.hub.detach(chat_id, outbox)


async def stream(tokens: int, calls: int = 0) -> tuple[float, float]:
    """Bytes to one viewer per byte of text, and seconds of CPU, with tokens at about 200 a second of a faster clock."""
    chat, output = await fresh_output()
    said = 0
    with viewer(chat.pk) as got:
        cpu = time.process_time()
        for n in range(tokens):
            await output.text(TOKEN)
            said += len(TOKEN)
            if calls and n % (tokens // calls) == 0:
                await output.tool(f"c{n}", "read", {"n": n}, result="x" * 4096, done=True)
                said += 4096
            if n % 10 == 9:
                await asyncio.sleep(0.003)
        await output.flush(done=True)
        await asyncio.sleep(0.2)
        cpu = time.process_time() - cpu
    return sum(len(text.encode()) for text in got) / said, cpu


async def after_a_large_result() -> float:
    """KB to one viewer for 200 tokens after a result of 5 MB."""
    chat, output = await fresh_output()
    await output.tool("c", "read", {}, result="x" * 5_000_000, done=True)
    await output.flush(force=True)
    with viewer(chat.pk) as got:
        await asyncio.sleep(0.2)
        before = sum(map(len, got))
        for _ in range(200):
            await output.text(TOKEN)
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.2)
        return (sum(map(len, got)) - before) / 1024


async def wake_up() -> float:
    """Milliseconds from the commit of a decision to the return of `approve`, median."""
    _, output = await fresh_output()
    owner = await db(signin.owner)
    took = []
    for n in range(40):
        asking = asyncio.create_task(output.approve("shell", {"n": n}))
        while not (item := await db(OutputItem.objects.pending().first)):
            await asyncio.sleep(0.005)
        await db(approvals.decide, owner, item.pk, Decision("approve", item.digest), via=Via.API, proof="bench")
        begun = time.perf_counter()
        await asking
        took.append((time.perf_counter() - begun) * 1000)
    return statistics.median(took)


async def waiting_queries() -> float:
    """Queries of 200 waiting approvals in 6 seconds."""
    _, output = await fresh_output()
    asking = [asyncio.create_task(output.approve("shell", {"n": n}, call_id=f"c{n}")) for n in range(200)]
    while await db(OutputItem.objects.pending().count) < 200:
        await asyncio.sleep(0.05)
    await asyncio.sleep(1)
    counted = 0
    run = process.current().run

    async def counting(function: Any, *arguments: Any) -> Any:
        nonlocal counted
        counted += 1
        return await run(function, *arguments)

    process.current().run = counting
    await asyncio.sleep(6)
    process.current().run = run
    for task in asking:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    return counted


def figure(name: str, value: float, unit: str, bar: float, how: str) -> Figure:
    return {"name": name, "value": round(value, 3), "unit": unit, "bar": bar, "holds": value <= bar, "how": how}


async def measure() -> list[Figure]:
    await lifecycle.start(host_runs=False)
    small, cpu_small = await stream(5_000)
    large, cpu_large = await stream(20_000)
    tools, _ = await stream(20_000, calls=50)
    figures = [
        figure("bytes to one browser per byte of text, 20,000 tokens", large, "x", 5, "stream(20_000)"),
        figure("the same for 4 times the text", large / small, "x", 1.1, "stream(20_000) / stream(5_000)"),
        figure("the same with 50 tool calls of 4 KB", tools, "x", 3, "stream(20_000, calls=50)"),
        figure("CPU for 4 times the text", cpu_large / cpu_small, "x", 4.6, "process_time of both"),
        figure("200 tokens after a 5 MB result", await after_a_large_result(), "KB", 64, "after_a_large_result()"),
        figure("commit of a decision to approve() returning, median", await wake_up(), "ms", 6, "wake_up()"),
        figure(
            "looks at the database by 200 waiting approvals in 6 s", await waiting_queries(), "", 2, "waiting_queries()"
        ),
    ]
    await lifecycle.stop()
    return figures


def main() -> None:
    call_command("migrate", verbosity=0)
    figures = asyncio.run(measure())
    connection.close()
    RESULTS.write_text(json.dumps(figures, indent=2) + "\n")
    for row in figures:
        mark = "holds" if row["holds"] else "MISSED"
        print(f"{row['name']:<62} {row['value']:>10} {row['unit']:<3} bar {row['bar']:>6}  {mark}")


if __name__ == "__main__":
    main()
