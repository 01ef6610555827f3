"""Every row of the table of what Output does, on whichever database the suite runs."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from agentchat.exceptions import Invalid, MessageEnded
from agentchat.models import Message, OutputItem
from agentchat.rendering.markdown import render
from agentchat.services import snapshot
from agentchat.services.output import Output
from tests.core.helpers import events, items

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.databases]


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
    kept = await in_db(agent_state.read, token, user_id=owner.pk, chat_id=chat.pk)
    assert kept["cwd"] == "/x"


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
