"""Faults of transport, database and size, on a cluster: PostgreSQL, Redis, and two processes that share them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from itertools import cycle
from typing import Any

import pytest

from tests.cases.helpers import (
    allow,
    at_once,
    burst,
    connections,
    cost,
    empty_chat,
    ended,
    grow,
    has,
    hear,
    hints,
    is_well,
    sampled,
    socket,
    stored,
    waits,
)
from tests.e2e.conftest import script
from tests.faults.story import gate
from tests.faults.test_pause import paused, rename
from tests.faults.viewer import Viewer, asked
from tests.reducer import apply
from tests.services.client import Client, until
from tests.services.cluster import Pair, WebProcess
from tests.services.postgres import Postgres
from tests.services.redis import Redis

pytestmark = [pytest.mark.slow, pytest.mark.services]

POOL, ALLOWED = 5, 16
"""Connections to PostgreSQL that each process may have, and those that PostgreSQL has for everybody."""


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with ExitStack() as stack:
        postgres = stack.enter_context(Postgres(f"max_connections={ALLOWED}", "log_statement=all"))
        yield stack.enter_context(Pair(postgres, stack.enter_context(Redis()), AGENTCHAT_DB_POOL=str(POOL)))


@pytest.fixture(scope="module")
def client(pair: Pair) -> Client:
    return Client(pair.one)


# S21


BURST = (
    {"repeat": 1500, "steps": [{"notice": "n"}]},
    {"repeat": 300, "steps": [{"text": "x"}, {"flush": {"force": True}}]},
)
"""More than a thousand events in a commit, then hundreds of commits."""


def test_s21_more_than_a_hundred_events_at_once_all_arrive(pair: Pair, client: Client) -> None:
    """Also while the process of the reader stands still: what a channel holds is no bound."""
    chat = empty_chat(client)
    client.say(chat, script(gate(0), *BURST, gate(1), {"text": "done"}))
    host, other = pair.host_of(client.run(chat)["id"])
    with Viewer(client.at(other), chat, other) as viewer:
        viewer.has(asked("gate-0"))
        with paused(other):
            burst_out(pair, client.at(host), chat)
        viewer.has(asked("gate-1"))
        allow(client.at(other), chat, "gate-1")
        viewer.has(ended)
        assert until(lambda: viewer.events == stored(pair, chat)) and not viewer.wrong
        assert viewer.connections == 1, "nothing is lost, so nobody has to connect again"
    kinds = [item["type"] for item in client.items(chat)]
    assert kinds.count("notice") == 1500 and client.run(chat)["status"] == "completed"
    is_well(pair)


def burst_out(pair: Pair, client: Client, chat: str) -> None:
    """Let the agent say all that it has to say before it asks again."""
    before = hints(pair.redis)
    allow(client, chat, "gate-0")
    until(lambda: waits(client, chat, "gate-1"), 60)
    assert hints(pair.redis) - before > 100 and burst(pair, chat) > 100


# S22


async def test_s22_cut_twice_and_connected_again_elsewhere_reads_each_number_once(pair: Pair, client: Client) -> None:
    """A cursor means the same at every process, so a reader who is cut may go on at any of them."""
    chat = empty_chat(client)
    first = client.snapshot(chat)
    client.say(chat, script(*({"text": f"{number} ", "every": 0.01} for number in range(1, 301))))
    host, other = pair.host_of(client.run(chat)["id"])
    heard = await cut_off(client, chat, first["cursor"], [(host, "90 "), (other, "200 ")])
    middle = client.at(other).snapshot(chat)
    async with (
        socket(host, client, chat, heard[-1]["seq"]) as one,
        socket(other, client, chat, middle["cursor"]) as two,
    ):
        heard += await hear(one, ended)
        later = await hear(two, ended)
    assert heard == stored(pair, chat)[: len(heard)]
    for state in (apply(first, heard), apply(middle, later)):
        reads_like_after_a_reload(state, client.snapshot(chat), client.at(other).snapshot(chat))
    is_well(pair)


def reads_like_after_a_reload(state: Any, *taken: Any) -> None:
    assert all(state["messages"] == each["messages"] for each in taken)
    [item] = state["messages"][1]["items"]
    assert item["content"][0]["text"].split() == [str(number) for number in range(1, 301)]


async def cut_off(client: Client, chat: str, after: int, stays: list[tuple[WebProcess, str]]) -> list[dict[str, Any]]:
    """Listen at one process until the words come, fall off the line, stay away for a while, and go on at the next."""
    heard: list[dict[str, Any]] = []
    for server, words in stays:
        async with socket(server, client, chat, heard[-1]["seq"] if heard else after) as line:
            heard += await hear(line, partial(says, words))
            line.transport.abort()
        assert not ended(heard), "it was to be cut in the middle"
        await asyncio.sleep(0.5)
    return heard


def says(words: str, found: list[dict[str, Any]]) -> bool:
    return words in "".join(event["text"] for event in found if event["kind"] == "item.delta")


# S23

WORDS = "".join(f"{number} " for number in range(200))
GATES = [f"gate-{number}" for number in range(8)]


def busy() -> str:
    """Four seconds of text, fifty pieces a second, and one request after the other beside it."""
    stream = {"text": WORDS, "chunk": 4, "every": 0.02}
    return script({"parallel": [[stream], [gate(number) for number in range(len(GATES))]]})


def test_s23_two_processes_that_write_to_the_same_chats_do_not_hinder_each_other(pair: Pair, client: Client) -> None:
    """Text from the one, decisions and titles from both, and somebody who looks at the admin."""
    doors = [client.at(pair.one), client.at(pair.two)]
    chats = [door.chat(busy(), provider="scripted") for door in doors * 4]
    asking: list[Callable[[], Iterator[int]]] = [partial(decided, door) for door in doors]
    asking += [partial(renamed, door, chats) for door in doors]
    asking += [lambda: iter([client.http.get("/admin/agentchat/outputitem/").status_code])]
    answers = at_once(*(partial(until_completed, client, chats, ask) for ask in asking))
    assert [set(codes) for codes in answers] == [{200}] * len(asking)
    for chat in chats:
        assert client.snapshot(chat) == doors[1].snapshot(chat)
        is_undamaged(client, chat)
        were_at_once(stored(pair, chat))
    assert pair.query("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()") == [(0,)]
    assert " ERROR: " not in pair.postgres.log.read_text()
    assert not any("is repeated" in server.log() for server in (pair.one, pair.two))
    is_well(pair)


def were_at_once(events: list[dict[str, Any]]) -> None:
    kinds = [event["kind"] for event in events]
    first, last = kinds.index("item.delta"), len(kinds) - kinds[::-1].index("item.delta")
    assert {"approval.resolved", "chat.changed"} <= set(kinds[first:last]), "they did not write at the same time"


def decided(client: Client) -> Iterator[int]:
    for row in client.get("/approvals/", state="pending")["results"]:
        yield client.decide(row["item"]).status_code


def renamed(client: Client, chats: list[str]) -> Iterator[int]:
    for chat in chats:
        yield rename(client, chat).status_code


def until_completed(client: Client, chats: list[str], ask: Callable[[], Iterator[int]]) -> list[int]:
    """Ask again and again, until all the chats have come to their end; what was answered."""
    answers: list[int] = []

    def over() -> bool:
        answers.extend(ask())
        return all(client.run(chat)["status"] == "completed" for chat in chats)

    until(over, 50)
    return answers


def is_undamaged(client: Client, chat: str) -> None:
    """All was said, in order; all was decided once, and the agent got it."""
    items = client.items(chat)
    assert "".join(item["content"][0]["text"] for item in items if item["type"] == "message") == WORDS
    calls = [item for item in items if item["type"] == "function_call"]
    assert sorted(call["call_id"] for call in calls) == GATES
    assert all(call["resolution"]["action"] == "approve" and call["resolution"]["receipt"] for call in calls)


# S24

SOCKETS, ASKING = 300, 40


async def test_s24_connections_stay_bounded_whoever_watches_and_waits(pair: Pair, client: Client) -> None:
    """More sockets and open requests than PostgreSQL has connections; then it starts anew, and the agents get their answers."""
    one, two = client.at(pair.one), client.at(pair.two)
    chats = [door.chat(script(gate(0)), provider="scripted") for door in [one, two] * (ASKING // 2)]
    until(lambda: len(one.get("/approvals/", state="pending", limit=ASKING)["results"]) == ASKING)
    with sampled(pair) as seen:
        await asyncio.gather(asyncio.to_thread(read_much, one, two), watch_and_leave(pair, client, chats))
    assert POOL < max(seen) <= 2 * POOL, "each process has its bound, and was asked for more"
    assert until(lambda: connections(pair, in_use=True) == 0), "nobody holds one while people think"
    pair.postgres.halt()
    pair.postgres.resume()
    at_once(partial(allow_all, two, chats[::2]), partial(allow_all, one, chats[1::2]))
    assert until(lambda: all(one.run(chat)["status"] == "completed" for chat in chats))
    assert connections(pair) <= 2 * POOL
    told = pair.one.log() + pair.two.log() + pair.postgres.log.read_text()
    assert not any(words in told for words in ("already closed", "too many clients", "remaining connection slots"))


def allow_all(client: Client, chats: list[str]) -> None:
    for chat in chats:
        allow(client, chat, "gate-0")


async def watch_and_leave(pair: Pair, client: Client, chats: list[str]) -> None:
    """All sockets are open at once, each has heard what is asked, and then all are closed."""
    servers = zip(cycle((pair.one, pair.two)), cycle(chats), range(SOCKETS))
    async with AsyncExitStack() as stack:
        lines = [await stack.enter_async_context(socket(server, client, chat, 0)) for server, chat, _ in servers]
        for line in lines:
            assert await hear(line, has("approval.requested"))


def read_much(*doors: Client) -> None:
    """Several times as many readers as a process has connections."""
    for _ in range(5):
        asked = [partial(door.http.get, path) for door in doors for path in ("/", "/api/v1/chats/") * (POOL - 1)]
        assert {answer.status_code for answer in at_once(*asked)} == {200}


# S27

TURN = script(
    {"reasoning": "I think."},
    *({"approve": {"id": id, "name": "shell", "arguments": {"command": f"ls {id}"}}} for id in ("one", "two")),
    {"tool": {"id": "three", "name": "read", "arguments": {}, "result": "three\n", "done": True}},
    {"text": "It is *done*.\n\n"},
)
SOME, ALL = 60, 2500
"""Turns, with eight items each; of all, a hundred items have a megabyte."""
SHOWN = 50
"""Messages of a chat, or rows of a list in the admin."""
CHAT = ("/api/v1/chats/{chat}/snapshot/", "/chats/{chat}/")
ITEMS = tuple(f"/admin/agentchat/outputitem/{query}" for query in ("", "?p=2", "?q=shell"))
AUDIT = tuple(f"/admin/agentchat/resolution/{query}" for query in ("", "?p=2", "?q=shell"))
Costs = dict[str, list[tuple[int, int]]]


@pytest.fixture(scope="module")
def costs(pair: Pair, client: Client) -> tuple[Costs, Costs]:
    """Queries and bytes of each page at each process, while there are some turns, and once there are all."""
    chat = client.chat(TURN, provider="scripted", approval_mode="full")
    until(lambda: client.run(chat)["status"] == "completed")
    grow(pair, chat, 1, SOME)
    some = measured(pair, client, chat)
    grow(pair, chat, SOME, ALL)
    return some, measured(pair, client, chat)


def test_s27_five_thousand_messages_cost_no_more_than_a_hundred(costs: tuple[Costs, Costs]) -> None:
    """To open the chat at either process, and to list, search and turn the pages of the admin."""
    some, everything = costs
    for page in CHAT + ITEMS + AUDIT:
        for (queries, size), (queries_then, size_then) in zip(some[page], everything[page], strict=True):
            assert queries_then == queries and size_then < 1.2 * size and size_then < 1_000_000, page
    assert all(queries < SHOWN / 2 for page in CHAT + ITEMS + AUDIT for queries, _ in some[page]), "one for each row"


def measured(pair: Pair, client: Client, chat: str) -> Costs:
    doors, pages = (client.at(pair.one), client.at(pair.two)), CHAT + ITEMS + AUDIT
    return {page: [cost(pair, door, page.format(chat=chat)) for door in doors] for page in pages}
