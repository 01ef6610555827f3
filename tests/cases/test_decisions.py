"""Faults that other systems of this kind had with decisions, each as a test of the right behaviour."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from agentchat.events import RunStatus
from agentchat.exceptions import AlreadyResolved, Expired, Stopped
from agentchat.models import Chat, Message, OutputItem, Resolution, Run
from agentchat.services import chats, runs, snapshot
from agentchat.services.output import Output
from tests.core.helpers import decide, items, pending

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.databases]


async def test_s03_the_same_answer_again_is_no_error_and_another_is_a_conflict(
    output: Output, owner: Any, in_db: Any
) -> None:
    asking = asyncio.create_task(output.approve("shell", {"command": "x"}))
    [item] = await pending(in_db)
    first = await decide(in_db, owner, item)
    await asking
    again = await decide(in_db, owner, item)
    assert (again.pk, again.hash) == (first.pk, first.hash)
    with pytest.raises(AlreadyResolved) as refused:
        await decide(in_db, owner, item, "reject")
    winner = refused.value.context["resolution"]
    assert (winner["action"], winner["decided_by"], winner["decided_at"] is not None) == ("approve", "ada", True)
    assert await in_db(Resolution.objects.count) == 1


async def test_s04_a_stream_does_not_overwrite_a_newer_decision_or_title(
    output: Output, owner: Any, chat: Chat, in_db: Any
) -> None:
    asking = asyncio.create_task(output.approve("shell", {"command": "x"}, call_id="c"))
    [item] = await pending(in_db)
    for n in range(200):
        await output.text(f"{n} ")
        if n == 50:
            await output.save()
            await decide(in_db, owner, item)
        if n == 100:
            await in_db(chats.change, user=owner, chat_id=chat.pk, title="Renamed")
            await output.save()
    await asking
    await output.flush(done=True)
    taken = await in_db(snapshot.chat_snapshot, owner, chat.pk)
    answer = taken["messages"][1]
    assert taken["chat"]["title"] == "Renamed"
    assert "".join(i["content"][0]["text"] for i in answer["items"] if i["type"] == "message") == "".join(
        f"{n} " for n in range(200)
    )
    call = next(i for i in answer["items"] if i["type"] == "function_call")
    assert (call["resolution"]["decided_by"], call["resolution"]["action"]) == ("ada", "approve")


async def test_s05_a_timeout_is_not_a_no_and_a_late_yes_does_nothing(output: Output, owner: Any, in_db: Any) -> None:
    got = await output.approve("shell", {"command": "x"}, timeout=0.2)
    assert (got["action"], got["cause"], got["timed_out"]) == ("reject", "timeout", True)
    assert "not a no" in got["reason"]
    item = await in_db(OutputItem.objects.get, type="function_call")
    with pytest.raises(Expired) as late:
        await decide(in_db, owner, item)
    assert late.value.context["resolution"]["decided_by"] is None
    stored = await in_db(Resolution.objects.get)
    assert (stored.cause, stored.decided_by_id, stored.decided_by_name) == ("timeout", None, "")


async def test_s06_stop_settles_what_waits_and_the_chat_goes_on(
    output: Output, owner: Any, chat: Chat, in_db: Any
) -> None:
    asking = asyncio.create_task(output.approve("shell", {"command": "x"}))
    [item] = await pending(in_db)
    run = await in_db(Run.objects.get)
    await in_db(runs.stop, owner, run.pk)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await in_db(runs.finish, run.pk, RunStatus.INTERRUPTED)
    assert (await in_db(Run.objects.get)).status == "cancelled"
    with pytest.raises(Stopped):
        await decide(in_db, owner, item)
    await in_db(chats.post, user=owner, chat_id=chat.pk, text="hello again")
    assert (await in_db(runs.claim, "test:worker")) is not None


@pytest.mark.parametrize("reason", ["", "   ", 'because\nof "this"' * 250])
async def test_s07_a_no_needs_no_reason_and_a_reason_comes_with_the_answer(
    output: Output, owner: Any, in_db: Any, reason: str
) -> None:
    asking = asyncio.create_task(output.approve("shell", {"command": "x"}))
    [item] = await pending(in_db)
    await decide(in_db, owner, item, "reject", reason=reason)
    got = await asking
    assert got["reason"] == (reason.strip() or "The person said no.")
    assert [row.status for row in await items(output, in_db)] == ["rejected", "completed"]


async def test_s08_parallel_requests_are_answered_in_any_order(output: Output, owner: Any, in_db: Any) -> None:
    await output.tool("a", "read", {"path": "x"}, result="read", done=True)
    asking = {id: asyncio.create_task(output.approve("shell", {"command": id}, call_id=id)) for id in "bcd"}
    rows = {row.call_id: row for row in await pending(in_db, 3)}
    assert list(rows) == ["b", "c", "d"]
    for id, action in (("d", "approve"), ("b", "reject"), ("c", "approve")):
        await decide(in_db, owner, rows[id], action)
        got = await asking[id]
        assert (got["action"], got["arguments"]) == (action, {"command": id})
    await output.text("and on")


async def test_s11_an_id_that_is_used_again_is_another_call(output: Output, owner: Any, in_db: Any) -> None:
    answers = []
    for q, result in (("a", "A"), ("b", "B")):
        asking = asyncio.create_task(output.approve("search", {"q": q}, call_id="search:0"))
        [item] = await pending(in_db)
        await decide(in_db, owner, item)
        await asking
        await output.tool("search:0", "search", {"q": q}, result=result, done=True)
        await output.text(f"found {result}")
    await output.flush(force=True)
    for call in await in_db(lambda: list(OutputItem.objects.filter(type="function_call").order_by("position"))):
        output_row = await in_db(OutputItem.objects.get, output_of=call)
        answers.append((json.loads(call.arguments)["q"], output_row.text))
    assert answers == [("a", "A"), ("b", "B")]
    assert await in_db(Resolution.objects.count) == 2


async def test_s12_a_request_before_its_call_and_progress_before_the_answer(
    output: Output, owner: Any, in_db: Any
) -> None:
    first = asyncio.create_task(output.approve("shell", {"command": "1"}, call_id="c1"))
    [one] = await pending(in_db)
    await decide(in_db, owner, one)
    await first
    await output.tool("c1", "shell", {"command": "1"}, result="done", done=True)
    second = asyncio.create_task(output.approve("shell", {"command": "2"}, call_id="c2"))
    await pending(in_db)
    await output.tool("c2", "shell", {"command": "2"})
    await output.tool("c3", "shell", {"command": "3"})
    third = asyncio.create_task(output.approve("shell", {"command": "3"}, call_id="c3"))
    waiting = await pending(in_db, 2)
    assert [row.call_id for row in waiting] == ["c2", "c3"]
    for row in waiting:
        await decide(in_db, owner, row)
    await asyncio.gather(second, third)
    calls = [row for row in await items(output, in_db) if row.type == "function_call"]
    assert [row.call_id for row in calls] == ["c1", "c2", "c3"]


async def test_s15_nul_is_the_same_on_every_database(output: Output, owner: Any, chat: Chat, in_db: Any) -> None:
    from agentchat.services import lists

    await output.tool("c", "read", {"path": "a\0b.txt"}, result="start\0middle\0end", done=True)
    await output.text("plain \\u0000 stays")
    await output.flush(done=True)
    await in_db(chats.change, user=owner, chat_id=chat.pk, title="t\0itle")
    taken = await in_db(snapshot.chat_snapshot, owner, chat.pk)
    call, result, text = taken["messages"][1]["items"]
    assert taken["chat"]["title"] == "t␀itle"
    assert json.loads(call["arguments"]) == {"path": "a\0b.txt"}
    assert result["output"][0]["text"] == "start␀middle␀end"
    assert text["content"][0]["text"] == "plain \\u0000 stays"
    assert await in_db(lambda: lists.chats(owner, q="plain").count()) == 1
    assert (await in_db(Message.objects.get, role="assistant")).ended_at is not None


async def test_s30_every_time_carries_its_zone(
    output: Output, owner: Any, chat: Chat, in_db: Any, settings: Any
) -> None:
    settings.TIME_ZONE = "Asia/Tokyo"
    asking = asyncio.create_task(output.approve("shell", {"command": "x"}))
    [item] = await pending(in_db)
    resolution = await decide(in_db, owner, item)
    await asking
    taken = await in_db(snapshot.chat_snapshot, owner, chat.pk)
    call = taken["messages"][1]["items"][0]
    stored = await in_db(Resolution.objects.get)
    assert stored.decided_at == resolution.decided_at
    assert call["resolution"]["decided_at"] == stored.decided_at.isoformat(timespec="microseconds").replace(
        "+00:00", "Z"
    )
    assert all(value.endswith("Z") for key, value in _times(taken))


def _times(value: Any) -> list[tuple[str, str]]:
    if isinstance(value, list):
        return [found for inner in value for found in _times(inner)]
    if not isinstance(value, dict):
        return []
    mine = [(key, inner) for key, inner in value.items() if key.endswith("_at") and inner]
    return mine + [found for inner in value.values() for found in _times(inner)]
