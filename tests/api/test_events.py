from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from django.test import AsyncClient

from agentchat.events import Via
from agentchat.journal import process
from agentchat.journal.threads import DatabaseThread
from agentchat.models import Chat, Event, OutputItem
from agentchat.services import approvals, chats
from agentchat.services.approvals import Decision
from tests.api.conftest import Caller


def test_events_after_a_cursor(api: Caller, chat: Chat) -> None:
    chats.post(user=chat.owner, chat_id=chat.pk, text="Hello")
    found = api.get(f"/chats/{chat.pk}/events/?after=0").json()
    assert [event["seq"] for event in found["events"]] == list(range(1, found["cursor"] + 1))
    assert found["events"][0]["kind"] == "message.added"
    rest = api.get(f"/chats/{chat.pk}/events/?after=2").json()
    assert rest["events"] == found["events"][2:]
    assert api.get(f"/chats/{chat.pk}/events/?after={found['cursor']}").json() == {
        "cursor": found["cursor"],
        "events": [],
    }


def test_dropped_events_are_gone(api: Caller, chat: Chat) -> None:
    chats.post(user=chat.owner, chat_id=chat.pk, text="Hello")
    Event.objects.filter(chat=chat, seq__lte=2).delete()
    Chat.objects.filter(pk=chat.pk).update(floor_seq=2)
    answer = api.get(f"/chats/{chat.pk}/events/?after=1&wait=30")
    assert (answer.status_code, answer.json()["code"]) == (410, "cursor_too_old")
    assert api.get(f"/chats/{chat.pk}/events/?after=2").status_code == 200
    assert api.get(f"/chats/{chat.pk}/events/?after=999").status_code == 410


@pytest.mark.parametrize("query", ["after=-1", "after=x", f"after={2**63}", "wait=31", "wait=-1", "wait=nan"])
def test_bad_numbers(api: Caller, chat: Chat, query: str) -> None:
    answer = api.get(f"/chats/{chat.pk}/events/?{query}")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")


def test_waiting_ends(api: Caller, chat: Chat) -> None:
    start = time.monotonic()
    assert api.get(f"/chats/{chat.pk}/events/?after=0&wait=1").json() == {"cursor": 0, "events": []}
    assert 0.9 < time.monotonic() - start < 5


def test_only_get(api: Caller, chat: Chat) -> None:
    assert api.post(f"/chats/{chat.pk}/events/", {}).status_code == 405


# With the journal running


@pytest.fixture
async def journal(transactional_db: None, settings: Any) -> Any:
    settings.AGENTCHAT_POLL_SECONDS = 60  # so that only a wake-up can be fast
    write, read = DatabaseThread("write"), DatabaseThread("read")
    yield await process.start(write, read, with_bus=False, tick=0.01)
    await process.stop()
    write.close()
    read.close()


async def _waiting(ada: Any, path: str) -> asyncio.Task[Any]:
    client = AsyncClient()
    await client.aforce_login(ada)
    task: asyncio.Task[Any] = asyncio.create_task(client.get(f"/api/v1{path}"))
    await asyncio.sleep(0.3)
    assert not task.done()
    return task


@pytest.mark.django_db(transaction=True)
async def test_news_wake_who_waits(journal: Any, ada: Any, chat: Chat) -> None:
    waiting = await _waiting(ada, f"/chats/{chat.pk}/events/?after=0&wait=20")
    await asyncio.to_thread(chats.post, user=ada, chat_id=chat.pk, text="Hello")
    answer = await asyncio.wait_for(waiting, 5)
    assert answer.json()["events"][0]["kind"] == "message.added"
    assert str(chat.pk) not in journal.hub._listeners


@pytest.mark.django_db(transaction=True)
async def test_decision_wakes_who_waits(journal: Any, ada: Any, asked: OutputItem) -> None:
    waiting = await _waiting(ada, f"/approvals/{asked.pk}/?wait=20")
    decision = Decision("approve", asked.digest)
    await asyncio.to_thread(approvals.decide, ada, asked.pk, decision, via=Via.API, proof="session:x")
    answer = await asyncio.wait_for(waiting, 5)
    assert answer.json()["resolution"]["action"] == "approve"


@pytest.mark.django_db(transaction=True)
async def test_deleting_the_chat_ends_the_wait(journal: Any, ada: Any, chat: Chat) -> None:
    waiting = await _waiting(ada, f"/chats/{chat.pk}/events/?after=0&wait=20")
    await asyncio.to_thread(chats.delete, user=ada, chat_id=chat.pk)
    assert (await asyncio.wait_for(waiting, 5)).status_code == 404
