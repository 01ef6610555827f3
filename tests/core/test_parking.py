"""Runs that are given back, and go on elsewhere after the decision."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model

from agentchat.events import RunStatus
from agentchat.exceptions import Gone, NotFound
from agentchat.models import Chat, Event, Message, OutputItem, Receipt, Resolution, Run, clock
from agentchat.services import approvals, chats, parking, runs
from agentchat.services.output import Output
from tests.core.helpers import decide, pending

pytestmark = pytest.mark.databases
COMMAND = {"command": "make"}


async def asked(output: Output, in_db: Any, number: int = 1) -> asyncio.Task[Any]:
    asking = asyncio.create_task(output.approve("shell", COMMAND, call_id=f"c{number}"))
    await pending(in_db, number)
    return asking


async def given_back(output: Output, chat: Chat, in_db: Any, *asking: asyncio.Task[Any]) -> bool:
    """What the host does with a run that only waits."""
    output.leave_requests_open()
    for task in asking:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    run = await in_db(Run.objects.get, chat=chat)
    return bool(await in_db(parking.park, run.pk, run.worker))


async def taken_again(chat: Chat, owner: Any, in_db: Any) -> Output:
    run = await in_db(runs.claim, "test:another")
    return Output({"chat_id": chat.pk, "message_id": run.message_id, "task_id": run.pk, "fence": run.fence}, owner)


async def test_the_decision_reaches_whoever_goes_on_and_is_used_once(
    output: Output, chat: Chat, owner: Any, in_db: Any
) -> None:
    asking = await asked(output, in_db)
    assert await given_back(output, chat, in_db, asking)
    run = await in_db(Run.objects.get, chat=chat)
    assert (run.status, run.worker) == (RunStatus.WAITING, "")
    [item] = await pending(in_db)
    await decide(in_db, owner, item)
    run = await in_db(Run.objects.get, chat=chat)
    assert (run.status, run.priority) == (RunStatus.QUEUED, 1)
    second = await taken_again(chat, owner, in_db)
    assert (await second.approve("shell", COMMAND, call_id="other"))["action"] == "approve"
    await second.tool("other", "shell", COMMAND, result="ok", done=True)
    await second.flush(done=True)
    calls = await in_db(lambda: list(OutputItem.objects.requests().values_list("call_id", "status")))
    assert calls == [("other", "completed")]
    assert await in_db(Receipt.objects.count) == await in_db(Resolution.objects.count) == 1


async def test_what_is_decided_before_it_is_given_back_queues_it_at_once(
    output: Output, chat: Chat, owner: Any, in_db: Any
) -> None:
    asking = await asked(output, in_db)
    output.leave_requests_open()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    [item] = await pending(in_db)
    await decide(in_db, owner, item, "reject")
    run = await in_db(Run.objects.get, chat=chat)
    assert await in_db(parking.park, run.pk, run.worker)
    second = await taken_again(chat, owner, in_db)
    assert (await second.approve("shell", COMMAND))["action"] == "reject"


async def test_other_arguments_are_another_request(output: Output, chat: Chat, owner: Any, in_db: Any) -> None:
    assert await given_back(output, chat, in_db, await asked(output, in_db))
    await decide(in_db, owner, (await pending(in_db))[0])
    second = await taken_again(chat, owner, in_db)
    asking = asyncio.create_task(second.approve("shell", {"command": "make clean"}))
    [item] = await pending(in_db)
    assert item.arguments == '{"command": "make clean"}'
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)


async def test_equal_requests_are_matched_in_their_order(output: Output, chat: Chat, owner: Any, in_db: Any) -> None:
    asking = [await asked(output, in_db, number) for number in (1, 2)]
    assert await given_back(output, chat, in_db, *asking)
    first, other = await pending(in_db, 2)
    await decide(in_db, owner, other, "reject")
    await decide(in_db, owner, first)
    second = await taken_again(chat, owner, in_db)
    assert [(await second.approve("shell", COMMAND))["action"] for _ in range(2)] == ["approve", "reject"]


async def test_what_works_is_not_given_back(output: Output, chat: Chat, owner: Any, in_db: Any) -> None:
    """Nobody can know how much of it was done."""
    asking = await asked(output, in_db)
    await output.tool("c2", "read", {})
    await output.flush(force=True)
    assert not await given_back(output, chat, in_db, asking)
    assert (await in_db(Run.objects.get, chat=chat)).worker


async def test_whoever_says_that_nobody_could_go_on_is_not_given_back(output: Output, chat: Chat, in_db: Any) -> None:
    await output.cannot_resume()
    assert not await given_back(output, chat, in_db, await asked(output, in_db))


@pytest.mark.parametrize("end", ["given back", "taken again", "ended"])
async def test_whoever_lost_the_run_writes_nothing(
    output: Output, chat: Chat, owner: Any, in_db: Any, end: str
) -> None:
    """Text, calls, requests and receipts: not one event and not one row."""
    asking = await asked(output, in_db)
    run = await in_db(Run.objects.get, chat=chat)
    if end == "ended":
        await in_db(runs.finish, run.pk, RunStatus.INTERRUPTED, "died")
    else:
        assert await in_db(parking.park, run.pk, run.worker)
    await decide(in_db, owner, (await pending(in_db))[0]) if end == "taken again" else None
    second = await taken_again(chat, owner, in_db) if end == "taken again" else None
    before = await in_db(lambda: (Event.objects.count(), OutputItem.objects.count(), Receipt.objects.count()))
    for act in (output.text("late"), output.flush(force=True), output.notice("late"), output.approve("shell", {})):
        with pytest.raises(Gone, match=r"taken by another worker|could not"):
            await act
            await output.flush(force=True)
    with pytest.raises(Gone):
        asking.cancel() if end == "given back" else None
        try:
            await asking
        except asyncio.CancelledError:
            raise Gone from None
    assert await in_db(lambda: (Event.objects.count(), OutputItem.objects.count(), Receipt.objects.count())) == before
    if second:
        assert (await second.approve("shell", COMMAND))["action"] == "approve"


async def test_a_stop_ends_what_nobody_holds(output: Output, chat: Chat, owner: Any, in_db: Any) -> None:
    assert await given_back(output, chat, in_db, await asked(output, in_db))
    run = await in_db(Run.objects.get, chat=chat)
    stopped = await in_db(runs.stop, owner, run.pk)
    assert stopped.status == RunStatus.CANCELLED
    row = await in_db(Resolution.objects.get)
    assert (row.action, row.cause) == ("reject", "stopped")
    assert await in_db(runs.claim, "test:worker") is None


async def test_a_stop_after_the_decision_takes_no_message_away(
    output: Output, chat: Chat, owner: Any, in_db: Any
) -> None:
    assert await given_back(output, chat, in_db, await asked(output, in_db))
    await decide(in_db, owner, (await pending(in_db))[0])
    run = await in_db(Run.objects.get, chat=chat)
    assert (await in_db(runs.stop, owner, run.pk)).status == RunStatus.CANCELLED
    assert await in_db(Message.objects.filter(removed_at=None).count) == 2
    assert await in_db(OutputItem.objects.filter(status="in_progress").count) == 0


async def test_it_expires_although_nobody_holds_it(output: Output, chat: Chat, in_db: Any) -> None:
    asking = asyncio.create_task(output.approve("shell", COMMAND, timeout=3600))
    [item] = await pending(in_db)
    assert await given_back(output, chat, in_db, asking)
    await in_db(approvals.expire)
    assert not await in_db(Resolution.objects.exists)
    late = await in_db(clock.now) - timedelta(seconds=1)
    await in_db(OutputItem.objects.filter(pk=item.pk).update, expires_at=late)
    await in_db(approvals.expire)
    assert (await in_db(Resolution.objects.get)).cause == "timeout"
    assert (await in_db(Run.objects.get, chat=chat)).status == RunStatus.QUEUED


async def test_a_chat_that_is_deleted_meanwhile_ends_it(output: Output, chat: Chat, owner: Any, in_db: Any) -> None:
    assert await given_back(output, chat, in_db, await asked(output, in_db))
    await in_db(chats.delete, user=owner, chat_id=chat.pk)
    assert (await in_db(Run.objects.get, chat=chat)).status == RunStatus.CANCELLED
    assert (await in_db(Resolution.objects.get)).cause == "stopped"
    assert await in_db(runs.claim, "test:worker") is None


async def test_what_was_asked_before_goes_before_what_was_said_since(
    output: Output, chat: Chat, owner: Any, in_db: Any
) -> None:
    assert await given_back(output, chat, in_db, await asked(output, in_db))
    _, later = await in_db(chats.post, user=owner, chat_id=chat.pk, text="and then")
    assert await in_db(runs.claim, "test:worker") is None, "the chat is still at work"
    await decide(in_db, owner, (await pending(in_db))[0])
    first = await in_db(runs.claim, "test:worker")
    assert first.pk != later.pk and first.attempt == 2


async def test_only_the_person_decides_what_waits(output: Output, chat: Chat, in_db: Any) -> None:
    assert await given_back(output, chat, in_db, await asked(output, in_db))
    other = await in_db(get_user_model().objects.create_user, "eve")
    with pytest.raises(NotFound):
        await decide(in_db, other, (await pending(in_db))[0])
    assert (await in_db(Run.objects.get, chat=chat)).status == RunStatus.WAITING
