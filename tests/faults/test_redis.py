"""Redis is away, dies, comes back, or stands still: everybody sees everything, and decisions reach the agents."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import redis as driver
from websockets.sync.client import connect

from tests.faults.story import PARTS, Watched, watched
from tests.services.client import until
from tests.services.cluster import Pair
from tests.services.postgres import Postgres
from tests.services.redis import Redis

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
Begin = Callable[..., Watched]


@pytest.fixture
def redis() -> Iterator[Redis]:
    with Redis() as running:
        yield running


@pytest.fixture
def pair(postgres: Postgres, redis: Redis) -> Iterator[Pair]:
    with Pair(postgres, redis) as running:
        yield running


@pytest.fixture
def begin(pair: Pair) -> Iterator[Begin]:
    with ExitStack() as stack:
        yield lambda parts=PARTS: watched(pair, stack, parts)


def hears_at_once(story: Watched) -> bool:
    """Whether the bus carries: both processes have subscribed to the chat (one has its viewer, one its run)."""
    with driver.Redis.from_url(story.pair.redis.url, socket_timeout=2) as client:
        names = [name.decode() for name in client.pubsub_channels(f"*{story.chat}*")]
        return bool(names) and all(count == 2 for _, count in client.pubsub_numsub(*names))


def waits(story: Watched) -> Any:
    """A socket of the inbox at the process that does not drive the run; gives what it says next."""
    cookies = "; ".join(f"{name}={value}" for name, value in story.client.http.cookies.items())
    return connect(
        f"{story.other.ws_url}/ws/inbox/",
        additional_headers={"Cookie": cookies},
        origin=story.other.url,  # type: ignore[arg-type]
    )


def counts(inbox: Any, wanted: int) -> None:
    while json.loads(inbox.recv(timeout=10))["pending"] != wanted:
        continue


def test_redis_is_away_at_the_start_and_comes_later(postgres: Postgres) -> None:
    redis = Redis()
    with Pair(postgres, redis) as pair, ExitStack() as stack:
        story = watched(pair, stack, 3)
        inbox = stack.enter_context(waits(story))
        story.reach(0)
        counts(inbox, 1)
        story.allow(0)
        counts(inbox, 0)
        story.reach(1)
        counts(inbox, 1)
        assert "Traceback" not in pair.one.log() + pair.two.log()
        with redis:
            until(lambda: hears_at_once(story))
            story.allow(1)
            story.reach(2)
            story.allow(2)
            story.is_whole()


def test_redis_dies_under_load_and_comes_back(begin: Begin, redis: Redis) -> None:
    story = begin()
    story.viewer.has(lambda events: any(event["kind"] == "item.delta" for event in events))
    redis.kill()
    story.reach(0)
    story.allow(0)
    story.reach(1)
    redis.start()
    until(lambda: hears_at_once(story))
    story.allow(1)
    story.reach(2)
    story.allow(2)
    story.is_whole()
    again = begin(1)
    until(lambda: hears_at_once(again))
    again.reach(0)
    again.allow(0)
    again.is_whole(1)
    for server in (story.host, story.other):
        assert "Traceback" not in server.log()


def test_redis_stands_still(begin: Begin, redis: Redis) -> None:
    story = begin()
    story.viewer.has(lambda events: any(event["kind"] == "item.delta" for event in events))
    with redis.paused():
        story.reach(0)
        story.allow(0)
        story.reach(1)
    until(lambda: hears_at_once(story))
    story.allow(1)
    story.reach(2)
    story.allow(2)
    story.is_whole()
    assert "Traceback" not in story.host.log() + story.other.log()
