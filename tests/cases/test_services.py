"""Faults between writers, readers and deciders, on whichever database the suite runs."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client

from agentchat.events import Via
from agentchat.exceptions import AlreadyResolved, Invalid
from agentchat.models import Chat, OutputItem, Receipt, Resolution, Run, clock
from agentchat.services import approvals, chats, runs, snapshot, waiting
from agentchat.services.approvals import Decision
from agentchat.services.output import Output
from tests.cases.helpers import at_once
from tests.core.helpers import decide, events, items, pending
from tests.reducer import apply

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.databases]

ROUNDS = 50


def attempt(user: Any, item: OutputItem, action: str) -> Any:
    try:
        return approvals.decide(user, item.pk, Decision(action, item.digest), via=Via.API, proof=action)
    except AlreadyResolved as refused:
        return refused
    finally:
        connection.close()


async def test_s03_fifty_times_two_answers_at_once_leave_one(output: Output, owner: Any, in_db: Any) -> None:
    """Yes and no let go together: one of them is stored, the agent gets that one once, the other learns of it."""
    wins = {"approve": 0, "reject": 0}
    for number in range(ROUNDS):
        asking = asyncio.create_task(output.approve("shell", {"command": str(number)}, call_id=f"c{number}"))
        [item] = await pending(in_db)
        answers = await asyncio.to_thread(
            at_once, *(lambda action=action, item=item: attempt(owner, item, action) for action in wins)
        )
        [won] = [answer for answer in answers if isinstance(answer, Resolution)]
        [lost] = [answer for answer in answers if isinstance(answer, AlreadyResolved)]
        told = lost.context["resolution"]
        assert (told["id"], told["action"], told["decided_by"]) == (won.pk, won.action, "ada")
        assert told["decided_at"]
        got = await asyncio.wait_for(asking, 10)
        assert (got["action"], got["arguments"]) == (won.action, {"command": str(number)})
        wins[won.action] += 1
    assert sum(wins.values()) == await in_db(Resolution.objects.count) == await in_db(Receipt.objects.count) == ROUNDS


async def test_s03_the_same_yes_from_two_tabs_at_once_is_no_conflict(output: Output, owner: Any, in_db: Any) -> None:
    """A doubled click must not look like a quarrel."""
    for number in range(10):
        asking = asyncio.create_task(output.approve("shell", {"command": str(number)}))
        [item] = await pending(in_db)
        answers = await asyncio.to_thread(at_once, *[lambda item=item: attempt(owner, item, "approve")] * 2)
        assert answers[0].pk == answers[1].pk
        assert (await asyncio.wait_for(asking, 10))["action"] == "approve"


async def test_s04_a_writer_that_read_earlier_does_not_bring_the_old_state_back(
    output: Output, owner: Any, chat: Chat, in_db: Any
) -> None:
    """Whoever writes after a pause must write only what is theirs, not everything as they once saw it."""
    asking = asyncio.create_task(output.approve("shell", {"command": "x"}, call_id="c"))
    [item] = await pending(in_db)
    run = await in_db(Run.objects.get)
    late = Output({"chat_id": chat.pk, "message_id": item.message_id, "task_id": run.pk}, owner)
    await late._writer.ready()
    made = await decide(in_db, owner, item, "reject", reason="not this")
    await asking
    await in_db(chats.change, user=owner, chat_id=chat.pk, title="Renamed")
    late.usage = {"input_tokens": 1}
    for n in range(200):
        await late.text(f"{n} ")
    await late.save()
    await late.flush(done=True)
    taken = await in_db(snapshot.chat_snapshot, owner, chat.pk)
    call, text = taken["messages"][1]["items"]
    assert taken["chat"]["title"] == "Renamed"
    assert (call["status"], call["resolution"]["reason"], call["resolution"]["hash"]) == (
        "rejected",
        "not this",
        made.hash,
    )
    assert call["resolution"]["receipt"] is not None
    assert text["content"][0]["text"] == "".join(f"{n} " for n in range(200))
    assert (await in_db(Run.objects.get)).status == "running"


async def test_s04_a_rename_while_a_run_is_saved_is_kept(output: Output, owner: Any, chat: Chat, in_db: Any) -> None:
    """The title changes in one tab while the journal stores the other's text, both from the same start."""
    for number in range(20):
        await output.text(f"{number} ")
        title = f"Title {number}"

        def rename(title: str = title) -> Any:
            try:
                return chats.change(user=owner, chat_id=chat.pk, title=title)
            finally:
                connection.close()

        await asyncio.gather(output.save(), asyncio.to_thread(rename))
        assert (await in_db(Chat.objects.get)).title == title
    taken = await in_db(snapshot.chat_snapshot, owner, chat.pk)
    assert taken["messages"][1]["items"][0]["content"][0]["text"] == "".join(f"{n} " for n in range(20))


@pytest.mark.parametrize("action", ["approve", "reject"])
async def test_s12_a_result_before_the_answer_leaves_the_request_answerable(
    output: Output, owner: Any, in_db: Any, action: str
) -> None:
    """An agent may say that a call ended while its request still waits: it must not wait for ever then."""
    asking = asyncio.create_task(output.approve("shell", {"command": "1"}, call_id="c1"))
    [item] = await pending(in_db)
    await output.tool("c1", "shell", {"command": "1"}, result="early", done=True)
    await output.flush(force=True)
    [still] = await pending(in_db)
    assert (still.pk, still.digest) == (item.pk, item.digest)
    with pytest.raises(Invalid):
        await output.tool_output("c1", "after the end")
    await decide(in_db, owner, item, action)
    got = await asyncio.wait_for(asking, 10)
    assert got["action"] == action
    rows = await items(output, in_db)
    assert [(row.type, row.call_id) for row in rows] == [("function_call", "c1"), ("function_call_output", "c1")]
    assert rows[0].status == ("completed" if action == "approve" else "rejected")
    assert rows[1].text == "early"


async def test_s12_progress_does_not_change_what_was_asked(output: Output, owner: Any, in_db: Any) -> None:
    """Until somebody decides, other arguments for the same call must not slip under the card."""
    asking = asyncio.create_task(output.approve("shell", {"command": "ls"}, call_id="c2"))
    [item] = await pending(in_db)
    await output.tool("c2", "shell", {"command": "rm -rf /"})
    await output.flush(force=True)
    [still] = await pending(in_db)
    assert (still.arguments, still.digest, still.status) == (item.arguments, item.digest, "pending")
    await decide(in_db, owner, item)
    assert (await asking)["arguments"] == {"command": "ls"}


HREF = re.compile(r'href="([^"]*)"')
MARKDOWN = (
    "Text first.\n\n````markdown\nouter\n```sh\nls\n```\nstill outer\n````\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n"
    "A [link](https://a.example/x) here.\n\n```py\nnever = 'closed'\n"
)


async def test_s20_at_no_moment_a_half_address_is_a_link(output: Output, chat: Chat, owner: Any, in_db: Any) -> None:
    """What is drawn while it streams must hold at the end: blocks are added, never taken back, and links are whole."""
    before = await in_db(snapshot.chat_snapshot, owner, chat.pk)
    for start in range(0, len(MARKDOWN), 3):
        await output.text(MARKDOWN[start : start + 3])
        if start % 30 == 0:
            await output.flush(force=True)
    await output.tool("c", "read", {}, result="x", done=True)
    await output.text("Later, *as usual*.")
    await output.flush(done=True)
    state, drawn = before, ""
    for event in await events(in_db, chat, before["cursor"]):
        state = apply(state, [event])
        found = state["messages"][1]["items"]
        if found:
            assert found[0]["html"].startswith(drawn)
            drawn = found[0]["html"]
            assert set(HREF.findall(drawn)) <= {"https://a.example/x"}
    assert set(HREF.findall(drawn)) == {"https://a.example/x"}
    after = await in_db(snapshot.chat_snapshot, owner, chat.pk)
    assert state == after
    rows = after["messages"][1]["items"]
    assert rows[0]["html"].count("<pre") == 2 and "never = " in rows[0]["html"]
    assert rows[-1]["html"].strip() == "<p>Later, <em>as usual</em>.</p>"


MOMENT = datetime(2026, 12, 31, 23, 30, tzinfo=UTC)
WIRE = "2026-12-31T23:30:00.000000Z"


async def test_s30_one_instant_in_api_page_and_admin_of_a_server_in_tokyo(
    output: Output, owner: Any, chat: Chat, in_db: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the server stands must move no record: half past eleven at night stays that, on the last day of its year."""
    settings.TIME_ZONE = "Asia/Tokyo"
    asking = asyncio.create_task(output.approve("shell", {"command": "x"}))
    [item] = await pending(in_db)
    with monkeypatch.context() as frozen:
        frozen.setattr(clock, "now", lambda: MOMENT)
        await decide(in_db, owner, item)
    await asking
    assert (await in_db(Resolution.objects.get)).decided_at == MOMENT
    await in_db(look_at_times, chat, item)


def look_at_times(chat: Chat, item: OutputItem) -> None:
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("staff", password="x"))
    resolution = Resolution.objects.get()
    listed = client.get("/admin/agentchat/resolution/").content.decode()
    shown = client.get(f"/admin/agentchat/resolution/{resolution.pk}/change/").content.decode()
    for page in (listed, shown):
        assert re.search(r"Jan(\.|uary)? 1, 2027, 8:30 a\.m\.|2027-01-01 08:30(:00)?", page)
        assert "Asia/Tokyo" in page or "JST" in page or "+09:00" in page, "the admin does not name its zone"
    client.force_login(chat.owner)
    for path in (f"/api/v1/approvals/{item.pk}/", f"/api/v1/chats/{chat.pk}/snapshot/", "/api/v1/resolutions/",
                 f"/api/v1/chats/{chat.pk}/events/"):  # fmt: skip
        text = client.get(path).content.decode()
        assert WIRE in text, path
        assert all(moment.endswith("Z") for moment in re.findall(r'_at": ?"([^"]+)"', text)), path
    page = client.get(f"/chats/{chat.pk}/").content.decode()
    assert f'datetime="{WIRE}"' in page


async def test_s06_after_a_stop_nobody_waits(output: Output, owner: Any, in_db: Any) -> None:
    """Whatever was asked at once must be settled at once: no task goes on waiting for an answer that cannot come."""
    asking = [asyncio.create_task(output.approve("shell", {"command": id}, call_id=id)) for id in "abc"]
    await pending(in_db, 3)
    assert len(waiting._waiters) == 3
    run = await in_db(Run.objects.get)
    await in_db(runs.stop, owner, run.pk)
    for one in asking:
        one.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    assert not waiting._waiters
    stored = await in_db(lambda: list(Resolution.objects.values_list("cause", "decided_by", "decided_by_name")))
    assert stored == [("stopped", None, "")] * 3
    assert await in_db(OutputItem.objects.pending().count) == 0
