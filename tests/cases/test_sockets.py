"""Faults of sockets: what was missed while away, what comes too fast, and whose it is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from tests.cases.helpers import ended, has, hear, socket
from tests.e2e.conftest import script
from tests.reducer import apply
from tests.services.client import Client, until
from tests.services.server import Server

TOKEN = (
    "from django.contrib.auth import get_user_model as m; from agentchat.services import signin as s;"
    "print(s.token(m().objects.create(username='mallory')))"
)


@pytest.fixture(params=["in memory", "redis"])
def either(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server for each way in which processes tell each other that something happened."""
    env = {"REDIS_URL": request.getfixturevalue("redis_url")} if request.param == "redis" else {}
    with Server(env=env) as running:
        yield running


async def test_s01_a_request_that_came_while_nobody_listened_is_there_once(server: Server) -> None:
    """A card must not live in the socket that happened to be open: before, after or between, it is the same one."""
    client = Client(server)
    chat = client.post("/chats/", {"provider": "scripted"}).json()["id"]
    first = client.snapshot(chat)
    async with socket(server, client, chat, first["cursor"]) as gone:
        client.say(chat, script({"text": "soon"}, {"delay": 0.5}, {"approve": {
            "name": "shell", "arguments": {"command": "rm build/out.txt"}}}))  # fmt: skip
        heard = await hear(gone, has("item.added"))
    [asked] = await asyncio.to_thread(client.pending)  # it came while no socket was open
    for after in (heard[-1]["seq"], first["cursor"], heard[-1]["seq"]):
        async with socket(server, client, chat, after) as again:
            missed = await hear(again, has("approval.requested"))
        known = first if after == first["cursor"] else apply(first, heard)
        rows = [i for m in apply(known, missed)["messages"] for i in m["items"] if i["status"] == "pending"]
        assert [row["id"] for row in rows] == [asked["id"]]
        assert "rm build/out.txt" in rows[0]["arguments"]
        assert sum(event["kind"] == "approval.requested" for event in missed) == 1
    assert (await asyncio.to_thread(client.decide, asked["item"])).status_code == 200
    assert await asyncio.to_thread(until, lambda: client.run(chat)["status"] == "completed")


@pytest.mark.slow
async def test_s21_a_burst_reaches_a_reader_that_stalls(either: Server) -> None:
    """More than a channel holds, faster than a page reads: nothing may be lost, and nothing may break the agent."""
    client = Client(either)
    chat = client.post("/chats/", {"provider": "scripted"}).json()["id"]
    first = client.snapshot(chat)
    steps = [
        {"repeat": 1500, "steps": [{"text": "x"}, {"delay": 0.001}]},
        {"approve": {"name": "shell", "arguments": {"command": "y"}}},
        {"repeat": 1500, "steps": [{"text": "z"}]},
    ]
    async with socket(either, client, chat, first["cursor"], max_queue=1) as slow:
        client.say(chat, script(*steps))
        heard = await hear(slow, has("item.delta"))
        await asyncio.sleep(3)  # nothing is read meanwhile
        heard += await hear(slow, has("approval.requested"))
        await asyncio.to_thread(client.decide, client.pending()[0]["item"])
        heard += await hear(slow, ended)
    state = apply(first, heard)
    answer = state["messages"][1]
    texts = [item["content"][0]["text"] for item in answer["items"] if item["type"] == "message"]
    assert texts == ["x" * 1500, "z" * 1500]
    assert answer["run"]["status"] == "completed"
    assert "ChannelFull" not in either.log() and "Traceback" not in either.log()


async def test_s22_a_second_tab_that_opens_in_the_middle_reads_the_same(server: Server) -> None:
    """Two tabs, one cut twice, one opened half way: both must end with each number once and in order."""
    client = Client(server)
    chat = client.post("/chats/", {"provider": "scripted"}).json()["id"]
    first = client.snapshot(chat)
    steps: list[dict[str, Any]] = []
    for n in range(1, 301):
        steps += [{"text": f"{n} "}, {"delay": 0.01}]
    client.say(chat, script(*steps))
    heard: list[dict[str, Any]] = []

    def until_number(number: int) -> Any:
        return lambda found: any(f"{number} " in e["text"] for e in found if e["kind"] == "item.delta") or ended(found)

    for number in (90, 200):
        async with socket(server, client, chat, heard[-1]["seq"] if heard else first["cursor"]) as one:
            heard += await hear(one, until_number(number))
        await asyncio.sleep(0.3)
        if number == 90:
            middle = client.snapshot(chat)
    async with socket(server, client, chat, heard[-1]["seq"]) as one:
        heard += await hear(one, ended)
    async with socket(server, client, chat, middle["cursor"]) as two:
        second = await hear(two, ended)
    for state in (apply(first, heard), apply(middle, second)):
        asked, answer = state["messages"]
        assert (asked["role"], answer["role"], answer["parent"]) == ("user", "assistant", asked["id"])
        assert [item["content"][0]["text"].split() for item in answer["items"]] == [[str(n) for n in range(1, 301)]]
    assert client.items(chat) == apply(first, heard)["messages"][1]["items"]


async def test_s28_the_socket_of_another_persons_chat_gives_nothing(server: Server) -> None:
    """Knowing the id of a chat must not be enough to listen to it."""
    ada = Client(server)
    chat = ada.chat(script({"approve": {"name": "shell", "arguments": {"command": "secret"}}}), provider="scripted")
    ada.pending()
    token = (await asyncio.to_thread(server.manage, "shell", "-c", TOKEN)).stdout.split()[-1]
    mallory = Client(server, f"{server.url}/accounts/link/{token}/")
    for id in (chat, chat[:-1] + ("0" if chat[-1] != "0" else "1")):
        async with socket(server, mallory, id, 0) as spy:
            with pytest.raises(ConnectionClosed) as closed:
                await asyncio.wait_for(spy.recv(), 10)
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 4404
    async with socket(server, ada, chat, 0) as own:
        assert await hear(own, has("approval.requested"))
