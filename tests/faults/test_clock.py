"""The clock of a server is set while an agent works: nothing expires, nobody is taken for dead, and the order stays.

With SQLite the server's clock is the database's, which decides. PostgreSQL has a clock of its own: there it decides,
whatever the servers believe.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any

import pytest
from websockets.frames import Frame, Opcode
from websockets.sync.client import ClientConnection, connect

from agentchat import conf
from tests.e2e.conftest import script
from tests.faults.conftest import BOTH, database
from tests.faults.story import PARTS, gate, watched
from tests.faults.viewer import Viewer, ended, says
from tests.services.client import Client, until
from tests.services.cluster import Pair
from tests.services.postgres import Postgres
from tests.services.redis import Redis
from tests.services.server import Server

pytestmark = [pytest.mark.slow, pytest.mark.services]
HOUR = 3600
PROGRAM = """
import time
from datetime import timedelta
from pathlib import Path
from django.utils import timezone
wrong, seconds, nanoseconds, now = Path({file!r}), time.time, time.time_ns, timezone.now
by = lambda: int(wrong.read_text())
time.time = lambda: seconds() + by()
time.time_ns = lambda: nanoseconds() + by() * 10**9
timezone.now = lambda: now() + timedelta(seconds=by())
import manage
manage.main()
"""
"""A server whose clock is wrong by the seconds that a file says; what only counts seconds (`monotonic`) goes on."""
SAID = "".join(f"{n} " for n in range(600))
STREAM = {"text": SAID, "chunk": 4, "every": 0.015}
LIMIT = 5
"""Seconds: longer than setting the clock takes."""


class Clock:
    def __init__(self, file: Path) -> None:
        self.program = ["-c", PROGRAM.format(file=str(file))]
        self._file = file
        self.set(0)

    def set(self, seconds: int) -> None:
        """At once, as when somebody sets it by hand."""
        new = self._file.with_suffix(".new")
        new.write_text(str(seconds))
        new.replace(self._file)
        self.by = timedelta(seconds=seconds)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.by


class ByClock(Server):
    def __init__(self, clock: Clock, **more: Any) -> None:
        super().__init__(**more)
        self._clock = clock

    def now(self) -> datetime:
        """By the clock that decides: PostgreSQL's is right."""
        return datetime.now(UTC) if "DATABASE_URL" in self.given else self._clock.now()

    def _open(self, log: IO[bytes], **more: Any) -> subprocess.Popen[bytes]:
        command = [sys.executable, *self._clock.program, "serve", "--port", str(self.port)]
        return super()._open(log, **({"args": command} | more))


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    return Clock(tmp_path / "wrong-by")


@pytest.fixture(params=BOTH)
def server(request: pytest.FixtureRequest, clock: Clock) -> Iterator[ByClock]:
    with ByClock(clock, env=database(request)) as running:
        yield running


def limited(nth: int, seconds: float) -> dict[str, Any]:
    return {"approve": gate(nth)["approve"] | {"timeout": seconds}}


def moment(said: str) -> datetime:
    return datetime.fromisoformat(said)


def request_of(client: Client, call: str) -> Any:
    rows = client.get("/approvals/", state="pending")["results"]
    return next((row["item"] for row in rows if row["item"]["call_id"] == call), None)


def allow(client: Client, call: str, now: Callable[[], datetime]) -> Any:
    """The resolution; it was made while we waited for it, by the clock that decides."""
    item, before = until(lambda: request_of(client, call)), now()
    answer = client.decide(item)
    assert answer.status_code == 200, answer.text
    made = answer.json()["resolution"]
    assert before <= moment(made["decided_at"]) <= now()
    return made


def used(server: Server) -> float:
    """Seconds of a processor that the server has used."""
    fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("by", [HOUR, -HOUR], ids=["ahead", "back"])
def test_the_clock_is_set_while_a_request_waits_and_text_streams(server: ByClock, clock: Clock, by: int) -> None:
    client = Client(server)
    chat = client.chat(
        script({"parallel": [[gate(0), STREAM], [limited(1, 2 * HOUR)], [gate(2)]]}), provider="scripted"
    )
    client.pending(3)
    with Viewer(client, chat, server) as viewer:
        resolutions = [allow(client, "gate-0", server.now)]
        viewer.has(says(viewer, "9 "))
        clock.set(by)
        viewer.has(says(viewer, SAID))
        assert client.run(chat)["status"] == "waiting"
        resolutions += [allow(client, call, server.now) for call in ("gate-1", "gate-2")]
        viewer.has(ended)
        assert client.run(chat)["status"] == "completed"
        assert viewer.text() == SAID and not viewer.wrong and viewer.connections == 1
    assert [row["id"] for row in client.all("/resolutions/")] == [row["id"] for row in resolutions[::-1]]
    assert "dead worker" not in server.log()
    assert server.manage("verify_resolutions").returncode == 0


@pytest.mark.parametrize("by", [HOUR, -HOUR], ids=["ahead", "back"])
def test_a_limit_is_kept_by_the_clock_that_decides(server: ByClock, clock: Clock, by: int) -> None:
    """Until that says that it is over, people may answer, and nobody looks at it without a pause."""
    client = Client(server)
    chat = client.chat(script(limited(0, LIMIT)), provider="scripted")
    expires = moment(client.pending()[0]["item"]["expires_at"])
    clock.set(by)
    begun, before = time.monotonic(), used(server)
    time.sleep(LIMIT + conf.HEARTBEAT_SECONDS)
    assert used(server) - before < (time.monotonic() - begun) / 20
    if server.now() < expires:
        assert allow(client, "gate-0", server.now)["cause"] == "person"
    [row] = client.all("/resolutions/")
    assert (row["cause"] == "timeout") == (moment(row["decided_at"]) >= expires)
    assert until(lambda: client.run(chat)["status"] == "completed")


class Asked(ClientConnection):
    """A socket that counts how often it was asked whether it is still there."""

    pings = 0

    def process_event(self, event: Any) -> None:
        self.pings += isinstance(event, Frame) and event.opcode == Opcode.PING
        super().process_event(event)


def test_idle_sockets_are_pinged_also_when_the_clock_was_set_back(clock: Clock) -> None:
    """Or a proxy would close them."""
    with ByClock(clock) as server:
        http = Client(server).http
        cookies = {"Cookie": "; ".join(f"{name}={value}" for name, value in http.cookies.items())}
        where = f"{server.ws_url}/ws/inbox/"
        with connect(where, additional_headers=cookies, origin=server.url, create_connection=Asked) as socket:  # type: ignore[arg-type]
            clock.set(-HOUR)
            until(lambda: socket.pings, 40)


def test_nobody_is_silent_because_the_clock_was_set(clock: Clock) -> None:
    """Two processes: by the new time, the other has not beaten for an hour."""
    with ByClock(clock) as one, ByClock(clock, var=one.var) as two:
        client = Client(one)
        chats = [door.chat(script(gate(n)), provider="scripted") for n, door in enumerate([client, client.at(two)])]
        client.pending(2)
        time.sleep(conf.DEAD_AFTER_SECONDS + 2 * conf.HEARTBEAT_SECONDS)
        for hours in range(1, 9):
            clock.set(hours * HOUR)
            time.sleep(conf.HEARTBEAT_SECONDS / 2)
        for n, chat in enumerate(chats):
            allow(client, f"gate-{n}", clock.now)
            assert until(lambda chat=chat: client.run(chat)["status"] == "completed")
        assert "dead worker" not in one.log() + two.log()


def test_one_of_two_processes_has_the_wrong_time(clock: Clock, postgres: Postgres, redis_server: Redis) -> None:
    clock.set(HOUR)
    with Pair(postgres, redis_server, clock.program) as pair, ExitStack() as stack:
        story = watched(pair, stack, PARTS)
        story.reach(0)
        time.sleep(conf.DEAD_AFTER_SECONDS + 2 * conf.HEARTBEAT_SECONDS)
        for nth in range(PARTS):
            story.reach(nth)
            allow(story.client, f"gate-{nth}", lambda: datetime.now(UTC))
        story.is_whole()
        assert "dead worker" not in pair.one.log() + pair.two.log()


def test_messages_keep_their_order_when_the_clock_is_set_back(clock: Clock) -> None:
    with ByClock(clock) as server:
        client = Client(server)
        chat = client.chat(script(gate(0)), provider="scripted")
        client.pending()
        client.say(chat, script(gate(1)))
        clock.set(-HOUR)
        client.say(chat, script(gate(2)))
        allow(client, "gate-0", clock.now)
        assert client.pending()[0]["item"]["call_id"] == "gate-1"
