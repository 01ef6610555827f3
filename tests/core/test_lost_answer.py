"""A commit was made, and its answer was lost: it is repeated, and not made twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError

from agentchat.journal import store
from agentchat.models import Chat, OutputItem, Receipt
from agentchat.services import chats, snapshot
from agentchat.services.output import Output
from tests.core.conftest import make_output
from tests.core.helpers import decide, events, pending
from tests.reducer import apply

pytestmark = pytest.mark.databases


@pytest.fixture
def losing(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From now on the answer of each commit is lost once."""

    def lose() -> None:
        heard: set[Any] = set()
        commit = store.commit

        def unheard(entries: Any, key: Any) -> Any:
            results = commit(entries, key)
            if key not in heard:
                heard.add(key)
                raise OperationalError("the connection was lost")
            return results

        monkeypatch.setattr(store, "commit", unheard)

    return lose


async def test_text_and_calls_are_there_once(
    output: Output, chat: Chat, owner: Any, in_db: Any, losing: Callable[[], None]
) -> None:
    before = await in_db(snapshot.chat_snapshot, owner, chat.pk)
    losing()
    for n in range(3):
        await output.text(f"{n} ")
        await output.flush(force=True)
    await output.tool("c", "read", {}, result="ok", done=True)
    await output.save(done=True)
    after = await in_db(snapshot.chat_snapshot, owner, chat.pk)
    heard = await events(in_db, chat, before["cursor"])
    assert [event["seq"] for event in heard] == list(range(before["cursor"] + 1, after["cursor"] + 1))
    assert apply(before, heard) == after
    rows = await in_db(lambda: list(OutputItem.objects.order_by("position").values_list("type", "text")))
    assert rows == [("message", "0 1 2 "), ("function_call", ""), ("function_call_output", "ok")]


async def test_a_decision_is_delivered_once_and_the_agent_gets_it(
    output: Output, owner: Any, in_db: Any, losing: Callable[[], None]
) -> None:
    asking = asyncio.create_task(output.approve("shell", {"command": "x"}, call_id="c"))
    [item] = await pending(in_db)
    losing()
    await decide(in_db, owner, item)
    assert (await asking)["action"] == "approve"
    assert await in_db(Receipt.objects.count) == 1


async def test_chats_that_are_committed_together_are_told_apart(
    output: Output, chat: Chat, owner: Any, in_db: Any, losing: Callable[[], None]
) -> None:
    """One is deleted meanwhile, and what others wrote into it since does not confuse."""
    second = await in_db(chats.create, user=owner, provider="scripted")
    beside = await make_output(second, owner, in_db)
    losing()
    await asyncio.gather(output.text("a"), beside.text("b"))
    await in_db(chats.change, user=owner, chat_id=chat.pk, title="changed")
    await asyncio.gather(output.flush(force=True), beside.flush(force=True))
    for one, text in ((chat, "a"), (second, "b")):
        deltas = [event for event in await events(in_db, one) if event["kind"] == "item.delta"]
        assert [event["text"] for event in deltas] == [text]
