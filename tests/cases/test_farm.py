"""Cases of runs that outlive processes, on two servers and workers of their own."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cases.helpers import marked_processes
from tests.e2e.conftest import script
from tests.services.client import Client, until
from tests.services.farm import Farm
from tests.services.postgres import Postgres
from tests.services.redis import Redis

pytestmark = [pytest.mark.slow, pytest.mark.services]
ASKS = {"approve": {"id": "c", "name": "shell", "arguments": {"command": "x"}}}
STEP = {**ASKS, "then": [{"counter": "ran"}, {"tool": {"id": "c", "name": "shell", "result": "ok", "done": True}}]}


@pytest.fixture
def farm(postgres: Postgres, redis_server: Redis) -> Iterator[Farm]:
    with Farm(postgres, redis_server, workers=1) as running:
        yield running


@pytest.fixture
def client(farm: Farm) -> Client:
    return farm.client()


def ran(farm: Farm) -> int:
    return sum(len(file.read_text().splitlines()) for file in farm.web[0].var.rglob("ran"))


def everything_dies(farm: Farm) -> None:
    for server in [*farm.web, *farm.workers]:
        server.kill()
    for server in [*farm.web, *farm.workers]:
        server.start()


def test_s02_a_restart_loses_no_request_and_no_answer_is_swallowed(farm: Farm, client: Client) -> None:
    """One that can be resumed is listed and counts; one that cannot is closed; ids that mean nothing are not found."""
    resumable = client.chat(script(STEP), provider="scripted")
    alone = client.chat(script({"unresumable": True}, STEP), provider="scripted")
    asked = {row["chat"]["id"]: row["item"] for row in client.pending(2)}
    everything_dies(farm)
    assert until(lambda: client.run(alone)["status"] == "interrupted")
    assert [row["chat"]["id"] for row in client.get("/approvals/", state="pending")["results"]] == [resumable]
    gone = client.decide(asked[alone])
    assert (gone.status_code, gone.json()["code"]) == (410, "agent_gone")
    for unknown in (str(uuid.uuid4()), resumable, client.run(resumable)["message"]):
        assert client.decide({"id": unknown, "digest": asked[resumable]["digest"]}).status_code == 404
    assert ran(farm) == 0
    assert client.decide(asked[resumable]).status_code == 200
    assert until(lambda: client.run(resumable)["status"] == "completed")
    assert ran(farm) == 1


@pytest.mark.parametrize("parked", [False, True], ids=["held", "parked"])
def test_s06_a_stop_settles_the_request_in_every_process_and_the_chat_goes_on(
    farm: Farm, client: Client, parked: bool
) -> None:
    chat = client.chat(script(STEP), provider="scripted")
    [asked] = client.pending()
    run = client.run(chat)
    if parked:
        farm.workers[0].kill()
        assert until(lambda: farm.query("SELECT worker FROM agentchat_run") == [("",)])
        farm.workers[0].start()
    other = client.at(farm.web[1])
    assert other.post(f"/runs/{run['id']}/stop/").status_code == 200
    assert until(lambda: client.run(chat)["status"] == "cancelled")
    refused = client.decide(asked["item"])
    assert (refused.status_code, refused.json()["code"]) == (410, "stopped")
    client.say(chat, script({"text": "hello again"}))
    assert until(lambda: client.run(chat)["status"] == "completed")
    assert ran(farm) == 0 and not marked_processes(run["id"])


def test_s25_a_run_whose_worker_is_killed_does_not_run_for_ever(farm: Farm, client: Client) -> None:
    """It ends, nothing of it spins, and what it did is not done again by the next worker."""
    chat = client.chat(
        script({"counter": "ran"}, {"tool": {"id": "t", "name": "read"}}, {"hang": True}), provider="scripted"
    )
    assert until(lambda: ran(farm) == 1 and any(item.get("call_id") == "t" for item in client.items(chat)))
    farm.workers[0].kill()
    farm.workers[0].start()
    run: Any = until(lambda: run if (run := client.run(chat))["status"] == "interrupted" else None)
    assert run["ended_at"] and "died" in run["error"]
    assert not [item for item in client.items(chat) if item["status"] in ("in_progress", "pending")]
    client.say(chat, script({"text": "next"}))
    assert until(lambda: client.run(chat)["status"] == "completed")
    assert ran(farm) == 1


def test_s25_stop_ends_the_work_and_not_only_the_picture(farm: Farm, client: Client, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    chat = client.chat(f"while :; do echo line >> {file}; sleep 0.1; done", approval_mode="full")
    assert until(lambda: file.exists() and len(file.read_text().splitlines()) > 3)
    run = client.run(chat)["id"]
    assert client.at(farm.web[1]).post(f"/runs/{run}/stop/").status_code == 200
    assert until(lambda: client.run(chat)["status"] == "cancelled")
    assert until(lambda: not marked_processes(run))
    size = file.stat().st_size
    client.say(chat, "sleep 1")  # for as long as it takes, nothing is added
    assert until(lambda: client.run(chat)["status"] == "completed")
    assert file.stat().st_size == size
