"""Two people's clicks reach two server processes in the same instant, fifty times, on both databases."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import script
from tests.services.client import Client, until
from tests.services.server import Server

ROUNDS = 50


@pytest.fixture(params=["sqlite", "postgresql"])
def servers(request: pytest.FixtureRequest) -> Iterator[tuple[Server, Server]]:
    """Two processes of one installation. Without a bus, so that the agent hears of the other's decisions by its poll."""
    env = {"AGENTCHAT_POLL_SECONDS": "0.05"}
    if request.param == "postgresql":
        env["DATABASE_URL"] = request.getfixturevalue("postgres").create(f"race_{os.urandom(4).hex()}")
    with Server(env=env) as one, Server(env=env, var=one.var) as two:
        yield one, two


def test_one_wins_and_the_agent_gets_exactly_the_winner(servers: tuple[Server, Server]) -> None:
    first = Client(servers[0])
    deciders = [(first, "approve"), (first.at(servers[1]), "reject")]
    steps = [
        {
            "approve": {"id": f"c{n}", "name": "shell", "arguments": {"command": f"round {n}"}},
            "then": [{"counter": f"approve-{n}"}],
            "else": [{"counter": f"reject-{n}"}],
        }
        for n in range(ROUNDS)
    ]
    chat = first.chat(script(*steps), provider="scripted")
    winners = [_round(first, deciders) for _ in range(ROUNDS)]
    assert until(lambda: first.run(chat)["status"] == "completed")
    done = {
        file.name: len(file.read_text().splitlines()) for file in servers[0].var.rglob("*-[0-9]*") if file.is_file()
    }
    assert done == {f"{action}-{n}": 1 for n, action in enumerate(winners)}
    stored = Counter(row["item"] for row in first.all("/resolutions/"))
    assert (len(stored), max(stored.values())) == (ROUNDS, 1)
    assert servers[0].manage("verify_resolutions").returncode == 0


def _round(client: Client, deciders: list[tuple[Client, str]]) -> str:
    """Release both at once; returns the winner's action, after checking what the loser was told."""
    [asked] = client.pending()
    barrier = threading.Barrier(len(deciders))
    answers: dict[str, httpx.Response] = {}

    def decide(who: Client, action: str) -> None:
        barrier.wait(10)
        answers[action] = who.decide(asked["item"], action)

    threads = [threading.Thread(target=decide, args=decider) for decider in deciders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    until(lambda: asked["id"] not in [row["id"] for row in client.get("/approvals/", state="pending")["results"]])
    return _winner(answers)


def _winner(answers: dict[str, Any]) -> str:
    assert sorted(answer.status_code for answer in answers.values()) == [200, 409]
    [winner] = [action for action, answer in answers.items() if answer.status_code == 200]
    [lost] = [answer.json() for answer in answers.values() if answer.status_code == 409]
    assert lost["code"] == "already_resolved"
    assert lost["resolution"]["action"] == winner
    return winner
