"""One of two web processes is killed: its viewers go on at the other, and its runs are closed, honestly and once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.faults.story import PARTS, part, story, watched
from tests.faults.viewer import Viewer, ended
from tests.services.client import until
from tests.services.cluster import Pair
from tests.services.postgres import Postgres
from tests.services.redis import Redis

pytestmark = [pytest.mark.slow, pytest.mark.services]


@pytest.fixture
def pair(postgres: Postgres, redis_server: Redis) -> Iterator[Pair]:
    with Pair(postgres, redis_server) as running:
        yield running


def test_the_process_that_drives_the_run_is_killed(pair: Pair) -> None:
    with ExitStack() as stack:
        told = watched(pair, stack, PARTS)
        told.reach(0)
        [asked] = told.client.pending()
        at_the_lost = stack.enter_context(Viewer(told.client, told.chat, told.host, told.other))
        told.host.kill()
        for viewer in (told.viewer, at_the_lost):
            viewer.has(ended)
        until(lambda: at_the_lost.events == told.viewer.events)
        assert at_the_lost.connections >= 2 and not at_the_lost.wrong and not told.viewer.wrong
        answer = told.client.snapshot(told.chat)["messages"][-1]
        assert (answer["run"]["status"], answer["run"]["error"]) == (
            "interrupted",
            "The server died while the agent worked.",
        )
        assert answer["items"][0]["content"][0]["text"] == part(0)
        late = told.client.decide(asked["item"])
        assert (late.status_code, late.json()["code"]) == (410, "agent_gone")
        assert [row["cause"] for row in told.client.all("/resolutions/")] == ["agent_gone"]
        told.client.say(told.chat, story(1))
        row = told.client.pending()[0]
        assert told.client.decide(row["item"]).status_code == 200
        assert until(lambda: told.client.run(told.chat)["status"] == "completed")
        assert told.other.manage("verify_resolutions").returncode == 0


def test_the_process_that_only_shows_is_killed(pair: Pair) -> None:
    with ExitStack() as stack:
        told = watched(pair, stack, PARTS)
        told.reach(0)
        moved = stack.enter_context(Viewer(told.client, told.chat, told.other, told.host))
        told.allow(0)
        moved.has(lambda events: len(events) > len(told.viewer.events) - 5)
        told.other.kill()
        told.client = told.client.at(told.host)
        told.viewer = moved
        for nth in range(1, PARTS):
            told.reach(nth)
            told.allow(nth)
        told.is_whole()
        assert moved.connections >= 2
