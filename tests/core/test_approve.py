"""Asking people: what `Output.approve` stores, shows, waits for and gives back."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from django.db import connection

from agentchat.exceptions import Gone
from agentchat.journal import store
from agentchat.models import OutputItem, Receipt, Resolution, Run
from agentchat.services import chats, snapshot
from agentchat.services.output import Output
from tests.core.helpers import decide, events, items, pending
from tests.reducer import apply

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.databases]


async def test_approve_returns_the_decision_and_leaves_call_and_output(
    output: Output, owner: Any, chat: Any, in_db: Any
) -> None:
    asking = asyncio.create_task(output.approve("shell", {"command": "rm x"}))
    [item] = await pending(in_db)
    assert (await in_db(Run.objects.get)).status == "waiting"
    await decide(in_db, owner, item)
    got = await asking
    assert (got["action"], got["cause"], got["arguments"]) == ("approve", "person", {"command": "rm x"})
    rows = await items(output, in_db)
    assert [(row.type, row.status) for row in rows] == [
        ("function_call", "completed"),
        ("function_call_output", "completed"),
    ]
    assert rows[0].call_id.startswith("approval_")
    assert json.loads(rows[1].text)["action"] == "approve"
    assert (await in_db(Run.objects.get)).status == "running"
    assert (await in_db(Receipt.objects.get)).resolution_id == (await in_db(Resolution.objects.get)).pk


async def test_the_card_is_stored_before_it_is_shown(output: Output, chat: Any, journal: Any, in_db: Any) -> None:
    """P1: whoever hears of a request finds it in the database."""
    outbox = journal.hub.attach(chat.pk, 0)
    seen: list[int] = []

    def look() -> None:
        seen.append(OutputItem.objects.pending().count())

    pushed = outbox.push

    def push(first: int, last: int, text: str) -> None:
        if "approval.requested" in text:
            threads.append(asyncio.ensure_future(in_db(look)))
        pushed(first, last, text)

    threads: list[Any] = []
    outbox.push = push  # type: ignore[method-assign]
    asking = asyncio.create_task(output.approve("shell", {"command": "x"}))
    await pending(in_db)
    await asyncio.sleep(0.05)
    await asyncio.gather(*threads)
    assert seen == [1]
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)


async def test_a_wait_that_is_cancelled_before_it_is_stored_leaves_no_card(output: Output, in_db: Any) -> None:
    """At every step of the way there."""
    for steps in range(12):
        asking = asyncio.create_task(output.approve("shell", {"n": steps}))
        for _ in range(steps):
            await asyncio.sleep(0)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await output.flush(force=True)
        assert await in_db(OutputItem.objects.pending().count) == 0


async def test_given_a_call_id_the_card_belongs_to_the_call(output: Output, owner: Any, in_db: Any) -> None:
    await output.tool("c1", "shell", {"command": "x"})
    asking = asyncio.create_task(output.approve("shell", {"command": "x"}, call_id="c1"))
    [item] = await pending(in_db)
    await decide(in_db, owner, item)
    assert (await asking)["action"] == "approve"
    await output.tool("c1", "shell", {"command": "x"}, result="out", done=True)
    rows = await items(output, in_db)
    assert [(row.type, row.status, row.text) for row in rows] == [
        ("function_call", "completed", ""),
        ("function_call_output", "completed", "out"),
    ]


async def test_full_access_answers_by_itself_and_is_audited(chat: Any, owner: Any, journal: Any, in_db: Any) -> None:
    from tests.core.conftest import make_output

    await in_db(chats.change, user=owner, chat_id=chat.pk, approval_mode="full")
    output = await make_output(chat, owner, in_db)
    got = await output.approve("shell", {"command": "x"})
    assert (got["action"], got["cause"]) == ("approve", "mode")
    resolution = await in_db(Resolution.objects.get)
    assert (resolution.cause, resolution.decided_by_id, resolution.rule) == ("mode", None, "full")
    assert [row.type for row in await items(output, in_db)] == ["function_call", "function_call_output"]
    asking = asyncio.create_task(
        output.approve("ask_user", {"q": 1}, request={"questions": [{"id": "q", "options": []}]})
    )
    [item] = await pending(in_db)
    await decide(in_db, owner, item, "answer", answers={"q": "blue"})
    assert (await asking)["answers"] == {"q": {"choices": [], "text": "blue"}}


async def test_timeout_is_nobodys_no(output: Output, owner: Any, in_db: Any) -> None:
    got = await output.approve("shell", {"command": "x"}, timeout=0.1)
    assert (got["action"], got["timed_out"], got["cause"]) == ("reject", True, "timeout")
    resolution = await in_db(Resolution.objects.get)
    assert (resolution.cause, resolution.decided_by, resolution.decided_via) == ("timeout", None, "system")


async def test_an_edited_command_is_what_may_run(output: Output, owner: Any, in_db: Any) -> None:
    asking = asyncio.create_task(output.approve("shell", {"command": "rm -rf /"}, call_id="c"))
    [item] = await pending(in_db)
    await decide(in_db, owner, item, arguments={"command": "ls"})
    got = await asking
    assert (got["arguments"], got["edited"]) == ({"command": "ls"}, True)
    resolution = await in_db(Resolution.objects.get)
    assert resolution.digest == item.digest != resolution.final_digest == got["digest"]


async def test_a_deleted_chat_ends_the_wait_with_an_error(output: Output, owner: Any, chat: Any, in_db: Any) -> None:
    asking = asyncio.create_task(output.approve("shell", {"command": "x"}))
    await pending(in_db)
    await in_db(chats.delete, user=owner, chat_id=chat.pk)
    with pytest.raises(Gone):
        await asyncio.wait_for(asking, 5)
    with pytest.raises(Gone):
        await output.flush(force=True)


async def test_a_lost_connection_ends_the_wait_and_closes_the_card(
    chat: Any, owner: Any, journal: Any, in_db: Any
) -> None:
    from tests.core.conftest import make_output

    gone = asyncio.Event()

    def check() -> None:
        if gone.is_set():
            raise ConnectionError("the agent is gone")

    output = await make_output(chat, owner, in_db, check_connection=check)
    asking = asyncio.create_task(output.approve("shell", {"command": "x"}))
    await pending(in_db)
    gone.set()
    with pytest.raises(ConnectionError):
        await asyncio.wait_for(asking, 5)
    assert (await in_db(Resolution.objects.get)).cause == "agent_gone"


async def test_a_cancelled_wait_closes_the_card(output: Output, in_db: Any) -> None:
    asking = asyncio.create_task(output.approve("shell", {"command": "x"}))
    await pending(in_db)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert (await in_db(Resolution.objects.get)).cause == "agent_gone"


async def test_twenty_approvals_at_once_stay_consistent(output: Output, owner: Any, chat: Any, in_db: Any) -> None:
    before = await in_db(snapshot.chat_snapshot, owner, chat.pk)
    asking = [asyncio.create_task(output.approve("t", {"n": n}, call_id=f"c{n}")) for n in range(20)]
    rows = await pending(in_db, 20)
    actions = {row.call_id: "approve" if index % 2 else "reject" for index, row in enumerate(rows)}
    for row in reversed(rows):
        await decide(in_db, owner, row, actions[row.call_id])
    got = await asyncio.gather(*asking)
    assert [one["action"] for one in got] == [actions[f"c{n}"] for n in range(20)]
    assert all(one["arguments"] == {"n": n} for n, one in enumerate(got))
    await output.flush(force=True)
    after = await in_db(snapshot.chat_snapshot, owner, chat.pk)
    assert apply(before, await events(in_db, chat, before["cursor"])) == after


async def test_the_use_of_a_decision_waits_for_the_disk(
    output: Output, owner: Any, in_db: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On SQLite the journal does not, except for receipts: a power failure must not let a decision be used twice."""
    said: list[str] = []
    execute = store._execute
    monkeypatch.setattr(store, "_execute", lambda db, sql, *more: (said.append(sql), execute(db, sql, *more))[1])
    asking = asyncio.create_task(output.approve("shell", {"command": "x"}))
    [item] = await pending(in_db)
    await output.text("meanwhile")
    await output.flush(force=True)
    assert not [sql for sql in said if "synchronous" in sql]
    await decide(in_db, owner, item)
    await asking
    vendor = await in_db(lambda: connection.vendor)
    at = next(number for number, sql in enumerate(said) if "agentchat_receipt" in sql)
    levels = [sql for sql in said[:at] if "synchronous" in sql], [sql for sql in said[at:] if "synchronous" in sql]
    assert vendor != "sqlite" or levels == (["PRAGMA synchronous=FULL"], ["PRAGMA synchronous=NORMAL"])
