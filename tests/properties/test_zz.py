"""Whatever happens in a chat, in whatever order: a snapshot taken at any moment, brought up to date by the events after
it, is the snapshot taken later. Here many things happen at once; one after the other: tests/core/test_properties.py."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from agentchat.events import Kind, RunStatus, Via
from agentchat.exceptions import AgentChatError, CursorTooOld
from agentchat.journal import process, reader
from agentchat.journal.threads import DatabaseThread
from agentchat.models import Chat, Event, OutputItem, Resolution, Run
from agentchat.services import approvals, chain, chats, runs, snapshot, upkeep
from agentchat.services.approvals import Decision
from agentchat.services.output import Output
from agentchat.supervisor.lifecycle import Readers
from tests.reducer import apply

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.databases, pytest.mark.slow]

texts = st.text(st.sampled_from("ab\n#*`- |1.😀é\0\r\ud83d\ude00<&[]()"), max_size=40)
ids = st.sampled_from(["c1", "c2", "c3"])
places = st.integers(0, 5)
steps = st.one_of(
    st.tuples(st.just("text"), texts, st.booleans()),
    st.tuples(st.just("tool"), ids, st.integers(0, 1), st.sampled_from([None, "r", "x" * 18_000, [1]]), st.booleans()),
    st.tuples(st.just("tool_output"), ids, st.sampled_from(["line\n", "é" * 9_500, "\rfoo", "\ud83d"])),
    st.tuples(st.just("ask"), ids, st.booleans()),
    st.tuples(st.just("ask"), ids, st.booleans()),
    st.tuples(st.just("decide"), places, st.sampled_from(["approve", "reject", "edit", "answer"])),
    st.tuples(st.just("decide"), places, st.sampled_from(["approve", "reject"])),
    st.tuples(st.just("withdraw"), places),
    st.tuples(st.just("plan"), st.integers(0, 3)),
    st.tuples(st.just("notice"), texts),
    st.tuples(st.just("save"), st.integers(0, 3)),
    st.tuples(st.just("another output")),
    st.tuples(st.just("say")),
    st.tuples(st.just("take back"), places),
    st.tuples(st.just("rename"), st.sampled_from(["One", "Two\0"])),
    st.tuples(st.just("mode"), st.sampled_from(["ask", "full", "auto-edit"])),
    st.tuples(st.just("stop")),
    st.tuples(st.just("finish"), st.sampled_from([RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.INTERRUPTED])),
    st.tuples(st.just("compact")),
    st.tuples(st.just("cut")),
    st.tuples(st.just("cut")),
)


def _closing(function: Any, *arguments: Any, **named: Any) -> Any:
    try:
        return function(*arguments, **named)
    finally:
        connection.close()


async def db(function: Any, *arguments: Any, **named: Any) -> Any:
    return await sync_to_async(_closing, thread_sensitive=False)(function, *arguments, **named)


class Game:
    """One chat, what runs in it, who waits, and the snapshots taken on the way."""

    def __init__(self, owner: Any, chat: Chat) -> None:
        self.owner, self.chat = owner, chat
        self.output: Output | None = None
        self.run: Run | None = None
        self.asking: list[asyncio.Task[Any]] = []
        self.cuts: list[dict[str, Any]] = []

    async def play(self, played: list[tuple[Any, ...]]) -> None:
        await self.do_say()
        await self.do_cut()
        for name, *arguments in played:
            try:
                await getattr(self, f"do_{name.replace(' ', '_')}")(*arguments)
            except AgentChatError:
                continue  # a call that is refused changes nothing, and that is what the snapshots say
        await self.check()
        await self.end()
        await self.check()
        await db(chats.delete, user=self.owner, chat_id=self.chat.pk)  # or its queue would be taken by the next

    async def writer(self) -> Output:
        if self.output is None:
            self.run = await db(runs.claim, "test:worker")
            if self.run is None:
                raise AgentChatError("Nothing waits.")
            assert self.run.chat_id == self.chat.pk
            self.output = self._output()
        return self.output

    def _output(self) -> Output:
        assert self.run is not None
        metadata = {"chat_id": self.chat.pk, "message_id": self.run.message_id, "task_id": self.run.pk}
        return Output(metadata, self.owner)

    # What an agent does

    async def do_text(self, text: str, reasoning: bool) -> None:
        await (await self.writer()).text(text, reasoning)

    async def do_tool(self, id: str, number: int, result: Any, done: bool) -> None:
        await (await self.writer()).tool(id, "t", {"n": number}, result=result, done=done, failed=number == 1)

    async def do_tool_output(self, id: str, text: str) -> None:
        await (await self.writer()).tool_output(id, text)

    async def do_ask(self, id: str, question: bool) -> None:
        """Ask, and go on with other things while nobody has answered; without an id it is a call of its own."""
        output, before = await self.writer(), await db(self._waiting)
        name = "ask_user" if question else "t"
        asking = asyncio.ensure_future(output.approve(name, {"n": 9}, call_id=None if question else id))
        self.asking.append(asking)
        while not asking.done() and len(await db(self._waiting)) == len(before):
            await asyncio.sleep(0.001)

    async def do_plan(self, count: int) -> None:
        await (await self.writer()).plan([{"step": str(n), "state": "pending"} for n in range(count)])

    async def do_notice(self, text: str) -> None:
        await (await self.writer()).notice(text)

    async def do_save(self, tokens: int) -> None:
        output = await self.writer()
        output.usage = {"input_tokens": tokens}
        await output.save()

    async def do_another_output(self) -> None:
        """Goes on with the same message, as after a reconnect; what waited at the first has ended."""
        await (await self.writer()).flush(force=True)
        await self._nobody_waits()
        self.output = self._output()

    # What people do

    def _waiting(self) -> list[OutputItem]:
        rows = OutputItem.objects.pending().filter(message__chat=self.chat)
        return list(rows.order_by("created_at", "position"))

    async def do_decide(self, place: int, action: str) -> None:
        """Not in the order in which they were asked, and not always what fits."""
        if not (rows := await db(self._waiting)):
            return
        row = rows[place % len(rows)]
        more: dict[str, Any] = {"arguments": {"n": 10}} if action == "edit" else {}
        if row.name == "ask_user" and action in ("approve", "answer"):
            action, more = "answer", {"answers": {"q": "blue"}}
        decision = Decision("approve" if action == "edit" else action, row.digest, reason="so", **more)
        before = self._still()
        await db(approvals.decide, self.owner, row.pk, decision, via=Via.API, proof="test")
        async with asyncio.timeout(10):
            while len(self._still()) == len(before):
                await asyncio.sleep(0.001)

    def _still(self) -> list[asyncio.Task[Any]]:
        return [task for task in self.asking if not task.done()]

    async def do_withdraw(self, place: int) -> None:
        if still := self._still():
            still[place % len(still)].cancel()
            await asyncio.wait([still[place % len(still)]])

    async def do_say(self) -> None:
        await db(chats.post, user=self.owner, chat_id=self.chat.pk, text="and **then**?\0")

    async def do_take_back(self, place: int) -> None:
        if queued := await db(lambda: list(self.chat.runs.queued().order_by("created_at"))):
            await db(runs.stop, self.owner, queued[place % len(queued)].pk)

    async def do_rename(self, title: str) -> None:
        await db(chats.change, user=self.owner, chat_id=self.chat.pk, title=title)

    async def do_mode(self, mode: str) -> None:
        await db(chats.change, user=self.owner, chat_id=self.chat.pk, approval_mode=mode)

    async def do_stop(self) -> None:
        if self.run and self.output:
            await db(runs.stop, self.owner, self.run.pk)

    # What the server does

    async def do_finish(self, status: RunStatus) -> None:
        """As the host does it: the provider ends first, then what it left open is closed."""
        output = await self.writer()
        if status == RunStatus.COMPLETED:
            await output.flush(done=True)
        await self._nobody_waits()
        await self._settled()
        assert self.run is not None
        await db(runs.finish, self.run.pk, status, "it broke" if status == RunStatus.FAILED else "")
        self.output = None

    async def do_compact(self) -> None:
        """Old events go; whoever was before them has to take a new snapshot."""
        await db(upkeep.compact)

    async def do_cut(self) -> None:
        self.cuts.append(await db(snapshot.chat_snapshot, self.owner, self.chat.pk))

    async def _nobody_waits(self) -> None:
        for task in self.asking:
            task.cancel()
        await asyncio.gather(*self.asking, return_exceptions=True)
        self.asking.clear()

    async def _settled(self) -> None:
        await process.current().writer.settled(self.chat.pk)

    async def end(self) -> None:
        await self._nobody_waits()
        await self._settled()
        if self.run:
            await db(runs.finish, self.run.pk, RunStatus.INTERRUPTED)

    # What must hold

    async def check(self) -> None:
        await self._settled()
        last = await db(snapshot.chat_snapshot, self.owner, self.chat.pk)
        for cut in self.cuts:
            try:
                later = await self.events(cut["cursor"])
            except CursorTooOld:
                continue
            assert without_more(apply(cut, later)) == without_more(last)
        assert await db(chain.verify, self.chat.pk) is None
        assert last["cursor"] == await db(lambda: Chat.objects.get(pk=self.chat.pk).last_seq)

    async def events(self, after: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while True:
            page = await db(reader.read, self.chat.pk, after)
            found += [json.loads(body) | {"seq": seq} for seq, body in enumerate(page.bodies, page.first)]
            if not page.bodies or page.cursor >= page.last_seq:
                return found
            after = page.cursor


def without_more(taken: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in taken.items() if name != "more"}


@pytest.fixture
def runner(transactional_db: None) -> Iterator[asyncio.Runner]:
    """One loop with a journal for all examples."""
    write, read = DatabaseThread("property journal", durable=False), Readers()
    with asyncio.Runner() as running:
        running.run(process.start(write, read, with_bus=False, tick=0.002))
        yield running
        running.run(process.stop())
    write.close()
    read.close()


def examples(count: int) -> Any:
    return settings(
        max_examples=count,
        deadline=None,
        derandomize=False,
        database=None,
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )


def test_a_snapshot_and_what_follows_is_the_later_snapshot(runner: asyncio.Runner, owner: Any) -> None:
    seen: set[str] = set()

    async def play(mode: str, played: list[tuple[Any, ...]]) -> None:
        chat = await db(chats.create, user=owner, provider="scripted", approval_mode=mode)
        await Game(owner, chat).play(played)
        await db(lambda: seen.update(Event.objects.filter(chat=chat).values_list("kind", flat=True)))

    @examples(250)
    @given(st.sampled_from(["ask", "ask", "full"]), st.lists(steps, min_size=1, max_size=30))
    def check(mode: str, played: list[tuple[Any, ...]]) -> None:
        runner.run(play(mode, played))

    check()
    assert seen == set(Kind)
    causes = set(Resolution.objects.values_list("cause", flat=True))
    assert {"person", "mode", "agent_gone"} <= causes


def test_with_compaction_what_is_kept_is_enough(runner: asyncio.Runner, owner: Any, settings: Any) -> None:
    """A cursor is refused, or the events after it are all there: never something in between."""
    settings.AGENTCHAT_KEEP_DELTAS_SECONDS = 0

    async def play(played: list[tuple[Any, ...]]) -> None:
        chat = await db(chats.create, user=owner, provider="scripted")
        game = Game(owner, chat)
        await game.play([step for one in played for step in (one, ("compact",), ("cut",))])

    @examples(15)
    @given(st.lists(steps, min_size=5, max_size=15))
    def check(played: list[tuple[Any, ...]]) -> None:
        runner.run(play(played))

    check()


import agentchat.journal.store as _store

_alone = _store._alone


def _noisy(entries: Any) -> Any:
    found = _alone(entries)
    for entry, result in zip(entries, found, strict=True):
        if isinstance(result, Exception) and type(result).__name__ not in ("Gone",):
            with open("/tmp/dbg/log", "a") as log:
                log.write(
                    f"{result!r} {[k for k, _ in entry.events]} {[(w.model.__name__, w.insert, {n: str(v)[:40] for n, v in w.values.items()}) for w in entry.writes]}\n\n"
                )
    return found


_store._alone = _noisy
