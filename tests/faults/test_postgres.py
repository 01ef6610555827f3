"""PostgreSQL ends and comes back under load: runs go on, nothing is lost or doubled, and people are told what is the matter."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import httpx
import pytest

from agentchat import conf
from tests.faults.story import PARTS, Watched, watched
from tests.faults.viewer import Viewer
from tests.services.client import until
from tests.services.cluster import Pair
from tests.services.postgres import Postgres
from tests.services.redis import Redis

pytestmark = [pytest.mark.slow, pytest.mark.services, pytest.mark.timeout(240)]
AWAY = "The database cannot be reached right now"


@pytest.fixture(scope="module")
def own_postgres() -> Iterator[Postgres]:
    with Postgres("synchronous_commit=on") as running:  # else a crash of PostgreSQL may lose the last commits
        yield running
        if running.process is None:
            running.resume()  # a failed test must not take the next with it


@pytest.fixture
def pair(own_postgres: Postgres, redis_server: Redis) -> Iterator[Pair]:
    with Pair(own_postgres, redis_server) as running:
        yield running


@pytest.fixture
def story(pair: Pair) -> Iterator[Watched]:
    with ExitStack() as stack:
        yield watched(pair, stack, PARTS)


@contextmanager
def asking(story: Watched) -> Iterator[list[int]]:
    """Somebody who reads all the time, from both processes; what they were answered."""
    answers: list[int] = []
    over = threading.Event()

    def ask() -> None:
        with httpx.Client(timeout=30, cookies=dict(story.client.http.cookies)) as http:
            while not over.is_set():
                for server in (story.host, story.other):
                    for path in ("/api/v1/chats/", f"/chats/{story.chat}/"):
                        answers.append(http.get(f"{server.url}{path}").status_code)

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        over.set()
        for thread in threads:
            thread.join(40)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["restarted", "crashed"])
def test_the_database_comes_back_under_load(story: Watched, how: signal.Signals) -> None:
    postgres = story.pair.postgres
    story.viewer.has(lambda events: any(event["kind"] == "item.delta" for event in events))
    with asking(story) as answers:
        postgres.halt(how)
        time.sleep(0.5)
        postgres.resume()
        story.reach(0)
        story.allow(0)
        story.reach(1)
        postgres.halt(how)
        postgres.resume()
        story.allow(1)
        story.reach(2)
        story.allow(2)
        story.is_whole()
    assert set(answers) <= {200, 503}
    assert answers[-1] == 200
    assert "already closed" not in story.host.log() + story.other.log()
    assert story.host.manage("verify_resolutions").returncode == 0


def test_while_the_database_is_away_people_are_told_so(story: Watched) -> None:
    story.reach(0)
    [row] = story.client.pending()
    story.pair.postgres.halt()
    gone = time.monotonic()
    try:
        read = story.client.http.get(f"/api/v1/chats/{story.chat}/snapshot/")
        decided = story.client.decide(row["item"])
        page = story.client.http.get("/")
        ready, alive = (story.client.http.get(path).status_code for path in ("/readyz", "/healthz"))
        longer_than_a_worker_may_be_silent = conf.DEAD_AFTER_SECONDS + 2  # each was silent, and none is dead
        time.sleep(max(0, gone + longer_than_a_worker_may_be_silent - time.monotonic()))
    finally:
        story.pair.postgres.resume()
    for answer in (read, decided):
        assert (answer.status_code, answer.json()["code"]) == (503, "database_away"), answer.text
        assert AWAY in answer.json()["detail"] and int(answer.headers["Retry-After"]) > 0
    assert page.status_code == 503 and AWAY in page.text
    assert (ready, alive) == (503, 200)
    again = story.client.decide(row["item"])
    assert (again.status_code, again.json()["resolution"]["action"]) == (200, "approve")
    story.reach(1)
    story.allow(1)
    story.reach(2)
    story.allow(2)
    story.is_whole()


def test_a_viewer_who_comes_while_the_database_is_away_is_let_in_later(story: Watched) -> None:
    story.reach(0)
    story.pair.postgres.halt()
    late = Viewer(story.client, story.chat, story.host)
    late.begin()
    until(lambda: late.refused)
    story.pair.postgres.resume()
    with late:
        for nth in range(PARTS):
            story.reach(nth)
            story.allow(nth)
        story.is_whole()
        until(lambda: late.events == story.viewer.events)
