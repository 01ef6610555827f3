"""More than one process: the bus carries what happens in one to the viewers of the other; uvicorn serves the same."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest
import websockets

from tests.services.client import Client
from tests.services.process import free_port, wait_until
from tests.services.server import ROOT, Server


async def hear(server: Server, client: Client, chat: str, until_kind: str, act: Any) -> list[dict[str, Any]]:
    """The events that a socket at this server gets, from now to one of this kind."""
    cookies = "; ".join(f"{name}={value}" for name, value in client.http.cookies.items())
    url = f"{server.ws_url}/ws/chats/{chat}/?after=0"
    heard: list[dict[str, Any]] = []
    async with websockets.connect(url, additional_headers={"Cookie": cookies}, origin=server.url) as socket:
        await asyncio.to_thread(act)
        async with asyncio.timeout(20):
            while not any(event["kind"] == until_kind for event in heard):
                heard += json.loads(await socket.recv())["events"]
    return heard


async def test_what_runs_in_one_process_is_seen_in_the_other(postgres: Any, redis_url: str) -> None:
    env = {"DATABASE_URL": postgres.create(f"bus_{os.urandom(4).hex()}"), "REDIS_URL": redis_url}
    with Server(env=env) as one, Server(env=env, var=one.var) as two:
        client = Client(one)
        chat = client.post("/chats/", {"provider": "scripted"}).json()["id"]
        events: list[dict[str, Any]] = []
        for server in (two, one):
            heard = await hear(server, client, chat, "chat.changed", lambda: client.say(chat, "parallel"))
            events = events or heard
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))


@pytest.mark.services
async def test_uvicorn_serves_the_same_by_its_lifespan() -> None:
    with Server() as base:
        base.stop()
        port = free_port()
        command = [
            sys.executable,
            "-m",
            "uvicorn",
            "project.asgi:application",
            "--port",
            str(port),
            "--ws",
            "websockets-sansio",
        ]
        with subprocess.Popen(
            command, cwd=ROOT, env=base.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            try:
                other = Server(var=base.var, port=port)
                wait_until(other.healthy, process, base.log_file, what="uvicorn", seconds=30)
                link = base.manage(
                    "shell", "-c", "from agentchat.services import signin; print(signin.token(signin.owner()))"
                )
                client = Client(other, f"{other.url}/accounts/link/{link.stdout.split()[-1]}/")
                chat = client.chat("echo by-uvicorn")
                [asked] = client.pending()
                heard = await hear(other, client, chat, "approval.delivered", lambda: client.decide(asked["item"]))
                assert "approval.resolved" in [event["kind"] for event in heard]
            finally:
                process.send_signal(signal.SIGTERM)
                assert process.wait(20) in (0, -signal.SIGTERM)
