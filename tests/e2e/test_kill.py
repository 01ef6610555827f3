"""The server is killed with SIGKILL, or told to end, at the worst moments."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentchat.providers import process
from tests.e2e.conftest import script
from tests.services.client import Client, until
from tests.services.server import Server

ENDED = ("completed", "failed", "cancelled", "interrupted")


@pytest.fixture(params=["sqlite", "postgresql"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    env = {}
    if request.param == "postgresql":
        env["DATABASE_URL"] = request.getfixturevalue("postgres").create(f"kill_{os.urandom(4).hex()}")
    with Server(env=env) as running:
        yield running


def nothing_runs(client: Client, chat: str) -> bool:
    messages = client.snapshot(chat)["messages"]
    runs = [message["run"]["status"] for message in messages if message["run"]]
    open_items = [i for message in messages for i in message["items"] if i["status"] in ("in_progress", "pending")]
    return all(status in ENDED for status in runs) and not open_items


def test_a_pending_request_is_honestly_closed(server: Server) -> None:
    client = Client(server)
    chat = client.chat("touch made")
    [asked] = client.pending()
    server.kill()
    server.start()
    assert until(lambda: nothing_runs(client, chat), 10)
    assert client.get("/approvals/", state="pending")["results"] == []
    answer = client.decide(asked["item"])
    assert (answer.status_code, answer.json()["code"]) == (410, "agent_gone")
    assert not list(server.var.rglob("made"))
    [call] = client.items(chat)
    assert (call["status"], call["resolution"]["cause"]) == ("rejected", "agent_gone")
    client.say(chat, "echo again")
    [asked] = client.pending()
    assert client.decide(asked["item"]).status_code == 200
    assert until(lambda: client.run(chat)["status"] == "completed")


def test_a_running_command_is_killed_with_all_that_it_started(server: Server) -> None:
    client = Client(server)
    chat = client.chat("echo begun; (sleep 1000 & sleep 1000) & setsid sleep 1000 & wait")
    [asked] = client.pending()
    client.decide(asked["item"])
    until(lambda: "begun" in str(client.items(chat)))
    run = client.run(chat)["id"]
    assert until(lambda: len(process.family(run)) >= 4)
    server.kill()
    server.start()
    assert until(lambda: nothing_runs(client, chat), 10)
    assert until(lambda: not process.family(run), 5)
    [call, output] = client.items(chat)
    assert (call["status"], output["status"], output["output"][0]["text"]) == ("interrupted", "interrupted", "begun\n")
    assert client.run(chat)["status"] == "interrupted"


def test_streamed_text_up_to_100_ms_before_the_kill_is_there(server: Server) -> None:
    """The counter file is written right after the text was handed over: what it counts 100 ms before the kill must be there."""
    client = Client(server)
    steps = [step for n in range(500) for step in ({"text": f"<{n}>"}, {"counter": "said"}, {"delay": 0.01})]
    chat = client.chat(script(*steps), provider="scripted")
    said = until(lambda: next(iter(server.var.rglob("said")), None))
    until(lambda: len(said.read_text().splitlines()) > 60)
    before = _counted(said)
    time.sleep(0.1)
    server.kill()
    server.start()
    assert until(lambda: nothing_runs(client, chat), 10)
    text = "".join(part["text"] for item in client.items(chat) for part in item["content"])
    numbers = [int(number) for number in re.findall(r"<(\d+)>", text)]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) >= before


def _counted(file: Path) -> int:
    return len(file.read_text().splitlines())


def test_sigterm_drains_and_says_so(server: Server) -> None:
    client = Client(server)
    waiting = client.chat("echo x")
    client.pending()
    running = client.chat("sleep 1000")
    asked = next(row for row in client.pending(2) if row["chat"]["id"] == running)
    client.decide(asked["item"])
    until(lambda: client.run(running)["status"] == "running")
    run = client.run(running)["id"]
    assert server.stop() == 0
    assert not process.family(run)
    server.start()
    for chat in (waiting, running):
        assert nothing_runs(client, chat)
        assert client.run(chat)["status"] == "interrupted"
