"""Two processes decide the same request in the same instant, fifty times: one wins, and everybody agrees on whom."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from agentchat.models import Chat, OutputItem, Receipt, Resolution
from agentchat.services import chain
from agentchat.services.output import Output
from tests.core.helpers import pending
from tests.e2e.conftest import script
from tests.faults.conftest import BOTH, database
from tests.faults.decider import Decider, together
from tests.services.client import Client, until
from tests.services.server import Server

ROUNDS = 50
ACTIONS = ("approve", "reject")


# By the services, with connections of their own


def environment() -> dict[str, str]:
    """That of a process that uses the database of this test."""
    database = connection.settings_dict
    url = f"sqlite:///{database['NAME']}"
    if connection.vendor == "postgresql":
        url = f"postgresql://{database['USER']}@{database['HOST']}:{database['PORT']}/{database['NAME']}"
    return os.environ | {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "project.settings", "LOG_LEVEL": "ERROR"}


@pytest.fixture
def deciders(owner: Any) -> Iterator[dict[str, Decider]]:
    with ExitStack() as stack:
        yield {action: stack.enter_context(Decider(environment(), user=owner.pk)) for action in ACTIONS}


@pytest.mark.databases
@pytest.mark.slow
async def test_the_waiting_agent_gets_the_one_winner(
    output: Output, chat: Chat, deciders: dict[str, Decider], in_db: Any, settings: Any
) -> None:
    """This process only waits: it hears of the decisions of the two others by looking."""
    settings.AGENTCHAT_POLL_SECONDS = 0.02
    for number in range(ROUNDS):
        asking = asyncio.create_task(output.approve("shell", {"command": f"round {number}"}))
        [item] = await pending(in_db)
        answers = await asyncio.to_thread(together, deciders, item.pk, item.digest)
        winner = await in_db(check, item, answers)
        got = await asyncio.wait_for(asking, 10)
        assert (got["action"], got["cause"]) == (winner.action, "person")
        assert got["arguments"] == {"command": f"round {number}"}
        assert await in_db(Receipt.objects.filter(resolution=winner).count) == 1
    assert await in_db(Resolution.objects.count) == ROUNDS
    assert await in_db(chain.verify, chat.pk) is None


def check(item: OutputItem, answers: dict[str, dict[str, Any]]) -> Resolution:
    """One row; one was taken, and the other was told by whose."""
    [winner] = Resolution.objects.filter(item=item)
    taken, lost = answers[winner.action], answers[next(a for a in ACTIONS if a != winner.action)]
    assert taken == {"resolution": {"id": winner.pk, "action": winner.action, "hash": winner.hash}}
    assert lost["error"] == "AlreadyResolved"
    told = {name: lost["resolution"][name] for name in ("id", "action", "decided_by", "hash", "item")}
    assert told == {
        "id": winner.pk,
        "action": winner.action,
        "decided_by": "ada",
        "hash": winner.hash,
        "item": str(item.pk),
    }
    return winner


@pytest.mark.databases
@pytest.mark.slow
async def test_the_same_answer_from_both_is_one_answer(
    output: Output, chat: Chat, deciders: dict[str, Decider], in_db: Any, settings: Any
) -> None:
    """Two tabs, two clicks on the same button: nobody is told that they lost."""
    settings.AGENTCHAT_POLL_SECONDS = 0.02
    one, two = deciders.values()
    for number in range(20):
        asking = asyncio.create_task(output.approve("shell", {"command": f"round {number}"}))
        [item] = await pending(in_db)
        at = asyncio.get_running_loop().time() + 0.03
        for decider in (one, two):
            decider.decide(item.pk, item.digest, "approve", at)
        answers = await asyncio.to_thread(lambda: (one.answer(), two.answer()))
        assert answers[0] == answers[1]
        assert answers[0]["resolution"]["action"] == (await asking)["action"] == "approve"
    assert await in_db(Resolution.objects.count) == 20
    assert await in_db(chain.verify, chat.pk) is None


# By HTTP, to two servers


@pytest.fixture(params=BOTH)
def servers(request: pytest.FixtureRequest) -> Iterator[tuple[Server, Server]]:
    """One installation; the run is in one of them, and hears of the other's decisions by looking, or by the bus."""
    env = {"AGENTCHAT_POLL_SECONDS": "0.05"}
    if request.param == "postgresql":
        env = database(request) | {"REDIS_URL": request.getfixturevalue("redis_url")}
    with Server(env=env) as one, Server(env=env, var=one.var) as two:
        yield one, two


@pytest.mark.slow
def test_two_servers_let_one_win_and_the_loser_gets_409(servers: tuple[Server, Server]) -> None:
    client = Client(servers[0])
    cookies = dict(client.http.cookies)
    chat = client.chat(script(*map(step, range(ROUNDS))), provider="scripted")
    winners = []
    with ExitStack() as stack:
        deciders = {
            action: stack.enter_context(Decider(dict(os.environ), url=server.url, cookies=cookies))
            for action, server in zip(ACTIONS, servers, strict=True)
        }
        for number in range(ROUNDS):
            item = until(lambda number=number: asked(client, f"c{number}"))
            winners.append(winner_of(item, together(deciders, item["id"], item["digest"])))
    assert until(lambda: client.run(chat)["status"] == "completed")
    done = {file.name: lines(file) for file in servers[0].var.rglob("*-[0-9]*") if file.is_file()}
    assert done == {f"{action}-{number}": 1 for number, action in enumerate(winners)}
    stored = Counter(row["item"] for row in client.all("/resolutions/"))
    assert (len(stored), set(stored.values())) == (ROUNDS, {1})
    assert servers[0].manage("verify_resolutions").returncode == 0


def step(number: int) -> dict[str, Any]:
    """The agent notes which branch it took, once for each time that it takes it."""
    return {
        "approve": {"id": f"c{number}", "name": "shell", "arguments": {"command": f"round {number}"}},
        "then": [{"counter": f"approve-{number}"}],
        "else": [{"counter": f"reject-{number}"}],
    }


def asked(client: Client, call_id: str) -> Any:
    rows = client.get("/approvals/", state="pending")["results"]
    return next((row["item"] for row in rows if row["item"]["call_id"] == call_id), None)


def winner_of(item: Any, answers: dict[str, dict[str, Any]]) -> str:
    assert sorted(answer["status"] for answer in answers.values()) == [200, 409], answers
    [(winner, taken)] = [pair for pair in answers.items() if pair[1]["status"] == 200]
    [lost] = [answer for answer in answers.values() if answer["status"] == 409]
    assert lost["code"] == "already_resolved"
    assert taken["resolution"]["action"] == lost["resolution"]["action"] == winner
    assert lost["resolution"]["id"] == taken["resolution"]["id"]
    assert lost["resolution"]["item"] == item["id"]
    return winner


def lines(file: Path) -> int:
    return len(file.read_text().splitlines())
