"""Who is taken next, how many at a time, and how far one is from it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection

from agentchat.events import RunStatus
from agentchat.models import Resolution, Run
from agentchat.services import chats, runs

pytestmark = pytest.mark.databases


def queued(user: Any, count: int) -> list[Run]:
    made = [chats.create(user=user, provider="scripted") for _ in range(count)]
    return [chats.post(user=user, chat_id=chat.pk, text="go")[1] for chat in made]


def taken_at_once(count: int) -> list[Run]:
    """By so many workers, which all look before one of them takes."""
    barrier = Barrier(count)

    def take(number: int) -> Run | None:
        try:
            barrier.wait()
            return runs.claim(f"test:{number}")
        finally:
            connection.close()

    with ThreadPoolExecutor(count) as pool:
        return [run for run in pool.map(take, range(count)) if run]


def test_a_person_has_only_so_many_at_a_time_and_does_not_hold_up_others(
    owner: Any, stranger: Any, settings: Any
) -> None:
    settings.AGENTCHAT_MAX_RUNS_OF_A_PERSON = 2
    queued(owner, 5)
    [other] = queued(stranger, 1)
    taken = [runs.claim("test:worker") for _ in range(4)]
    assert [run.chat.owner if run else None for run in taken] == [owner, owner, stranger, None]
    assert taken[2] and taken[2].pk == other.pk
    runs.finish(taken[0].pk, RunStatus.COMPLETED) if taken[0] else None
    assert runs.claim("test:worker")


@pytest.mark.parametrize("limit", ["AGENTCHAT_MAX_RUNS_OF_A_PERSON", "AGENTCHAT_MAX_RUNS_IN_ALL"])
def test_workers_that_take_at_once_do_not_pass_the_limit(owner: Any, settings: Any, limit: str) -> None:
    setattr(settings, limit, 3)
    queued(owner, 8)
    taken_at_once(6)
    while runs.claim("test:worker"):
        pass
    assert Run.objects.held().count() == 3


def test_a_run_is_taken_by_one_worker_only(owner: Any) -> None:
    queued(owner, 4)
    taken = taken_at_once(6)
    while run := runs.claim("test:worker"):
        taken.append(run)
    assert len({run.pk for run in taken}) == len(taken) == 4


def test_the_place_in_the_line(owner: Any, stranger: Any) -> None:
    first, second = queued(owner, 2)
    [other] = queued(stranger, 1)
    assert [runs.place(run.pk) for run in (first, second, other)] == [1, 2, 3]
    runs.claim("test:worker")
    assert [runs.place(run.pk) for run in (first, second, other)] == [None, 1, 2]
    Run.objects.filter(pk=other.pk).update(priority=1)
    assert [runs.place(run.pk) for run in (second, other)] == [2, 1]
    _, later = chats.post(user=owner, chat_id=first.chat_id, text="more")
    assert runs.place(later.pk) is None, "its chat is at work"


def test_whoever_is_deactivated_has_nothing_running_and_nothing_starts(owner: Any, stranger: Any) -> None:
    running, waiting = queued(owner, 2)
    [other] = queued(stranger, 1)
    runs.claim("test:worker")
    get_user_model().objects.filter(pk=owner.pk).update(is_active=False)
    runs.stop_of_the_deactivated()
    assert runs.beat("test:worker") == {running.pk}
    taken = runs.claim("test:worker")
    assert taken and taken.pk == other.pk
    assert runs.claim("test:worker") is None
    assert Run.objects.get(pk=waiting.pk).status == RunStatus.QUEUED
    assert not Resolution.objects.exists()
