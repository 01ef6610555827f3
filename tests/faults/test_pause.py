"""S04 with real processes: the one that streams is stopped in its tracks, another decides and renames, then it goes on."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from tests.e2e.conftest import script
from tests.faults.conftest import BOTH, database
from tests.services.client import Client, until
from tests.services.server import Server

DELTAS = "".join(f"{n} " for n in range(200))
CALL = {"approve": {"id": "c1", "name": "shell", "arguments": {"command": "ls"}}}
STREAM = {"text": DELTAS, "chunk": 4, "every": 0.02}

pytestmark = pytest.mark.slow


@pytest.fixture(params=BOTH)
def servers(request: pytest.FixtureRequest) -> Iterator[tuple[Server, Server]]:
    env = {"AGENTCHAT_POLL_SECONDS": "0.05"} | database(request)
    with Server(env=env) as one, Server(env=env, var=one.var) as two:
        yield one, two


@contextmanager
def paused(server: Server) -> Iterator[None]:
    assert server.process
    server.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        server.process.send_signal(signal.SIGCONT)


def while_paused(server: Server, act: Any) -> Any:
    """Begins while the server stands still. One that stood still while it wrote is let go, so that the other gets its turn."""
    with ThreadPoolExecutor(1) as pool:
        with paused(server):
            begun = pool.submit(act)
            time.sleep(0.5)
        return begun.result(30)


def rename(client: Client, chat: str) -> Any:
    return client.http.patch(f"/api/v1/chats/{chat}/", json={"title": "Renamed"}, headers={"X-CSRFToken": client.csrf})


def said(message: dict[str, Any]) -> str:
    return "".join(part["content"][0]["text"] for part in message["items"] if part["type"] == "message")


def test_s04_a_server_that_stood_still_does_not_bring_the_old_state_back(servers: tuple[Server, Server]) -> None:
    busy, other = servers
    client = Client(busy)
    there = client.at(other)
    chat = client.chat(script({"parallel": [[STREAM], [CALL]]}), provider="scripted")
    [row] = there.pending()
    decided = while_paused(busy, lambda: there.decide(row["item"]))
    renamed = while_paused(busy, lambda: rename(there, chat))
    assert (decided.status_code, renamed.status_code) == (200, 200)
    assert until(lambda: client.run(chat)["status"] == "completed")
    for each in (client, there):
        taken = each.snapshot(chat)
        [answer] = [message for message in taken["messages"] if message["role"] == "assistant"]
        [call] = [row for row in answer["items"] if row["type"] == "function_call"]
        assert taken["chat"]["title"] == "Renamed"
        assert said(answer) == DELTAS
        assert call["resolution"]["id"] == decided.json()["resolution"]["id"]
    assert busy.manage("verify_resolutions").returncode == 0
