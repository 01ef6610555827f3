"""What the cases share: a race with a common start, sockets of a running server, who lives on this machine, and clusters."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier, Event, Thread
from typing import Any

import psycopg
import redis
import websockets

from tests.services.client import Client, until
from tests.services.cluster import Pair
from tests.services.redis import Redis
from tests.services.server import Server


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """Every call in a thread of its own, all let go by one barrier; their results in the given order."""
    barrier, results = Barrier(len(calls)), [None] * len(calls)

    def run(number: int, call: Callable[[], Any]) -> None:
        barrier.wait(10)
        results[number] = call()

    threads = [Thread(target=run, args=pair) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return results


def cookie(client: Client) -> dict[str, str]:
    return {"Cookie": "; ".join(f"{name}={value}" for name, value in client.http.cookies.items())}


def socket(server: Server, client: Client, chat: str, after: int, **more: Any) -> Any:
    url = f"{server.ws_url}/ws/chats/{chat}/?after={after}"
    return websockets.connect(url, additional_headers=cookie(client), origin=server.url, **more)  # type: ignore[arg-type]


async def hear(connection: Any, stop: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
    """Events of an open socket until `stop` says that these are enough."""
    found: list[dict[str, Any]] = []
    async with asyncio.timeout(30):
        while not stop(found):
            found += json.loads(await connection.recv()).get("events", [])
    return found


def has(kind: str) -> Callable[[list[dict[str, Any]]], bool]:
    return lambda found: any(event["kind"] == kind for event in found)


def ended(found: list[dict[str, Any]]) -> bool:
    return any(event["kind"] == "run.changed" and event["changes"].get("ended_at") for event in found)


def marked_processes(run: str) -> list[int]:
    """Processes that carry the mark of a run."""
    mark, found = f"AGENTCHAT_RUN={run}".encode(), []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


# Clusters


def empty_chat(client: Client) -> str:
    return str(client.post("/chats/", {"provider": "scripted"}).json()["id"])


def is_well(pair: Pair) -> None:
    """No process has complained, of whatever."""
    for server in (pair.one, pair.two):
        assert not [line for line in server.log().splitlines() if "ERROR" in line or "Traceback" in line]
        assert "ChannelFull" not in server.log()


def waits(client: Client, chat: str, call: str) -> Any:
    """The request of this call, if it is open."""
    rows = client.get("/approvals/", state="pending", chat=chat)["results"]
    return next((row["item"] for row in rows if row["item"]["call_id"] == call), None)


def allow(client: Client, chat: str, call: str) -> None:
    assert client.decide(until(lambda: waits(client, chat, call), 60)).status_code == 200


def stored(pair: Pair, chat: str) -> list[dict[str, Any]]:
    """The journal of a chat."""
    rows = pair.query("SELECT seq, body::json FROM agentchat_event WHERE chat_id = %s ORDER BY seq", chat)
    return [{"seq": seq, **body} for seq, body in rows]


def hints(bus: Redis) -> int:
    """Messages that Redis was given so far."""
    with redis.Redis.from_url(bus.url) as asking:
        return int(asking.info("commandstats")["cmdstat_publish"]["calls"])


def burst(pair: Pair, chat: str) -> int:
    """The events of the largest commit."""
    commits = "SELECT count(*) FROM agentchat_event WHERE chat_id = %s GROUP BY xmin::text ORDER BY 1 DESC LIMIT 1"
    return int(pair.query(commits, chat)[0][0])


def connections(pair: Pair, in_use: bool = False) -> int:
    """What the two processes hold of PostgreSQL; in use is also what waits within a transaction."""
    held = "SELECT count(*), count(*) FILTER (WHERE state <> 'idle') FROM pg_stat_activity"
    [counted] = pair.query(
        held + " WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )
    return int(counted[in_use])


@contextmanager
def sampled(pair: Pair) -> Iterator[list[int]]:
    """Counts the connections again and again."""
    seen: list[int] = []
    over = Event()

    def look() -> None:
        while not over.wait(0.02):
            seen.append(connections(pair))

    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(look)
        try:
            yield seen
        finally:
            over.set()
        looking.result(30)


COPY = """INSERT INTO agentchat_{table} SELECT (jsonb_populate_record(old, jsonb_build_object({changed}))).*
FROM agentchat_{table} old JOIN agentchat_message said ON said.id = {message}, generate_series(%(first)s::int, %(last)s) turn
WHERE said.chat_id = %(chat)s AND said.position < 1000"""
COPIED: dict[str, tuple[str, tuple[str, ...], dict[str, str]]] = {
    "message": ("old.id", ("id", "parent_id"), {"position": "1000 * turn + old.position"}),
    "run": ("old.message_id", ("id", "message_id"), {}),
    "outputitem": ("old.message_id", ("id", "message_id", "output_of_id"), {}),
    "resolution": (
        "(SELECT message_id FROM agentchat_outputitem WHERE id = old.item_id)",
        ("item_id", "hash", "prev_hash"),
        {"id": "nextval(pg_get_serial_sequence('agentchat_resolution', 'id'))"},
    ),
}
"""Tables of a turn: where a row's message is, the columns that are derived anew for each copy, and other changes."""
MEGABYTES = """UPDATE agentchat_outputitem SET text = repeat('0123456789', 100000) FROM agentchat_message said
WHERE said.id = message_id AND said.chat_id = %(chat)s AND said.position / 1000 %% 25 = 24
AND name = 'read' AND type = 'function_call_output'"""
NUMBERED = "UPDATE agentchat_chat SET last_seq = 1000 + 1000 * %(last)s, floor_seq = 1000 + 1000 * %(last)s WHERE id = %(chat)s"


def grow(pair: Pair, chat: str, before: int, turns: int) -> None:
    """Copy the first turn of a chat: it had so many turns before. A read result of each 25th has a megabyte."""
    with psycopg.connect(pair.url) as connection:
        connection.execute("SET session_replication_role = replica")  # foreign keys hold without looking
        for statement in (*map(_copy, COPIED), MEGABYTES, NUMBERED, "ANALYZE"):
            connection.execute(statement, {"chat": chat, "first": before, "last": turns - 1})


def _copy(table: str) -> Any:
    message, derived, others = COPIED[table]
    changes = {column: f"md5(turn || old.{column}::text)" for column in derived} | others
    changed = ", ".join(f"'{column}', {value}" for column, value in changes.items())
    return COPY.format(table=table, message=message, changed=changed)


def cost(pair: Pair, door: Client, path: str) -> tuple[int, int]:
    """Queries and bytes of a page; of two attempts the lesser."""
    return min(_opened(pair.postgres.log, door, path) for _ in range(2))


def _opened(log: Path, door: Client, path: str) -> tuple[int, int]:
    """Queries are those of the connection that had most of them: the processes look around now and then by others."""
    before = log.stat().st_size
    answer = door.http.get(path)
    assert answer.status_code == 200, path
    with log.open("rb") as lines:
        lines.seek(before)
        by_whom = Counter(re.findall(rb"\[(\d+)\] LOG:  (?:statement|execute)", lines.read()))
    return max(by_whom.values()), len(answer.content)
