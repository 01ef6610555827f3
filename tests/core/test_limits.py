"""What one run may take: time, memory, and what it says."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agentchat import conf
from agentchat.events import RunStatus
from agentchat.exceptions import Invalid
from agentchat.models import Chat, Run
from agentchat.providers import process
from agentchat.services import chats, runs
from agentchat.services.output import Output
from agentchat.supervisor.hosted import HostedRun
from tests.core.helpers import items, pending
from tests.services.client import until

pytestmark = pytest.mark.databases
ASKS = '{"approve": {"id": "c", "name": "shell", "arguments": {"command": "make"}}}'


@asynccontextmanager
async def begun(chat: Chat, owner: Any, in_db: Any, text: str) -> AsyncIterator[HostedRun]:
    await in_db(chats.post, user=owner, chat_id=chat.pk, text=text)
    hosted = HostedRun(await in_db(runs.claim, "test:worker"), lambda run: None)
    try:
        yield hosted
    finally:
        hosted.leave()
        await hosted.task


async def test_a_run_that_works_for_too_long_is_ended_and_says_so(
    journal: Any, chat: Chat, owner: Any, in_db: Any, settings: Any
) -> None:
    settings.AGENTCHAT_RUN_SECONDS = 1e-9
    async with begun(chat, owner, in_db, '{"hang": true}') as hosted:
        why = await in_db(hosted.beyond)
        assert "more than 1e-09 s (AGENTCHAT_RUN_SECONDS)" in why
        hosted.fail(why)
        await hosted.task
    run = await in_db(Run.objects.get)
    assert (run.status, run.error) == (RunStatus.FAILED, why)


async def test_the_time_in_which_it_waits_for_people_does_not_count(
    journal: Any, chat: Chat, owner: Any, in_db: Any, settings: Any
) -> None:
    settings.AGENTCHAT_RUN_SECONDS = 1e-9
    async with begun(chat, owner, in_db, ASKS) as hosted:
        await pending(in_db)
        assert [await in_db(hosted.beyond) for _ in range(3)] == [""] * 3


async def test_the_memory_of_all_its_processes_counts(
    journal: Any, chat: Chat, owner: Any, in_db: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.AGENTCHAT_RUN_MEMORY_MB = 100
    async with begun(chat, owner, in_db, '{"hang": true}') as hosted:
        assert await in_db(hosted.beyond) == ""
        monkeypatch.setattr("agentchat.providers.scripted.Scripted.memory", lambda run_id: 101 * 2**20)
        assert "held 101 MB, more than 100" in await in_db(hosted.beyond)


def test_processes_are_found_with_what_they_hold() -> None:
    run = str(uuid.uuid4())
    holds = "held = bytearray(60_000_000); print(1, flush=True); input()"
    with subprocess.Popen(
        ["python3", "-c", holds], env=process.environment(run), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout and child.stdout.readline()
        assert 60_000_000 < process.memory(run) < 200_000_000
        assert process.memory(str(uuid.uuid4())) == 0
        child.kill()
    assert until(lambda: process.memory(run) == 0)


async def test_what_it_says_has_a_bound(output: Output, in_db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "RUN_CHARS", 100)
    await output.text("x" * 60)
    await output.tool("c", "read", {}, result="y" * 40, done=True)
    with pytest.raises(Invalid, match="more than 100 characters in one message"):
        await output.text("z")
    assert sum(len(row.text) for row in await items(output, in_db)) == 100
