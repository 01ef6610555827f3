"""What the cases share: a race with a common start, sockets of a running server, and who lives on this machine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import websockets

from tests.services.client import Client
from tests.services.server import Server


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """Every call in a thread of its own, all let go by one barrier; their results in the given order."""
    barrier, results = Barrier(len(calls)), [None] * len(calls)

    def run(number: int, call: Callable[[], Any]) -> None:
        barrier.wait(10)
        results[number] = call()

    threads = [Thread(target=run, args=pair) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return results


def cookie(client: Client) -> dict[str, str]:
    return {"Cookie": "; ".join(f"{name}={value}" for name, value in client.http.cookies.items())}


def socket(server: Server, client: Client, chat: str, after: int, **more: Any) -> Any:
    url = f"{server.ws_url}/ws/chats/{chat}/?after={after}"
    return websockets.connect(url, additional_headers=cookie(client), origin=server.url, **more)  # type: ignore[arg-type]


async def hear(connection: Any, stop: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
    """Events of an open socket until `stop` says that these are enough."""
    found: list[dict[str, Any]] = []
    async with asyncio.timeout(30):
        while not stop(found):
            found += json.loads(await connection.recv()).get("events", [])
    return found


def has(kind: str) -> Callable[[list[dict[str, Any]]], bool]:
    return lambda found: any(event["kind"] == kind for event in found)


def ended(found: list[dict[str, Any]]) -> bool:
    return any(event["kind"] == "run.changed" and event["changes"].get("ended_at") for event in found)


def marked_processes(run: str) -> list[int]:
    """Processes that carry the mark of a run."""
    mark, found = f"AGENTCHAT_RUN={run}".encode(), []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found
