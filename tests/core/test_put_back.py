"""A run that was taken and has not begun when its server stops: the next worker has it, as if nothing had been."""

from __future__ import annotations

from typing import Any

import pytest

from agentchat.events import RunStatus
from agentchat.models import Run
from agentchat.services import chats, runs

pytestmark = [pytest.mark.databases, pytest.mark.django_db]
WORKER = "test:worker"


def taken(owner: Any) -> Run:
    chat = chats.create(user=owner, provider="scripted")
    chats.post(user=owner, chat_id=chat.pk, text="rehearsal")
    run = runs.claim(WORKER)
    assert run
    return run


def test_it_is_queued_again_and_taken_by_another(owner: Any) -> None:
    run = taken(owner)
    assert runs.put_back(run.pk, WORKER)
    run.refresh_from_db()
    assert (run.status, run.worker, run.attempt, run.started_at) == (RunStatus.QUEUED, "", 0, None)
    again = runs.claim("test:another")
    assert again and (again.pk, again.attempt) == (run.pk, 1)
    assert again.fence > run.fence


def test_that_of_another_worker_stays(owner: Any) -> None:
    run = taken(owner)
    assert not runs.put_back(run.pk, "test:another")
    assert Run.objects.get().status == RunStatus.RUNNING


def test_one_that_is_to_be_stopped_is_not_begun_again(owner: Any) -> None:
    run = taken(owner)
    runs.stop(owner, run.pk)
    assert not runs.put_back(run.pk, WORKER)
