"""Faults of streams: lost, doubled, reordered, broken text."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import Any

import pytest
import websockets

from agentchat.models import OutputItem
from agentchat.rendering import terminal
from agentchat.rendering.markdown import render
from agentchat.services import snapshot
from agentchat.services.output import Output
from tests.core.helpers import events
from tests.e2e.conftest import script
from tests.reducer import apply
from tests.services.client import Client, until
from tests.services.server import Server


@pytest.mark.django_db(transaction=True)
@pytest.mark.databases
async def test_s16_a_character_split_between_deltas_is_one_character(
    output: Output, chat: Any, owner: Any, in_db: Any
) -> None:
    for piece in ("ok \ud83d", "\ude80 go"):
        await output.text(piece)
    await output.flush(force=True)
    live = "".join(event["text"] for event in await events(in_db, chat) if event["kind"] == "item.delta")
    taken = await in_db(snapshot.chat_snapshot, owner, chat.pk)
    assert live == taken["messages"][1]["items"][0]["content"][0]["text"] == "ok 🚀 go"


def test_s16_bytes_of_a_command_come_one_by_one(server: Server) -> None:
    client = Client(server)
    spelled = "47 72 c3 bc c3 9f 65 20 f0 9f 9a 80 20 e6 97 a5 e6 9c ac"
    chat = client.chat(f'for b in {spelled}; do printf "\\x$b"; sleep .01; done')
    [asked] = client.pending()
    client.decide(asked["item"])
    until(lambda: client.run(chat)["status"] == "completed")
    assert client.items(chat)[1]["output"][0]["text"] == "Grüße 🚀 日本"


@pytest.mark.django_db(transaction=True)
@pytest.mark.databases
async def test_s17_two_thousand_progress_frames_are_one_line(output: Output, in_db: Any) -> None:
    raw = "".join(f"\rDownloading {n * 100 // 1999:3}%" for n in range(2000)) + "\r\nDone\r\n"
    raw += "\x1b[32mOK\x1b[0m\x1b]0;title\x07\nabc\b\bX\x1b[2J"
    await output.tool("c", "shell", {})
    for start in range(0, len(raw), 1000):
        await output.tool_output("c", raw[start : start + 1000])
    await output.tool("c", "shell", {}, done=True)
    await output.flush(force=True)
    rows = await in_db(lambda: list(OutputItem.objects.order_by("position")))
    assert len(rows) == 2
    assert rows[1].text == raw
    assert terminal.plain(raw).split("\n") == ["Downloading 100%", "Done", "OK", "aXc"]
    assert "\x1b" not in terminal.html(raw)


@pytest.mark.django_db(transaction=True)
@pytest.mark.databases
async def test_s20_markdown_in_pieces_is_markdown_in_one(output: Output, in_db: Any) -> None:
    text = (
        "Text first.\n\n````markdown\nouter\n```sh\nls\n```\nstill outer\n````\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n"
        "A [link](https://a.example/x) here.\n\n```py\nnever = 'closed'\n"
    )
    for start in range(0, len(text), 3):
        await output.text(text[start : start + 3])
        await asyncio.sleep(0)
    await output.flush(done=True)
    item = await in_db(OutputItem.objects.get)
    assert item.html == render(text)
    assert item.html.count("<table") == 1 and 'href="https://a.example/x"' in item.html
    assert 'https://a.exam"' not in item.html


async def read_all(server: Server, client: Client, chat: str, after: int, stop: Any) -> list[dict[str, Any]]:
    cookies = "; ".join(f"{name}={value}" for name, value in client.http.cookies.items())
    found: list[dict[str, Any]] = []
    url = f"{server.ws_url}/ws/chats/{chat}/?after={after}"
    async with websockets.connect(url, additional_headers={"Cookie": cookies}, origin=server.url) as socket:
        async with asyncio.timeout(30):
            while not stop(found):
                found += json.loads(await socket.recv())["events"]
    return found


def ended(found: list[dict[str, Any]]) -> bool:
    return any(event["kind"] == "run.changed" and event["changes"].get("ended_at") for event in found)


def enough_or_ended(count: int, found: list[dict[str, Any]]) -> bool:
    return ended(found) or len(found) > count


async def test_s21_a_burst_of_1500_deltas_and_a_request_arrive_complete(server: Server) -> None:
    client = Client(server)
    empty = client.post("/chats/", {"provider": "scripted"}).json()["id"]
    first = client.snapshot(empty)
    steps = [{"repeat": 1500, "steps": [{"text": "x"}]}, {"approve": {"name": "shell", "arguments": {"command": "y"}}}]
    client.say(empty, script(*steps))
    asked = await read_all(
        server, client, empty, 0, lambda found: any(e["kind"] == "approval.requested" for e in found)
    )
    await asyncio.to_thread(client.decide, client.pending()[0]["item"])
    rest = await read_all(server, client, empty, asked[-1]["seq"], ended)
    state = apply(first, asked + rest)
    [answer] = [message for message in state["messages"] if message["role"] == "assistant"]
    assert answer["items"][0]["content"][0]["text"] == "x" * 1500
    assert answer["run"]["status"] == "completed"


async def test_s22_cut_and_reconnected_twice_nothing_is_doubled_or_missing(server: Server) -> None:
    client = Client(server)
    chat = client.post("/chats/", {"provider": "scripted"}).json()["id"]
    first = client.snapshot(chat)
    steps = [{"text": f"{n} "} if part == 0 else {"delay": 0.005} for n in range(1, 301) for part in (0, 1)]
    client.say(chat, script(*steps))
    heard: list[dict[str, Any]] = []
    for enough in (90, 200, 10_000):
        after = heard[-1]["seq"] if heard else 0
        part = await read_all(server, client, chat, after, partial(enough_or_ended, enough))
        heard += part
        await asyncio.sleep(0.3)
        if ended(part):
            break
    if heard[-1]["kind"] != "chat.changed":
        heard += await read_all(server, client, chat, heard[-1]["seq"], lambda found: bool(found))
    second = await read_all(server, client, chat, 0, ended)
    last = await asyncio.to_thread(client.snapshot, chat)
    assert apply(first, heard) == last
    assert [event["seq"] for event in second] == list(range(1, len(second) + 1))
    assert last["messages"][1]["items"][0]["content"][0]["text"] == "".join(f"{n} " for n in range(1, 301))
