"""A page on a line slower than the stream is exact at the end, and got a part of the bytes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
import websockets

from tests.cases.helpers import cookie, ended
from tests.reducer import condensed
from tests.services.client import Client
from tests.services.server import Server
from tests.services.slow_line import SlowLine

pytestmark = pytest.mark.slow
LINE = 10_000
"""Bytes per second; the stream has six times as many."""
LOG = "".join(f"{n * 7919 % 100_003} cc -o part{n}.o\n" for n in range(2_500))
SCRIPT = "\n".join(
    json.dumps(step)
    for step in [
        {"text": "I build it.\n\n"},
        {"tool": {"id": "c", "name": "shell", "arguments": {"command": "make"}}},
        {"repeat": 6, "steps": [{"output": {"id": "c", "text": LOG}, "chunk": 3000, "every": 0.05}]},
        {"tool": {"id": "c", "name": "shell", "done": True}},
        {"text": "It is built."},
    ]
)


async def watch(client: Client, chat: str, port: int, state: Any) -> tuple[Any, int]:
    """The state at the end of the run, and how many characters of frames led to it."""
    url = f"ws://127.0.0.1:{port}/ws/chats/{chat}/?condense=1&after={state['cursor']}"
    heard, size = [], 0
    async with websockets.connect(
        url, additional_headers=cookie(client), origin=f"http://127.0.0.1:{port}", compression=None, max_size=None
    ) as line:  # type: ignore[arg-type]
        async with asyncio.timeout(120):
            while not ended(heard):
                text = await line.recv()
                frame, size = json.loads(text), size + len(text)
                state, heard = condensed(state, frame), frame["events"]
    return state, size


@pytest.mark.parametrize("arguments", [("--processes", "1"), ()], ids=["uvicorn", "daphne"])
async def test_a_slow_line_skips_output_and_ends_exact(arguments: tuple[str, ...]) -> None:
    with Server(*arguments) as server:
        client = Client(server)
        chat = client.post("/chats/", {"provider": "scripted"}).json()["id"]
        first = client.snapshot(chat)
        async with SlowLine(server.port, LINE) as line:
            slow = asyncio.create_task(watch(client, chat, line.port, first))
            fast = asyncio.create_task(watch(client, chat, server.port, first))
            await asyncio.sleep(1)
            await asyncio.to_thread(client.say, chat, SCRIPT)
            (late, little), (prompt, much) = await slow, await fast
        assert late == prompt == client.snapshot(chat)
        assert little < much / 2
