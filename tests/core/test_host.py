"""What hosts runs in a process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError

from agentchat.events import RunStatus
from agentchat.models import Chat, Run
from agentchat.services import chats, runs
from agentchat.supervisor.host import Host
from agentchat.supervisor.presence import Presence

pytestmark = pytest.mark.databases


@pytest.fixture
async def host(journal: Any, tmp_path: Path) -> AsyncIterator[Host]:
    made = Host(Presence(tmp_path), 10)
    await made.start()
    yield made
    await made.stop()


async def ended(in_db: Any) -> Run:
    async with asyncio.timeout(30):
        while not (run := await in_db(Run.objects.exclude(ended_at=None).first)):
            await asyncio.sleep(0.02)
    return run


async def test_a_run_is_driven_although_the_answer_of_its_claim_was_lost(
    host: Host, chat: Chat, owner: Any, in_db: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim, lost = runs.claim, []

    def unheard(worker: str) -> Run | None:
        run = claim(worker)
        if run and not lost:
            lost.append(run)
            raise OperationalError("the connection was lost")
        return run

    monkeypatch.setattr(runs, "claim", unheard)
    await in_db(chats.post, user=owner, chat_id=chat.pk, text='{"text": "hello"}')
    run = await ended(in_db)
    assert lost and (run.status, run.attempt) == (RunStatus.COMPLETED, 1)
