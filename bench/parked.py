"""Ten thousand runs that are parked: what they cost all processes together, and that one of them still goes on.

With processes of its own: a web process, two workers, PostgreSQL and Redis.
"""

from __future__ import annotations

import json
import re
import resource
import time
from dataclasses import dataclass
from pathlib import Path
from typing import LiteralString

import psycopg

from bench.figures import Figure
from tests.restarts.matrix import ticks
from tests.services.client import Client, until
from tests.services.farm import Farm
from tests.services.postgres import Postgres
from tests.services.redis import Redis

PARKED = 10_000
SECONDS = 60
STATEMENT = re.compile(rb" LOG:  (?:statement|execute [^:]*): (?!BEGIN|COMMIT|ROLLBACK)")
ENV = {"AGENTCHAT_PARK_SECONDS": "1", "AGENTCHAT_MAX_RUNS": "1000", "AGENTCHAT_POLL_SECONDS": "5", "LOG_LEVEL": "INFO"}
ASKS = (
    {"text": "I ask first.\n"},
    {"approve": {"id": "c", "name": "shell", "arguments": {"command": "ls"}}, "then": [{"counter": "did"}]},
    {"text": "Done.\n"},
)
MAKE = """
from agentchat.services import chats, signin
owner = signin.owner()
for _ in range({count}):
    chat = chats.create(user=owner, provider="scripted")
    chats.post(user=owner, chat_id=chat.pk, text={text!r})
"""
WAITING: LiteralString = "SELECT count(*) FROM agentchat_run WHERE status = 'waiting' AND worker = ''"
LEFT: LiteralString = "SELECT count(*) FROM agentchat_run WHERE status <> 'waiting' OR worker <> ''"
ANY: LiteralString = "SELECT id FROM agentchat_outputitem WHERE status = 'pending' ORDER BY id LIMIT 1"
RUN: LiteralString = (
    "SELECT r.status FROM agentchat_run r JOIN agentchat_outputitem i USING (message_id) WHERE i.id = %s"
)


@dataclass(frozen=True)
class Quiet:
    """What the processes do while nobody does anything: statements an hour, the part of a core, and their MiB."""

    statements: float
    cpu: float
    memory: float


def quiet(farm: Farm) -> Quiet:
    pids = [server.pid for server in (*farm.web, *farm.workers)]
    log = farm.postgres.log
    _log_statements(farm, "all")
    begun, before = log.stat().st_size, sum(map(ticks, pids))
    time.sleep(SECONDS)
    with log.open("rb") as lines:
        lines.seek(begun)
        count = len(STATEMENT.findall(lines.read()))
    cpu = (sum(map(ticks, pids)) - before) / 100 / SECONDS
    _log_statements(farm, "none")
    return Quiet(count * 3600 / SECONDS, cpu, sum(map(_resident, pids)) / 2**20)


def _log_statements(farm: Farm, which: LiteralString) -> None:
    with psycopg.connect(farm.url, autocommit=True) as connection:
        connection.execute(f"ALTER SYSTEM SET log_statement = '{which}'")
        connection.execute("SELECT pg_reload_conf()")
    time.sleep(1)


def _resident(pid: int) -> int:
    """Bytes of memory that a process holds."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


def park(farm: Farm) -> float:
    """Seconds until all have asked and are parked."""
    text = "\n".join(map(json.dumps, ASKS))
    farm.web[0].manage("shell", "-c", MAKE.format(count=PARKED, text=text))
    begun = time.monotonic()
    until(lambda: farm.query(WAITING) == [(PARKED,)] and farm.query(LEFT) == [(0,)], 1200)
    return time.monotonic() - begun


def goes_on(farm: Farm, client: Client) -> float:
    """Milliseconds from deciding one of them to the end of its run."""
    item = str(farm.query(ANY)[0][0])
    digest = client.get(f"/approvals/{item}/")["item"]["digest"]
    begun = time.monotonic()
    answer = client.post(f"/approvals/{item}/decision/", {"action": "approve", "digest": digest})
    assert answer.status_code == 200, answer.text
    until(lambda: farm.query(RUN, item) == [("completed",)], 60)
    took = (time.monotonic() - begun) * 1000
    assert farm.query(WAITING) == [(PARKED - 1,)]
    [file] = (farm.web[0].var / "workspaces").rglob("did")
    assert file.read_text() == "1\n", "it went on once"
    return took


def measure() -> list[Figure]:
    with Postgres("autovacuum=on") as postgres, Redis() as redis, Farm(postgres, redis, 1, 2, **ENV) as farm:
        client = farm.client()
        none = quiet(farm)
        took = park(farm)
        many = quiet(farm)
        for worker in farm.workers:
            worker.restart()
        fresh = quiet(farm)
        return [*figures(none, many, fresh, took), one(goes_on(farm, client))]


def figures(none: Quiet, many: Quiet, fresh: Quiet, took: float) -> list[Figure]:
    how = f"{PARKED} parked; a web process and two workers; {SECONDS} s in which nobody does anything"
    started = f"{how}; the workers were started after they were parked"
    each = (many.memory - none.memory) * 1024 / PARKED
    return [
        Figure("statements of all processes in an hour, none parked", none.statements, "", None, how),
        Figure(
            "statements of all processes in an hour, 10,000 parked", many.statements, "", 1.1 * none.statements, how
        ),
        Figure("CPU of all processes, none parked", none.cpu * 100, "% of a core", None, how),
        Figure("CPU of all processes, 10,000 parked", many.cpu * 100, "% of a core", None, how),
        Figure("memory of all processes, none parked", none.memory, "MiB", None, how),
        Figure("memory of all processes, 10,000 parked", fresh.memory, "MiB", 1.1 * none.memory, started),
        Figure("memory of the processes that had driven them", many.memory, "MiB", None, f"{how}; {each:.1f} KiB each"),
        Figure("10,000 runs taken, asked and parked", took, "s", None, "two workers, 1,000 runs each at a time"),
    ]


def one(took: float) -> Figure:
    return Figure("decided to completed, one of 10,000 parked", took, "ms", None, "by REST; another worker goes on")
