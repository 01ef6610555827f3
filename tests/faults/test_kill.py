"""The server is killed at the worst moments, and started again: nothing hangs, nothing is lost, nothing goes on alone."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import websockets
from websockets.sync.client import connect

from agentchat.providers.process import MARK
from agentchat.rendering.markdown import render
from tests.e2e.conftest import script
from tests.faults.conftest import BOTH, database
from tests.services.client import Client, until
from tests.services.server import Server

pytestmark = pytest.mark.slow

ENDED = {"completed", "failed", "cancelled", "interrupted"}
ALONE = {"unresumable": True}
"""No other process could go on; of those that can see tests/workers and tests/restarts."""
KEPT = 0.1
"""Seconds: what an agent said that long before the kill is kept."""


@pytest.fixture(params=BOTH)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with Server(env=database(request)) as running:
        yield running


def settled(client: Client, chat: str) -> Any:
    """The snapshot, once nothing in it is open."""

    def look() -> Any:
        taken = client.snapshot(chat)
        answers = [message for message in taken["messages"] if message["run"]]
        items = [item for message in answers for item in message["items"]]
        runs_ended = all(message["run"]["status"] in ENDED and message["run"]["ended_at"] for message in answers)
        messages_ended = all(message["ended_at"] for message in answers)
        items_ended = all(item["status"] not in ("in_progress", "pending") and item["ended_at"] for item in items)
        return taken if runs_ended and messages_ended and items_ended else None

    return until(look, 15)


def is_well(server: Server, client: Client, chat: str) -> None:
    """A next message runs as always, and the audit is whole."""
    client.say(
        chat, script({"text": "again"}) if client.snapshot(chat)["chat"]["provider"] == "scripted" else "echo again"
    )
    if client.snapshot(chat)["chat"]["provider"] == "shell":
        [asked] = until(lambda: client.get("/approvals/", state="pending", chat=chat)["results"])
        assert client.decide(asked["item"]).status_code == 200
    until(lambda: client.run(chat)["status"] == "completed")
    assert "again" in json.dumps(client.snapshot(chat)["messages"][-1]["items"])
    assert server.manage("verify_resolutions").returncode == 0


def left_over(words: str) -> list[int]:
    """Live processes whose environment or command line holds the words."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            said = (folder / "environ").read_bytes() + b"\0" + (folder / "cmdline").read_bytes()
            state = (folder / "stat").read_bytes().rpartition(b")")[2].split()[0]
        except OSError:
            continue
        if words.encode() in said and state not in (b"Z", b"X"):
            found.append(int(folder.name))
    return found


# Requests


def test_requests_that_wait_are_closed_by_nobody(server: Server) -> None:
    client = Client(server)
    three = [
        {"approve": {"name": "shell", "arguments": {"command": f"echo {n}"}}, "then": [{"counter": "ran"}]}
        for n in range(3)
    ]
    chat = client.chat(script(ALONE, {"parallel": [[one] for one in three]}), provider="scripted")
    asked = client.pending(3)
    decided = client.decide(asked[0]["item"], "reject").json()["resolution"]
    until(lambda: client.get(f"/approvals/{asked[0]['id']}/")["delivery"])
    server.kill()
    server.start()
    taken = settled(client, chat)
    assert client.get("/approvals/", state="pending")["results"] == []
    for row in asked[1:]:
        answer = client.decide(row["item"])
        assert (answer.status_code, answer.json()["code"]) == (410, "agent_gone")
        told = answer.json()["resolution"]
        assert (told["cause"], told["action"], told["decided_by"], told["receipt"]) == (
            "agent_gone",
            "reject",
            None,
            None,
        )
        assert client.decide(row["item"], "reject").status_code == 410
    calls = {item["id"]: item for item in taken["messages"][1]["items"] if item["type"] == "function_call"}
    assert {item["status"] for item in calls.values()} == {"rejected"}
    assert calls[asked[0]["id"]]["resolution"]["hash"] == decided["hash"]
    assert taken["messages"][1]["run"]["status"] == "interrupted"
    assert "died" in taken["messages"][1]["error"]
    assert not list(server.var.rglob("ran"))
    is_well(server, client, chat)


def test_a_decision_that_nobody_took_is_kept_and_does_nothing(server: Server) -> None:
    """Decided, and killed at once: either it was delivered and ran, or it was not and never will."""
    client = Client(server)
    step = {
        "approve": {"id": "c", "name": "shell", "arguments": {"command": "x"}},
        "then": [{"counter": "ran"}, {"hang": True}],
    }
    chat = client.chat(script(ALONE, step), provider="scripted")
    [asked] = client.pending()
    decided = client.decide(asked["item"]).json()["resolution"]
    server.kill()
    ran = [file.read_text() for file in server.var.rglob("ran")]
    server.start()
    settled(client, chat)
    found = client.get(f"/approvals/{asked['id']}/")
    assert (found["resolution"]["hash"], found["resolution"]["action"]) == (decided["hash"], "approve")
    again = client.decide(asked["item"])
    assert (again.status_code, again.json()["resolution"]["hash"]) == (200, decided["hash"])
    time.sleep(0.5)
    assert [file.read_text() for file in server.var.rglob("ran")] == ran
    assert not ran or found["delivery"] is not None
    is_well(server, client, chat)


def test_killed_again_while_it_recovers(server: Server) -> None:
    client = Client(server)
    alone = script(ALONE, {"approve": {"name": "shell", "arguments": {"command": "x"}}})
    made = [client.chat(alone, provider="scripted") for _ in range(3)]
    waits = client.chat("echo x")
    asked = {row["chat"]["id"]: row["item"] for row in client.pending(4)}
    server.kill()
    for _ in range(2):
        server.start()
        server.kill()
    server.start()
    for chat in made:
        assert settled(client, chat)["messages"][-1]["run"]["status"] == "interrupted"
    causes = [row["cause"] for row in client.all("/resolutions/")]
    assert causes == ["agent_gone"] * 3
    assert client.decide(asked[waits]).status_code == 200
    assert until(lambda: client.run(waits)["status"] == "completed")
    is_well(server, client, made[0])


# Commands

GRANDCHILDREN = {
    "in the background": "echo begun; sleep {n} & sleep {n}",
    "below a shell that has ended": "(sleep {n} & sleep {n} &) ; echo begun; sleep {n}",
    "in sessions of their own": "setsid sleep {n} & setsid setsid sleep {n} & echo begun; wait",
    "deaf to SIGTERM and SIGHUP": "trap '' TERM HUP; bash -c 'trap \"\" TERM HUP; sleep {n}' & echo begun; sleep {n}",
    "without an environment": "env -i sleep {n} & echo begun; wait",
}


@pytest.mark.parametrize("how", GRANDCHILDREN)
def test_of_a_running_command_nothing_is_left(server: Server, how: str) -> None:
    client = Client(server)
    seconds = str(100_000 + int.from_bytes(os.urandom(3), "big"))
    chat = client.chat(GRANDCHILDREN[how].format(n=seconds))
    [asked] = client.pending()
    client.decide(asked["item"])
    until(lambda: "begun" in json.dumps([item.get("output") for item in client.items(chat)]))
    run = client.run(chat)["id"]
    until(lambda: left_over(f"sleep\0{seconds}"))
    server.kill()
    if how == "in the background":
        until(lambda: not left_over(f"sleep\0{seconds}"), 5)  # before anybody starts the server again
    server.start()
    taken = settled(client, chat)
    until(lambda: not left_over(f"sleep\0{seconds}") and not left_over(f"{MARK}={run}"), 5)
    [call, output] = taken["messages"][1]["items"]
    assert (call["status"], output["status"], output["output"][0]["text"]) == ("interrupted", "interrupted", "begun\n")
    assert taken["messages"][1]["run"]["status"] == "interrupted"
    is_well(server, client, chat)


# Text

STEPS = {
    "message": lambda n: {"text": f"<{n}> word\n\n"},
    "reasoning": lambda n: {"reasoning": f"<{n}> "},
    "output": lambda n: {"output": {"id": "c", "text": f"<{n}>\n"}},
}


def streaming(kind: str) -> str:
    """A piece every 20 ms; the counter is written right after each was handed over."""
    steps = [one for n in range(1000) for one in (STEPS[kind](n), {"counter": f"said-{kind}"}, {"delay": 0.02})]
    return script({"tool": {"id": "c", "name": "shell", "arguments": {}}}, *steps)


def counted(server: Server, kind: str) -> int:
    return sum(len(file.read_text().splitlines()) for file in server.var.rglob(f"said-{kind}"))


def numbers(items: list[Any], kind: str) -> list[int]:
    parts = [part for item in items for part in item.get("content", item.get("output", [])) if kind]
    return [int(number) for part in parts for number in re.findall(r"<(\d+)>", part["text"])]


@pytest.mark.parametrize("enough", [3, 40, 120], ids="after {} pieces".format)
def test_what_was_said_100_ms_before_the_kill_is_there(server: Server, enough: int) -> None:
    """Three agents at once, one of each kind of text."""
    client = Client(server)
    made = {kind: client.chat(streaming(kind), provider="scripted") for kind in STEPS}
    until(lambda: all(counted(server, kind) >= enough for kind in STEPS))
    before = {kind: counted(server, kind) for kind in STEPS}
    time.sleep(KEPT)
    server.kill()
    server.start()
    for kind, chat in made.items():
        items = settled(client, chat)["messages"][1]["items"]
        kept = numbers(items, kind)
        assert kept == list(range(len(kept)))
        assert len(kept) >= before[kind], kind
        for item in items:
            if "html" in item:
                whole = client.http.get(f"/api/v1/items/{item['id']}/text/").text
                assert item["html"] == render(whole)
        is_well(server, client, chat)


# SIGTERM


def test_sigterm_drains_and_says_so(server: Server) -> None:
    client = Client(server)
    waiting, running = client.chat("echo x"), client.chat("echo begun; sleep 77777 & sleep 77777")
    asked = {row["chat"]["id"]: row["item"] for row in client.pending(2)}
    client.decide(asked[running])
    until(lambda: "begun" in json.dumps([item.get("output") for item in client.items(running)]))
    run = client.run(running)["id"]
    said = client.chat(streaming("message"), provider="scripted")
    until(lambda: counted(server, "message") >= 20)
    cookies = "; ".join(f"{name}={value}" for name, value in client.http.cookies.items())
    headers = {"Cookie": cookies}
    with ExitStack() as stack:
        sockets = [
            stack.enter_context(connect(server.ws_url + path, origin=server.url, additional_headers=headers))
            for path in (f"/ws/chats/{said}/", "/ws/inbox/")
        ]
        assert [json.loads(socket.recv(timeout=10))["type"] for socket in sockets] == ["snapshot", "inbox"]
        server.process.terminate()  # type: ignore[union-attr]
        for socket in sockets:
            with pytest.raises(websockets.ConnectionClosed) as closed:
                while True:
                    socket.recv(timeout=20)
            assert closed.value.rcvd and closed.value.rcvd.code == 1001
    assert server.process is not None and server.process.wait(30) == 0
    assert not left_over(f"{MARK}={run}") and not left_over("sleep\x0077777")
    assert "Traceback" not in server.log()
    total = counted(server, "message")
    server.start()
    for chat in (running, said):
        answer = settled(client, chat)["messages"][1]
        assert answer["run"]["status"] == "interrupted"
        assert "stopped while the agent worked" in answer["error"] == answer["run"]["error"]
    assert client.decide(asked[waiting]).status_code == 200
    assert until(lambda: client.run(waiting)["status"] == "completed"), "what only waited goes on"
    kept = numbers(client.items(said), "message")
    assert kept == list(range(len(kept)))
    assert len(kept) >= total, "nothing that was said before the end is lost"
    assert "died" not in server.log()
    is_well(server, client, said)
