"""Every row of the table of what Output does, on whichever database the suite runs."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from agentchat.events import Via
from agentchat.exceptions import Gone, Invalid, MessageEnded
from agentchat.journal import reader
from agentchat.models import Message, OutputItem, Receipt, Resolution, Run
from agentchat.rendering.markdown import render
from agentchat.services import approvals, chats, snapshot
from agentchat.services.approvals import Decision
from agentchat.services.output import Output
from tests.reducer import apply

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.databases]


async def events(in_db: Any, chat: Any, after: int = 0) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while True:
        page = await in_db(reader.read, chat.pk, after)
        found += [json.loads(body) | {"seq": seq} for seq, body in enumerate(page.bodies, page.first)]
        if not page.bodies or page.cursor >= page.last_seq:
            return found
        after = page.cursor


async def pending(in_db: Any, count: int = 1) -> list[OutputItem]:
    """The requests that wait, once there are `count`."""
    for _ in range(500):
        rows = await in_db(lambda: list(OutputItem.objects.pending().order_by("created_at", "position")))
        if len(rows) >= count:
            return rows
        await asyncio.sleep(0.01)
    raise AssertionError("no request came")


async def decide(in_db: Any, user: Any, item: OutputItem, action: str = "approve", **more: Any) -> Resolution:
    decision = Decision(action, more.pop("digest", item.digest), **more)
    return await in_db(approvals.decide, user, item.pk, decision, via=Via.API, proof="test")


async def items(output: Output, in_db: Any) -> list[OutputItem]:
    await output.flush(force=True)
    return await in_db(lambda: list(OutputItem.objects.filter(message=output._writer.message_id).order_by("position")))


async def test_consecutive_text_of_one_kind_is_one_item(output: Output, in_db: Any) -> None:
    for text, reasoning in [("a", True), ("b", True), ("c", False), ("d", False), ("e", True), ("f", False)]:
        await output.text(text, reasoning)
    await output.flush(done=True)
    rows = await in_db(lambda: list(OutputItem.objects.order_by("position").values_list("type", "text", "status")))
    assert [row[:2] for row in rows] == [("reasoning", "ab"), ("message", "cd"), ("reasoning", "e"), ("message", "f")]
    assert {row[2] for row in rows} == {"completed"}
    assert output.content == "cd\n\nf"
    assert output.items[1]["content"] == [{"type": "output_text", "text": "cd"}]
    message = await in_db(Message.objects.get, pk=output._writer.message_id)
    assert (message.text, message.ended_at is not None) == ("cd\n\nf", True)


async def test_text_after_done_is_an_error(output: Output) -> None:
    await output.text("a")
    await output.flush(done=True)
    with pytest.raises(MessageEnded):
        await output.text("b")
    with pytest.raises(MessageEnded):
        await output.tool("c", "x", {})


async def test_a_tool_called_twice_with_one_id_is_two_calls(output: Output, in_db: Any) -> None:
    await output.tool("s:0", "search", {"q": "a"})
    await output.tool("s:0", "search", {"q": "a"}, result="A", done=True)
    await output.tool("s:0", "search", {"q": "b"})
    await output.tool("s:0", "search", {"q": "b"}, result="B", done=True)
    rows = await items(output, in_db)
    assert [(row.type, row.arguments or row.text) for row in rows] == [
        ("function_call", '{"q": "a"}'),
        ("function_call_output", "A"),
        ("function_call", '{"q": "b"}'),
        ("function_call_output", "B"),
    ]
    assert [rows[1].output_of_id, rows[3].output_of_id] == [rows[0].pk, rows[2].pk]


async def test_the_same_result_again_replaces_the_first(output: Output, in_db: Any) -> None:
    await output.tool("c", "x", {"a": 1}, result="first", done=True)
    await output.tool("c", "x", {"a": 1}, result="second", done=True)
    rows = await items(output, in_db)
    assert [row.text for row in rows] == ["", "second"]


async def test_a_result_that_is_not_json_is_converted_and_arguments_are_refused(output: Output, in_db: Any) -> None:
    await output.tool("c", "x", {}, native={"o": object(), "nan": float("nan")}, result={1, 2}, done=True)
    with pytest.raises(Invalid):
        await output.tool("d", "x", {"o": object()})
    with pytest.raises(Invalid):
        await output.tool("e", "x", {"n": 2**60})
    rows = await items(output, in_db)
    assert [row.type for row in rows] == ["function_call", "function_call_output"]
    assert json.loads(rows[1].text) == [1, 2]
    assert rows[0].native["nan"] == "nan" and rows[0].native["o"].startswith("<object")


async def test_nul_bytes_surrogates_and_a_split_emoji_are_stored_and_sent_the_same(
    output: Output, chat: Any, owner: Any, in_db: Any
) -> None:
    for piece in ["a\0b", "\ud83d", "\ude00", "\udc00x", "\ud83d"]:
        await output.text(piece)
    await output.tool("n\0ul", "x", {"a": "\0\ud800"}, result="r\0", done=True)
    await output.flush(done=True)
    rows = await in_db(lambda: list(OutputItem.objects.order_by("position")))
    assert rows[0].text == "a␀b😀\ufffdx\ufffd"
    assert (rows[1].call_id, json.loads(rows[1].arguments)["a"]) == ("n␀ul", "\0\ufffd")
    assert rows[2].text == "r␀"
    taken = await in_db(snapshot.chat_snapshot, owner, chat.pk)
    assert taken["messages"][1]["items"][0]["content"][0]["text"] == rows[0].text
    assert "\0" not in json.dumps(taken, ensure_ascii=False)


async def test_a_5_mb_result_is_sent_once_as_head_tail_and_size(
    output: Output, chat: Any, owner: Any, in_db: Any
) -> None:
    text = "".join(f"{n:09d}\n" for n in range(500_000))
    await output.tool("c", "x", {})
    await output.tool("c", "x", {}, result=text, done=True)
    for n in range(200):
        await output.text(f"token{n} ")
    await output.flush(done=True)
    sent = sum(len(json.dumps(event)) for event in await events(in_db, chat))
    assert sent < 100_000
    item = (await in_db(snapshot.chat_snapshot, owner, chat.pk))["messages"][1]["items"][1]
    assert item["bytes"] == 5_000_000
    assert item["output"][0]["text"] == text[:8000] + text[-8000:]
    assert item["cut"] == {"head": 8000, "omitted": 5_000_000 - 16_000}
    assert await in_db(snapshot.full_text, owner, item["id"]) == text


async def test_streamed_output_stays_when_the_result_is_none(output: Output, in_db: Any) -> None:
    await output.tool("c", "shell", {"command": "x"})
    await output.tool_output("c", "one\n")
    await output.tool_output("c", "two\n")
    await output.tool("c", "shell", {"command": "x"}, done=True, meta={"exit_code": 3}, failed=True)
    rows = await items(output, in_db)
    assert [(row.text, row.status) for row in rows] == [("", "failed"), ("one\ntwo\n", "failed")]
    assert rows[1].meta == {"exit_code": 3}
    with pytest.raises(Invalid):
        await output.tool_output("c", "late")


async def test_everything_is_in_the_database_without_a_flush(output: Output, chat: Any, in_db: Any) -> None:
    """The tail of a burst too: the reference never sends it."""
    await output.text("start ")
    await asyncio.sleep(0.05)
    for n in range(20):
        await output.text(f"{n} ")
    await asyncio.sleep(0.3)
    found = [event for event in await events(in_db, chat) if event["kind"] == "item.delta"]
    assert "".join(event["text"] for event in found) == "start " + "".join(f"{n} " for n in range(20))


async def test_usage_is_set_and_not_added(output: Output, in_db: Any) -> None:
    output.usage = {"input_tokens": 3}
    for done in (False, False, True):
        await output.save(done)
    message = await in_db(Message.objects.get, pk=output._writer.message_id)
    assert message.usage == {"input_tokens": 3}


async def test_state_cannot_override_the_claims_and_expires(output: Output, owner: Any, chat: Any, in_db: Any) -> None:
    import jwt
    from django.conf import settings

    from agentchat.services import agent_state

    output.state |= {"user": "somebody else", "purpose": "admin", "cwd": "/x"}
    await output.save(done=True)
    token = (await in_db(Message.objects.get, pk=output._writer.message_id)).meta["agent"]
    claims = jwt.decode(token, settings.SECRET_KEY, ["HS256"])
    assert (claims["user"], claims["purpose"]) == (str(owner.pk), "agent-state")
    assert claims["exp"] > claims["iat"] and jwt.get_unverified_header(token)["kid"]
    assert agent_state.read(token, user_id=owner.pk, chat_id=chat.pk)["cwd"] == "/x"
    assert agent_state.read(token, user_id=owner.pk, chat_id="other") == {}
    assert agent_state.read(token + "x", user_id=owner.pk, chat_id=chat.pk) == {}


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


async def test_a_new_output_goes_on_after_what_is_there(output: Output, chat: Any, owner: Any, in_db: Any) -> None:
    await output.text("one ")
    await output.tool("c", "x", {})
    await output.flush(force=True)
    second = Output({"chat_id": chat.pk, "message_id": output._writer.message_id}, owner)
    await second.tool("c", "x", {}, result="r", done=True)
    await second.text("two")
    await second.flush(done=True)
    rows = await in_db(lambda: list(OutputItem.objects.order_by("position").values_list("type", "text")))
    assert rows == [("message", "one "), ("function_call", ""), ("function_call_output", "r"), ("message", "two")]


async def test_text_that_goes_on_in_a_new_output_is_rendered_whole(
    output: Output, chat: Any, owner: Any, in_db: Any
) -> None:
    await output.text("# One\n\ntwo\n\n- three\n")
    await output.flush(force=True)
    second = Output({"chat_id": chat.pk, "message_id": output._writer.message_id}, owner)
    await second.text("- four\n\nfive")
    await second.flush(done=True)
    item = await in_db(OutputItem.objects.get)
    assert item.html == render(item.text)


async def test_a_missing_message_is_an_error(journal: Any, chat: Any, owner: Any) -> None:
    import uuid

    with pytest.raises(ValueError):
        await Output({"chat_id": chat.pk, "message_id": uuid.uuid4()}, owner).text("x")


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
