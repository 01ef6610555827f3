"""Runs in workers of their own: what people decide reaches the agent exactly once, whoever dies in between."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import script
from tests.services.client import Client, until
from tests.services.farm import Farm

pytestmark = [pytest.mark.slow, pytest.mark.services]
Made = Callable[..., Farm]
WAITERS = 200


def asks(name: str = "count") -> str:
    """A side effect after the decision, counted in the workspace."""
    asked = {"id": name, "name": "shell", "arguments": {"command": name}}
    done = [{"counter": name}, {"tool": {"id": name, "name": "shell", "result": "ok", "done": True}}]
    return script({"text": "first "}, {"approve": asked, "then": done}, {"text": "done"})


def effects(farm: Farm, name: str = "count") -> int:
    return sum(len(path.read_text().splitlines()) for path in (farm.web[0].var / "workspaces").rglob(name))


def receipts(farm: Farm) -> int:
    return int(farm.query("SELECT count(*) FROM agentchat_receipt")[0][0])


def texts(client: Client, chat: str) -> list[str]:
    return [part["text"] for item in client.items(chat) if item["type"] == "message" for part in item["content"]]


def decide_all(client: Client) -> int:
    rows = client.all("/approvals/?state=pending&limit=100")
    assert {client.decide(row["item"]).status_code for row in rows} <= {200}
    return len(rows)


def test_200_decisions_made_while_the_worker_is_dead_are_delivered_exactly_once(farm: Made) -> None:
    it = farm(webs=1, workers=1, AGENTCHAT_MAX_RUNS=str(WAITERS))
    client = it.client()
    chats = [client.chat(asks(), provider="scripted") for _ in range(WAITERS)]
    assert until(lambda: it.query("SELECT count(*) FROM agentchat_run WHERE status = 'waiting'") == [(WAITERS,)], 60)
    it.workers[0].kill()
    assert decide_all(client) == WAITERS
    assert receipts(it) == 0
    it.workers[0].start()
    assert until(lambda: all(client.run(chat)["status"] == "completed" for chat in chats), 120)
    assert receipts(it) == effects(it) == WAITERS
    assert texts(client, chats[0]) == ["first ", "done"] == texts(client, chats[-1])
    assert it.query("SELECT DISTINCT cause FROM agentchat_resolution") == [("person",)]


def test_a_request_that_nobody_could_go_on_from_is_closed_and_says_so(farm: Made) -> None:
    it = farm(webs=1, workers=1)
    client = it.client()
    chat = client.chat('{"unresumable": true}\n' + asks(), provider="scripted")
    [row] = client.pending()
    it.workers[0].kill()
    run: Any = until(lambda: run if (run := client.run(chat))["status"] == "interrupted" else None)
    assert run["error"] == "The server died while the agent worked."
    late = client.decide(row["item"])
    assert (late.status_code, late.json()["code"]) == (410, "agent_gone")
    assert effects(it) == 0


def test_what_waits_for_long_is_given_back_and_goes_on_after_the_decision(farm: Made) -> None:
    it = farm(webs=1, workers=1, AGENTCHAT_PARK_SECONDS="1")
    client = it.client()
    chat = client.chat(asks(), provider="scripted")
    [row] = client.pending()
    assert until(lambda: it.query("SELECT status, worker FROM agentchat_run") == [("waiting", "")])
    assert client.run(chat)["status"] == "waiting"
    client.decide(row["item"])
    assert until(lambda: client.run(chat)["status"] == "completed")
    assert effects(it) == receipts(it) == 1
    assert texts(client, chat) == ["first ", "done"]


def test_a_worker_that_is_told_to_stop_leaves_what_waits_to_the_next(farm: Made) -> None:
    it = farm(webs=1, workers=2)
    client = it.client()
    chat = client.chat(asks(), provider="scripted")
    [row] = client.pending()
    first = until(lambda: it.worker_of(client.run(chat)["id"]))
    assert first.stop() == 0
    assert client.run(chat)["status"] == "waiting"
    client.decide(row["item"])
    assert until(lambda: client.run(chat)["status"] == "completed")
    assert effects(it) == receipts(it) == 1


def test_a_run_is_stopped_from_any_process(farm: Made) -> None:
    it = farm(workers=1)
    client = it.client()
    chat = client.chat(script({"text": "on"}, {"hang": True}), provider="scripted")
    run = until(lambda: run if (run := client.run(chat))["status"] == "running" else None)
    other = client.at(it.web[1])
    assert other.post(f"/runs/{run['id']}/stop/").status_code == 200
    assert until(lambda: client.run(chat)["status"] == "cancelled")


def test_the_commands_of_a_killed_worker_die_with_it(farm: Made, tmp_path: Path) -> None:
    it = farm(webs=1, workers=1)
    client = it.client()
    chat = client.chat(f"echo $$ > {tmp_path}/pid; sleep 600", approval_mode="full")
    pid = until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip())
    it.workers[0].kill()
    assert until(lambda: not Path(f"/proc/{pid}").exists())
    assert until(lambda: client.run(chat)["status"] == "interrupted")
