"""For any sequence of calls, cut anywhere: a snapshot and the events after it give the later snapshot."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth import get_user_model
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentchat.events import RunStatus, Via
from agentchat.exceptions import AgentChatError
from agentchat.journal import process, reader
from agentchat.journal.threads import DatabaseThread
from agentchat.models import Chat, OutputItem
from agentchat.services import approvals, chats, runs, snapshot, upkeep
from agentchat.services.approvals import Decision
from agentchat.services.output import Output
from agentchat.supervisor.lifecycle import Readers
from tests.reducer import apply

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.databases]

texts = st.text(st.sampled_from("ab\n#*`- |😀\0\r\ud83d\ude00<&"), max_size=30)
ids = st.sampled_from(["c1", "c2"])
operation = st.one_of(
    st.tuples(st.just("text"), texts, st.booleans()),
    st.tuples(st.just("tool"), ids, st.integers(0, 1), st.sampled_from([None, "r", {"x": 1}]), st.booleans()),
    st.tuples(st.just("stream"), ids, st.sampled_from(["line\n", "x" * 9000, "\rfoo"])),
    st.tuples(st.just("approve"), ids, st.sampled_from(["approve", "reject", "stop waiting"])),
    st.tuples(st.just("plan"), st.integers(0, 3)),
    st.tuples(st.just("notice"), texts),
    st.tuples(st.just("save")),
    st.tuples(st.just("say"), st.just("and then?")),
    st.tuples(st.just("take back")),
    st.tuples(st.just("rename"), st.sampled_from(["One", "Two"])),
    st.tuples(st.just("end"), st.sampled_from([RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.INTERRUPTED])),
    st.tuples(st.just("cut")),
)


def closing(function: Any, *arguments: Any, **named: Any) -> Any:
    try:
        return function(*arguments, **named)
    finally:
        connection.close()


async def db(function: Any, *arguments: Any, **named: Any) -> Any:
    return await sync_to_async(closing, thread_sensitive=False)(function, *arguments, **named)


class Example:
    def __init__(self, owner: Any, chat: Chat) -> None:
        self.owner, self.chat = owner, chat
        self.output: Output | None = None
        self.run: Any = None
        self.cuts: list[dict[str, Any]] = []

    async def claim(self) -> None:
        self.run = await db(runs.claim, "test:worker")
        if self.run:
            metadata = {"chat_id": self.chat.pk, "message_id": self.run.message_id, "task_id": self.run.pk}
            self.output = Output(metadata, self.owner)

    async def do(self, name: str, *arguments: Any) -> None:
        """Errors on purpose (text after the end, output of no call) change nothing and are part of the game."""
        try:
            await getattr(self, f"do_{name.replace(' ', '_')}")(*arguments)
        except AgentChatError:
            return

    async def writer(self) -> Output:
        if self.output is None:
            await self.claim()
        if self.output is None:
            raise AgentChatError("Nothing runs.")
        return self.output

    async def do_text(self, text: str, reasoning: bool) -> None:
        await (await self.writer()).text(text, reasoning)

    async def do_tool(self, id: str, number: int, result: Any, done: bool) -> None:
        await (await self.writer()).tool(id, "t", {"n": number}, result=result, done=done)

    async def do_stream(self, id: str, text: str) -> None:
        await (await self.writer()).tool_output(id, text)

    async def do_approve(self, id: str, action: str) -> None:
        asking = asyncio.create_task((await self.writer()).approve("t", {"n": 9}, call_id=id))
        while not asking.done() and not (item := await db(self.pending)):
            await asyncio.sleep(0.005)
        if asking.done():
            return asking.result() and None
        await self.do_cut()
        if action == "stop waiting":
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            return
        await db(approvals.decide, self.owner, item.pk, Decision(action, item.digest), via=Via.API, proof="test")
        await asking

    def pending(self) -> OutputItem | None:
        return OutputItem.objects.pending().filter(message__chat=self.chat).first()

    async def do_plan(self, count: int) -> None:
        await (await self.writer()).plan([{"step": str(n), "state": "pending"} for n in range(count)])

    async def do_notice(self, text: str) -> None:
        await (await self.writer()).notice(text)

    async def do_save(self) -> None:
        await (await self.writer()).save()

    async def do_say(self, text: str) -> None:
        await db(chats.post, user=self.owner, chat_id=self.chat.pk, text=text)

    async def do_take_back(self) -> None:
        waiting = await db(lambda: self.chat.runs.queued().last())
        if waiting:
            await db(runs.stop, self.owner, waiting.pk)

    async def do_rename(self, title: str) -> None:
        await db(chats.change, user=self.owner, chat_id=self.chat.pk, title=title)

    async def do_end(self, status: RunStatus) -> None:
        output = await self.writer()
        if status == RunStatus.COMPLETED:
            await output.flush(done=True)
        await process.current().writer.settled(self.chat.pk)
        await db(runs.finish, self.run.pk, status, "it broke" if status == RunStatus.FAILED else "")
        self.output = None

    async def do_cut(self) -> None:
        self.cuts.append(await db(snapshot.chat_snapshot, self.owner, self.chat.pk))

    async def check(self) -> None:
        """Every snapshot that was taken, brought up to date by the events alone, equals the last."""
        await process.current().writer.settled(self.chat.pk)
        last = await db(snapshot.chat_snapshot, self.owner, self.chat.pk)
        for cut in self.cuts:
            assert apply(cut, await self.events(cut["cursor"])) == last

    async def events(self, after: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while True:
            page = await db(reader.read, self.chat.pk, after)
            found += [json.loads(body) | {"seq": seq} for seq, body in enumerate(page.bodies, page.first)]
            if not page.bodies or page.cursor >= page.last_seq:
                return found
            after = page.cursor


def test_a_snapshot_and_the_later_events_give_the_later_snapshot(transactional_db: None) -> None:
    owner = get_user_model().objects.create_user("ada")

    async def play(operations: list[tuple[Any, ...]]) -> None:
        chat = await db(chats.create, user=owner, provider="scripted")
        example = Example(owner, chat)
        await example.do_say("go")
        await example.do_cut()
        for one in operations:
            await example.do(*one)
        await example.check()
        if example.run:
            await db(runs.finish, example.run.pk, RunStatus.INTERRUPTED)
        await example.check()
        await db(chats.delete, user=owner, chat_id=chat.pk)

    async def start() -> tuple[DatabaseThread, Readers]:
        write, read = DatabaseThread("property journal", durable=False), Readers()
        await process.start(write, read, with_bus=False, tick=0.002)
        return write, read

    with asyncio.Runner() as runner:
        threads = runner.run(start())

        @settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
        @given(st.lists(operation, max_size=25))
        def check(operations: list[tuple[Any, ...]]) -> None:
            runner.run(play(operations))

        try:
            check()
        finally:
            runner.run(process.stop())
            for thread in threads:
                thread.close()


def test_compaction_drops_what_nobody_needs_and_a_snapshot_stays_true(transactional_db: None, settings: Any) -> None:
    """Events are a replay buffer: without them the snapshot says the same."""
    settings.AGENTCHAT_KEEP_DELTAS_SECONDS = 0
    owner = get_user_model().objects.create_user("ada")

    async def play() -> None:
        write, read = DatabaseThread("compaction journal", durable=False), Readers()
        await process.start(write, read, with_bus=False, tick=0.002)
        chat = await db(chats.create, user=owner, provider="scripted")
        example = Example(owner, chat)
        await example.do_say("go")
        dice = random.Random(7)
        for _ in range(300):
            await example.do_text("word " * dice.randint(1, 40) + "\n\n" * dice.randint(0, 1), False)
        await process.current().writer.settled(chat.pk)
        before = await db(snapshot.chat_snapshot, owner, chat.pk)
        assert await db(upkeep.compact) > 0
        assert await db(snapshot.chat_snapshot, owner, chat.pk) == before
        await example.do_cut()
        await example.do_end(RunStatus.COMPLETED)
        await example.check()
        await process.stop()
        write.close()
        read.close()

    asyncio.run(play())
