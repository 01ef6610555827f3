"""Playing a script on an Output: one method for each kind of step."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from agentchat.providers.base import Output
from agentchat.providers.scripted.place import Place
from agentchat.providers.scripted.script import SHAPES, ScriptError, Step, kind

Asked = dict[str, Any]


PLACE = "place"
"""The key of the state under which the place is kept while something waits."""
REPEATABLE = {"approve", "ask", "parallel", "repeat", "delay", "hang"}
"""What may begin anew in another process; everything else is never played twice."""


class Player:
    """Plays steps in order, from where an earlier process had come to."""

    def __init__(self, output: Output, workspace: Path, place: Any = None) -> None:
        self._output, self._workspace = output, workspace
        self._place = Place(place)
        self._waiting = 0

    async def play_all(self, steps: list[Step]) -> None:
        await self.play(steps, "")
        self._output.state.pop(PLACE, None)

    async def play(self, steps: list[Step], name: str) -> None:
        path = self._place.inner(name)
        for number in range(self._place.next(path), len(steps)):
            name = kind(steps[number])
            await self._reach(path, number if name in REPEATABLE else number + 1)
            with self._place.at(path, number):
                await STEPS[name](self, steps[number])
        await self._reach(path, len(steps))

    async def _reach(self, path: str, number: int) -> None:
        """What is kept must be true whenever something waits: the process may end at any moment."""
        self._place.reach(path, number)
        if self._waiting:
            self._keep()
            await self._output.flush(persist=True)

    def _keep(self) -> None:
        self._output.state[PLACE] = self._place.kept()

    async def text(self, step: Step) -> None:
        await self._stream(step["text"], step, self._output.text)

    async def reasoning(self, step: Step) -> None:
        await self._stream(step["reasoning"], step, lambda piece: self._output.text(piece, reasoning=True))

    async def output(self, step: Step) -> None:
        call = step["output"]
        await self._stream(call["text"], step, lambda piece: self._output.tool_output(call["id"], piece))

    async def _stream(self, text: str, step: Step, send: Callable[[str], Awaitable[None]]) -> None:
        """Send a text in pieces of `chunk` characters, one each `every` seconds."""
        size = step.get("chunk") or len(text) or 1
        for start in range(0, len(text), size):
            await send(text[start : start + size])
            await asyncio.sleep(step.get("every", 0))

    async def tool(self, step: Step) -> None:
        call = step["tool"]
        arguments = call.get("arguments", self._place.approved.get(call["id"], {}))
        await self._output.tool(
            call["id"],
            call["name"],
            arguments,
            call.get("native"),
            call.get("result"),
            call.get("done", False),
            failed=call.get("failed", False),
            meta=call.get("meta"),
            parent_call_id=call.get("parent", ""),
        )

    async def approve(self, step: Step) -> None:
        """An approved call without steps of its own ends with the result "ok"."""
        asked = step["approve"]
        for branch in ("then", "else"):
            if self._place.has_begun(branch):
                return await self.play(step[branch], branch)
        call_id = asked.get("id") or _new_id()
        resolution = await self._ask(asked["name"], asked["arguments"], call_id, asked, _request(asked))
        if resolution["action"] == "reject":
            return await self.play(step.get("else", []), "else")
        final = self._place.approved[call_id] = resolution.get("arguments", asked["arguments"])
        if "then" in step:
            await self.play(step["then"], "then")
        elif resolution["action"] == "approve":
            await self._output.tool(call_id, asked["name"], final, result="ok", done=True)

    async def ask(self, step: Step) -> None:
        """The answers end the call; what was said is then repeated as text."""
        questions = step["ask"]["questions"]
        request = {"kind": "question", "title": questions[0]["question"], "questions": questions}
        call_id = step["ask"].get("id") or _new_id()
        arguments = {"questions": questions}
        resolution = await self._ask("ask_user", arguments, call_id, step["ask"], request)
        await self._output.text(_in_words(questions, resolution))

    async def _ask(self, name: str, arguments: Any, call_id: str, asked: Asked, request: Asked) -> Asked:
        timeout = asked.get("timeout")
        self._waiting += 1
        self._keep()
        try:
            return await self._output.approve(name, arguments, None, timeout, call_id=call_id, request=request)
        finally:
            self._waiting -= 1

    async def parallel(self, step: Step) -> None:
        """All branches at once. The first error ends them all, and is raised as itself."""
        try:
            async with asyncio.TaskGroup() as group:
                for number, branch in enumerate(step["parallel"]):
                    group.create_task(self.play(branch, str(number)))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None

    async def delay(self, step: Step) -> None:
        await asyncio.sleep(step["delay"])

    async def notice(self, step: Step) -> None:
        await self._output.notice(step["notice"], step.get("level", "info"))

    async def plan(self, step: Step) -> None:
        await self._output.plan(step["plan"])

    async def usage(self, step: Step) -> None:
        self._output.usage = step["usage"]

    async def error(self, step: Step) -> None:
        raise ScriptError(step["error"])

    async def counter(self, step: Step) -> None:
        """One line for each time that this is played; a link is not followed out of the workspace."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        descriptor = os.open(self._workspace / step["counter"], flags, 0o644)
        try:
            os.write(descriptor, b"1\n")
        finally:
            os.close(descriptor)

    async def repeat(self, step: Step) -> None:
        round = self._place.inner("round")
        for number in range(self._place.next(round), step["repeat"]):
            self._place.reach(round, number)
            with self._place.at(round, number):
                await self.play(step["steps"], "")
            await asyncio.sleep(0)

    async def state(self, step: Step) -> None:
        self._output.state.update(step["state"])

    async def bytes(self, step: Step) -> None:
        asked = step["bytes"]
        line = "0123456789abcdef" * 4 + "\n"
        count = asked["count"]
        result = (line * (count // len(line) + 1))[:count]
        await self._output.tool(asked["id"], asked["name"], {"count": count}, result=result, done=True)

    async def hang(self, step: Step) -> None:
        await asyncio.Event().wait()

    async def unresumable(self, step: Step) -> None:
        await self._output.cannot_resume()

    async def flush(self, step: Step) -> None:
        await self._output.flush(**step["flush"])


STEPS: dict[str, Callable[[Player, Step], Awaitable[None]]] = {name: getattr(Player, name) for name in SHAPES}


def _new_id() -> str:
    return f"sc_{uuid.uuid4().hex}"


def _request(asked: Asked) -> Asked:
    """What people see, if the script does not say it: the command, or the name of the tool."""
    if "request" in asked:
        return dict(asked["request"])
    arguments = asked["arguments"]
    command = arguments.get("command") if isinstance(arguments, dict) else None
    if isinstance(command, str):
        return {"kind": "command", "title": command}
    return {"kind": "tool", "title": asked["name"]}


def _in_words(questions: list[Asked], resolution: Asked) -> str:
    """The answers as markdown, a line for each question."""
    answers = resolution.get("answers") or {}
    if resolution["action"] == "reject" or not answers:
        return "There was no answer.\n\n"
    lines = [f"- {question['question']} **{_said(answers.get(question['id']))}**" for question in questions]
    return "\n".join(lines) + "\n\n"


def _said(answer: Any) -> str:
    if not isinstance(answer, dict):
        return str(answer)
    return ", ".join([*map(str, answer.get("choices") or []), *filter(None, [answer.get("text")])])
