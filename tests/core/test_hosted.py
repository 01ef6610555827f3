"""One run driven in this process, from the moment when it was taken."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from agentchat.events import RunStatus
from agentchat.models import Chat, Message, OutputItem, Run
from agentchat.services import chats, parking, runs
from agentchat.supervisor.hosted import HostedRun
from tests.core.helpers import decide, pending

pytestmark = pytest.mark.databases
KEEPS = {"state": {"session": "s1"}}
ASKS = {"approve": {"id": "c", "name": "shell", "arguments": {"command": "make"}}}

ENDS = {"tool": {"id": "c", "name": "shell", "result": "ok", "done": True}}


def script(*steps: Any) -> str:
    return "\n".join(map(json.dumps, steps))


async def taken(chat: Chat, owner: Any, in_db: Any, text: str = "") -> HostedRun:
    if text:
        await in_db(chats.post, user=owner, chat_id=chat.pk, text=text)
    return HostedRun(await in_db(runs.claim, "test:worker"), lambda run: None)


async def kept_badly(in_db: Any) -> None:
    await in_db(lambda: Message.objects.filter(meta__has_key="agent").update(meta={"agent": "forged.by.somebody"}))


async def test_state_that_cannot_be_trusted_is_not_used_and_the_agent_says_so(
    journal: Any, chat: Chat, owner: Any, in_db: Any
) -> None:
    await (await taken(chat, owner, in_db, script(KEEPS))).task
    await kept_badly(in_db)
    await (await taken(chat, owner, in_db, script({"text": "hello"}))).task
    said = await in_db(lambda: list(OutputItem.objects.values_list("type", "text")))
    assert said[0][0] == "notice" and "starts afresh" in said[0][1] and "signature" in said[0][1]
    assert said[1:] == [("message", "hello")]


async def test_a_run_that_cannot_go_on_where_it_asked_does_not_begin_again(
    journal: Any, chat: Chat, owner: Any, in_db: Any
) -> None:
    """Its first steps had been done already."""
    first = await taken(chat, owner, in_db, script({"text": "once"}, ASKS))
    [item] = await pending(in_db)
    first.give_back()
    await first.task
    await kept_badly(in_db)
    await decide(in_db, owner, item)
    await (await taken(chat, owner, in_db)).task
    run = await in_db(Run.objects.get)
    assert run.status == RunStatus.FAILED and run.error.startswith("The agent cannot go on where it had asked")
    assert await in_db(OutputItem.objects.filter(text="once").count) == 1


async def test_it_is_given_back_and_goes_on_where_it_asked(journal: Any, chat: Chat, owner: Any, in_db: Any) -> None:
    first = await taken(chat, owner, in_db, script({"text": "once"}, ASKS, {"text": "then"}))
    [item] = await pending(in_db)
    await asyncio.sleep(0.01)
    assert first.waits_for() > 0
    first.give_back()
    await first.task
    assert await in_db(Run.objects.parked().count) == 1
    await decide(in_db, owner, item)
    second = await taken(chat, owner, in_db)
    await second.task
    assert (await in_db(Run.objects.get)).status == RunStatus.COMPLETED
    texts = await in_db(lambda: list(OutputItem.objects.filter(type="message").values_list("text", flat=True)))
    assert texts == ["once", "then"]


async def test_in_a_loop_and_beside_others_nothing_is_played_twice(
    journal: Any, chat: Chat, owner: Any, in_db: Any
) -> None:
    """Given back after each decision: a loop within branches, of which one has long ended."""
    asks = {"approve": ASKS["approve"], "then": [{"counter": "effects"}, ENDS]}
    loop = {"repeat": 2, "steps": [{"notice": "n"}, asks]}
    text = script({"parallel": [[loop], [{"text": "beside"}]]}, {"text": "end"})
    await in_db(chats.post, user=owner, chat_id=chat.pk, text=text)
    for _ in range(2):
        hosted = await taken(chat, owner, in_db)
        [item] = await pending(in_db)
        hosted.give_back()
        await hosted.task
        assert await in_db(Run.objects.parked().count) == 1
        await decide(in_db, owner, item)
    await (await taken(chat, owner, in_db)).task
    rows = await in_db(lambda: list(OutputItem.objects.order_by("position").values_list("type", "text")))
    assert [text for kind, text in rows if kind == "message"] == ["beside", "end"]
    assert [kind for kind, _ in rows].count("notice") == 2
    effects = (await in_db(lambda: chat.workspace)) + "/effects"
    with open(effects) as file:
        assert len(file.readlines()) == 2
    assert not await in_db(parking.unpark, item.message_id)
