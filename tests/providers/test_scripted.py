"""Scripts: each step does what it says, and a wrong script says what is wrong."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agentchat.providers.base import Turn
from agentchat.providers.scripted import Scripted, ScriptError
from agentchat.providers.scripted.player import STEPS
from agentchat.providers.scripted.provider import find, names
from agentchat.providers.scripted.script import SHAPES, parse
from tests.providers.fake import FakeOutput, deny


async def play(workspace: Path, *steps: Any, output: FakeOutput | None = None) -> FakeOutput:
    text = "\n".join(json.dumps(step) for step in steps)
    return await say(text, workspace, output)


async def say(text: str, workspace: Path, output: FakeOutput | None = None) -> FakeOutput:
    output = output or FakeOutput()
    await Scripted().run(output, Turn("r", text, workspace))
    return output


async def test_text_and_reasoning_are_streamed_in_pieces(tmp_path: Path) -> None:
    output = await play(
        tmp_path, {"reasoning": "abc", "chunk": 2}, {"text": "hello", "chunk": 2, "every": 0}, {"text": "!"}
    )
    said = [(facts["text"], facts["reasoning"]) for facts in output.of("text")]
    assert said == [("ab", True), ("c", True), ("he", False), ("ll", False), ("o", False), ("!", False)]


async def test_a_tool_and_its_output(tmp_path: Path) -> None:
    call = {"id": "c", "name": "read", "arguments": {"path": "x"}}
    end = call | {
        "result": {"lines": 3},
        "done": True,
        "failed": True,
        "native": [1],
        "meta": {"exit_code": 1},
    }
    output = await play(tmp_path, {"tool": call}, {"output": {"id": "c", "text": "abcd"}, "chunk": 2}, {"tool": end})
    assert [kind for kind, _ in output.calls] == ["tool", "tool_output", "tool_output", "tool"]
    first, last = output.of("tool")
    assert not first["done"] and first["result"] is None and output.printed == "abcd"
    assert last["done"] and last["failed"] and last["result"] == {"lines": 3} and last["native"] == [1]


async def test_an_approved_call_ends_with_ok_and_the_final_arguments(tmp_path: Path) -> None:
    final = FakeOutput(lambda *_: {"action": "approve", "arguments": {"command": "edited"}})
    step = {"approve": {"id": "a", "name": "shell", "arguments": {"command": "ls"}, "timeout": 3}}
    output = await play(tmp_path, step, output=final)
    [asked], [end] = output.of("approve"), output.of("tool")
    assert asked["timeout"] == 3 and asked["request"] == {"kind": "command", "title": "ls"}
    assert end["result"] == "ok" and end["done"] and end["arguments"] == {"command": "edited"}
    assert end["call_id"] == asked["call_id"] == "a"


async def test_then_and_else(tmp_path: Path) -> None:
    asked = {"approve": {"name": "x", "arguments": {}, "request": {"kind": "edit"}}}
    step = asked | {"then": [{"text": "yes"}], "else": [{"text": "no"}]}
    approved = await play(tmp_path, step)
    assert approved.said == "yes" and not approved.of("tool")
    assert approved.of("approve")[0]["request"] == {"kind": "edit"}
    assert (await play(tmp_path, step, output=FakeOutput(deny))).said == "no"
    denied = await play(tmp_path, asked, output=FakeOutput(deny))
    assert not denied.of("tool")


async def test_an_edited_call_is_finished_with_what_was_approved(tmp_path: Path) -> None:
    final = FakeOutput(lambda *_: {"action": "approve", "arguments": {"n": 2}})
    then = [{"tool": {"id": "a", "name": "x", "done": True}}]
    output = await play(
        tmp_path, {"approve": {"id": "a", "name": "x", "arguments": {"n": 1}}, "then": then}, output=final
    )
    assert output.of("tool")[0]["arguments"] == {"n": 2}


QUESTION = {"id": "q", "question": "Which?", "header": "H", "options": [{"label": "A"}], "multiple": True}


async def test_a_question_is_asked_and_its_answer_said(tmp_path: Path) -> None:
    answers = {"q": {"choices": ["A"], "text": "and B"}}
    answer = FakeOutput(lambda *_: {"action": "answer", "answers": answers, "arguments": {}})
    output = await play(tmp_path, {"ask": {"questions": [QUESTION]}}, output=answer)
    [asked] = output.of("approve")
    assert asked["name"] == "ask_user" and asked["request"]["kind"] == "question"
    assert asked["request"]["questions"] == [QUESTION]
    assert output.said == "- Which? **A, and B**\n\n" and not output.of("tool")
    silent = await play(tmp_path, {"ask": {"questions": [QUESTION]}}, output=FakeOutput(deny))
    assert "no answer" in silent.said


async def test_parallel_branches_run_at_once(tmp_path: Path) -> None:
    slow = [{"delay": 0.2}, {"text": "slow"}]
    output = await play(tmp_path, {"parallel": [slow, [{"text": "fast"}], slow]}, {"text": "."})
    assert output.said == "fastslowslow."


async def test_an_error_in_a_branch_is_raised_as_itself(tmp_path: Path) -> None:
    step = {"parallel": [[{"hang": True}], [{"parallel": [[{"error": "It broke."}]]}]]}
    async with asyncio.timeout(5):
        with pytest.raises(ScriptError, match=r"^It broke\.$"):
            await play(tmp_path, step)


async def test_notice_plan_usage_state_flush_bytes(tmp_path: Path) -> None:
    output = await play(
        tmp_path,
        {"notice": "N", "level": "bad"},
        {"plan": [{"step": "one", "state": "done"}]},
        {"usage": {"input_tokens": 3}},
        {"state": {"a": 1}},
        {"state": {"b": 2}},
        {"flush": {"done": True}},
        {"bytes": {"id": "b", "name": "big", "count": 100_000}},
        {"delay": 0},
    )
    assert output.of("notice") == [{"text": "N", "level": "bad"}]
    assert output.of("plan") == [{"steps": [{"step": "one", "state": "done"}]}]
    assert output.usage == {"input_tokens": 3} and output.state == {"a": 1, "b": 2}
    assert output.of("flush") == [{"done": True, "force": False, "persist": False}]
    assert len(output.of("tool")[0]["result"]) == 100_000 and output.of("tool")[0]["done"]


async def test_the_counter_counts_each_time(tmp_path: Path) -> None:
    await play(tmp_path, {"counter": "c"}, {"repeat": 3, "steps": [{"counter": "c"}, {"text": "x"}]})
    assert (tmp_path / "c").read_text() == "1\n" * 4
    (tmp_path / "link").symlink_to(tmp_path.parent / "outside")
    with pytest.raises(OSError):
        await play(tmp_path, {"counter": "link"})


async def test_hang_ends_only_by_a_stop(tmp_path: Path) -> None:
    run = asyncio.create_task(play(tmp_path, {"hang": True}))
    await asyncio.sleep(0.05)
    assert not run.done()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run


async def test_a_repeat_can_be_stopped(tmp_path: Path) -> None:
    run = asyncio.create_task(
        play(tmp_path, {"repeat": 100_000, "steps": [{"repeat": 100_000, "steps": [{"state": {}}]}]})
    )
    await asyncio.sleep(0.05)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run


async def test_an_error_ends_the_run_with_its_sentence(tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match=r"^The model is away\.$"):
        await play(tmp_path, {"error": "The model is away."})


async def test_a_script_with_a_mistake_plays_nothing(tmp_path: Path) -> None:
    output = FakeOutput()
    with pytest.raises(ScriptError, match="Line 2"):
        await play(tmp_path, {"counter": "c"}, {"nonsense": 1}, output=output)
    assert not output.calls and not (tmp_path / "c").exists()


WRONG = {
    "Line 1 is not JSON": "{oops",
    "Line 3 is not JSON": '{"text": "a"}\n\n{"text": ',
    "Line 2 is not an object": '{"text": "a"}\n[1]',
    "has none, only txt. The steps are: text, reasoning": '{"txt": "a"}',
    "has none, only nothing": "{}",
    "has 2 of them: text, delay": '{"text": "a", "delay": 1}',
    'Line 1: "text" must be a text': '{"text": 5}',
    'has an unknown "speed". It may have: chunk, every': '{"text": "a", "speed": 1}',
    '"chunk" must be a whole number from 1': '{"text": "a", "chunk": 0}',
    '"tool" lacks "name"': '{"tool": {"id": "a"}}',
    '"tool" has an unknown "ID"': '{"tool": {"id": "a", "name": "b", "ID": 1}}',
    '"done" must be true or false': '{"tool": {"id": "a", "name": "b", "done": 1}}',
    "then, step 2 must have exactly one": ('{"approve": {"name": "a", "arguments": {}}, "then": [{"text": "a"}, {}]}'),
    '"then" must be a list of steps': '{"approve": {"name": "a", "arguments": {}}, "then": {}}',
    "branch 1 must be a list": '{"parallel": [{}]}',
    'lacks "steps"': '{"repeat": 2}',
    '"repeat" must be a whole number from 0 to 100,000': '{"repeat": 100001, "steps": []}',
    "name of a file, without a folder": '{"counter": "../x"}',
    "objects with id, question": '{"ask": {"questions": [{"id": "a"}]}}',
    '"delay" must be a number': '{"delay": true}',
    '"hang" must be true': '{"hang": false}',
    "nested too deeply": '{"parallel": [[' * 30 + '{"delay": 1}' + "]]}" * 30,
    "Line 1 is nested too deeply": '{"parallel": ' + "[" * 100_000,
}


@pytest.mark.parametrize(("words", "text"), WRONG.items(), ids=WRONG)
def test_a_mistake_is_told_with_its_line(words: str, text: str) -> None:
    with pytest.raises(ScriptError) as caught:
        parse(text)
    assert words in str(caught.value) and str(caught.value).startswith("Line ")


async def test_an_unknown_name_is_told_with_the_names(tmp_path: Path) -> None:
    [notice] = (await say("nothing here", tmp_path)).of("notice")
    assert "'nothing'" in notice["text"] and "long-stream, markdown, parallel, rehearsal" in notice["text"]


def test_a_name_may_be_followed_by_words() -> None:
    assert find("Rehearsal, please") is None
    assert find("Rehearsal please") == find("rehearsal")
    assert find("../scripts/rehearsal") is None


@pytest.mark.parametrize("name", ["rehearsal", "markdown", "long-stream", "parallel"])
def test_the_scripts_that_come_with_it_can_be_played(name: str) -> None:
    assert name in names()
    assert parse(str(find(name)))


def test_every_step_has_a_player() -> None:
    assert set(STEPS) == set(SHAPES)


async def test_the_rehearsal_shows_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited = 0.0
    sleep = asyncio.sleep

    async def at_once(seconds: float) -> None:
        nonlocal waited
        waited += seconds
        await sleep(0)

    def decide(name: str, arguments: Any) -> dict[str, Any]:
        answers = {"next": {"choices": ["Stop here"], "text": ""}}
        return {
            "action": "answer" if name == "ask_user" else "approve",
            "answers": answers,
            "arguments": arguments,
        }

    monkeypatch.setattr("agentchat.providers.scripted.player.asyncio.sleep", at_once)
    output = await say("rehearsal", tmp_path, FakeOutput(decide))
    assert {"text", "tool", "tool_output", "approve", "plan"} <= {kind for kind, _ in output.calls}
    assert 10 < waited < 20 and output.usage and "Stop here" in output.said
