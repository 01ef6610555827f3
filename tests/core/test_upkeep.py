"""What is kept of the journal, and for how long."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.sessions.models import Session

from agentchat.models import Chat, Event, clock
from agentchat.services import chats, snapshot, upkeep
from agentchat.services.output import Output
from tests.core.helpers import decide, pending

pytestmark = pytest.mark.databases


@pytest.fixture(autouse=True)
def at_once(settings: Any) -> None:
    settings.AGENTCHAT_KEEP_DELTAS_SECONDS = 0


async def stream(output: Output, texts: int) -> None:
    for n in range(texts):
        await output.text(f"{n} ")
        await output.flush(force=True)


async def test_a_request_that_waits_for_days_keeps_no_events_of_what_goes_on_beside_it(
    output: Output, chat: Chat, owner: Any, in_db: Any
) -> None:
    asking = asyncio.create_task(output.approve("shell", {"command": "x"}))
    [item] = await pending(in_db)
    await stream(output, 20)
    await output.notice("n")
    await output.flush(force=True)
    before = await in_db(snapshot.chat_snapshot, owner, chat.pk)
    await in_db(upkeep.compact)
    assert await in_db(Event.objects.filter(chat=chat).count) == 0
    assert await in_db(snapshot.chat_snapshot, owner, chat.pk) == before
    await decide(in_db, owner, item)
    assert (await asking)["action"] == "approve"


async def test_an_output_that_came_to_a_halt_keeps_its_text_and_goes_on(
    output: Output, chat: Chat, owner: Any, in_db: Any
) -> None:
    """Only what it grew by since its checkpoint is needed, and what came after that."""
    await output.tool("c", "shell", {})
    await stream(output, 20)
    await output.tool_output("c", "half of ")
    await output.notice("n")
    await output.flush(force=True)
    before = await in_db(snapshot.chat_snapshot, owner, chat.pk)
    await in_db(upkeep.compact)
    first = await in_db(Event.objects.filter(chat=chat).order_by("seq").first)
    assert first.kind == "item.delta" and "half of " in first.body
    assert await in_db(snapshot.chat_snapshot, owner, chat.pk) == before
    await output.tool_output("c", "it")
    await output.flush(force=True)
    after = await in_db(snapshot.chat_snapshot, owner, chat.pk)
    assert "half of it" in str(after["messages"])


async def test_of_many_chats_those_that_need_their_events_hold_up_no_other(
    journal: Any, owner: Any, in_db: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "CHATS", 2)
    made = [await in_db(chats.create, user=owner, provider="scripted") for _ in range(7)]
    for chat in made:
        for title in ("one", "two", "three"):
            await in_db(chats.change, user=owner, chat_id=chat.pk, title=title)
    monkeypatch.setattr(
        upkeep.fold, "first_needed", lambda chat, floor: 2 if chat in {made[0].pk, made[1].pk} else None
    )
    await in_db(upkeep.compact)
    left = [await in_db(Event.objects.filter(chat=chat).count) for chat in made]
    assert left[0] == left[1] > 0 and left[2:] == [0] * 5


async def test_events_are_dropped_in_short_transactions(
    output: Output, chat: Chat, in_db: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "AT_ONCE", 5)
    parts: list[int] = []
    drop = upkeep._drop_some
    monkeypatch.setattr(upkeep, "_drop_some", lambda *some: (parts.append(drop(*some)), parts[-1])[1])
    await stream(output, 20)
    await output.flush(done=True)
    dropped = await in_db(upkeep.compact)
    assert dropped == sum(parts) > 20 and max(parts) <= 5
    assert await in_db(Event.objects.filter(chat=chat).count) == 0


def test_sessions_end(db: None) -> None:
    now = clock.now()
    for name, end in (("over", now - timedelta(seconds=1)), ("open", now + timedelta(hours=1))):
        Session.objects.create(session_key=name, session_data="", expire_date=end)
    upkeep.compact()
    assert [row.session_key for row in Session.objects.all()] == ["open"]
