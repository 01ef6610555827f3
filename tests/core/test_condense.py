"""What a page on a slow line gets: fewer events, and the same state."""

from __future__ import annotations

import asyncio
import json
from random import Random
from typing import Any

import pytest

from agentchat import conf
from agentchat.exceptions import CursorTooOld
from agentchat.journal import condense, process
from agentchat.journal.outbox import Wire
from agentchat.models import Chat
from agentchat.services import snapshot
from agentchat.services.output import Output
from tests.core.helpers import events
from tests.reducer import condensed

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.databases]


async def condensed_from(in_db: Any, chat: Chat, cursor: int) -> dict[str, Any]:
    return json.loads((await in_db(condense.read, chat.pk, cursor)).frame())


async def some_output(output: Output, random: Random) -> None:
    """A step of an agent: prose, or output of a call, long or short, of one byte or of four a code point."""
    letter = random.choice("aé𝕏\n")
    match random.randrange(5):
        case 0 | 1:
            await output.text(
                f"# {letter}\n\nword {letter} " * random.randrange(1, 20), reasoning=random.random() < 0.3
            )
        case 2 | 3:
            call = f"c{random.randrange(3)}"
            await output.tool(call, "read", {})
            await output.tool_output(call, letter * random.randrange(1, 12_000))
        case _:
            await output.tool(f"c{random.randrange(3)}", "read", {}, result=letter * 20_000, done=True)
    await output.flush(force=True)


@pytest.mark.parametrize("seed", range(6))
async def test_condensed_events_lead_to_the_same_snapshot(
    output: Output, chat: Chat, owner: Any, in_db: Any, seed: int
) -> None:
    random, taken = Random(seed), []
    for _ in range(25):
        await some_output(output, random)
        taken.append(await in_db(snapshot.chat_snapshot, owner, chat.pk))
    for before in random.sample(taken, 12):
        frame = await condensed_from(in_db, chat, before["cursor"])
        assert condensed(before, frame) == taken[-1]
        seqs = [event["seq"] for event in frame["events"]]
        assert seqs == sorted(seqs)


async def test_long_output_comes_as_its_end_and_counts_what_is_left_out(output: Output, chat: Chat, in_db: Any) -> None:
    await output.tool("c", "shell", {})
    await output.flush(force=True)
    start = (await events(in_db, chat))[-1]["seq"]
    for _ in range(40):
        await output.tool_output("c", "é" * 10_000)
    await output.flush(force=True)
    frame = await condensed_from(in_db, chat, start)
    head, tail = [event for event in frame["events"] if event["kind"] == "item.delta"]
    assert (head["offset"], len(head["text"])) == (0, 8_000)
    assert (tail["offset"], len(tail["text"]), tail["skipped"]) == (392_000, 8_000, 2 * 384_000)


async def test_who_is_too_far_behind_is_told_to_draw_anew(
    output: Output, chat: Chat, in_db: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        await output.text("word " * 7_000)
        await output.flush(force=True)
    monkeypatch.setattr(conf, "EVENT_BYTES_PER_READ", 40_000)
    monkeypatch.setattr(conf, "CONDENSED_PAGES", 2)
    with pytest.raises(CursorTooOld):
        await in_db(condense.read, chat.pk, 0)


async def test_a_line_that_stands_still_holds_a_bounded_queue_and_then_jumps_to_the_end(
    journal: process.Process, output: Output, chat: Chat, owner: Any, in_db: Any
) -> None:
    first = await in_db(snapshot.chat_snapshot, owner, chat.pk)
    outbox = journal.hub.attach(chat.pk, first["cursor"], conf.CONDENSED_OUTBOX_BYTES)
    line = Line()

    async def read(after: int) -> Any:
        return await journal.run(condense.read, chat.pk, after)

    draining = asyncio.create_task(outbox.drain(Wire(line.send, read, no_snapshot)))
    await output.tool("c", "shell", {})
    for n in range(60):
        await output.tool_output("c", f"{n} " * 2_500)
        await output.flush(force=True)
        assert outbox._bytes <= 2 * conf.CONDENSED_OUTBOX_BYTES
    line.open.set()
    last = await in_db(snapshot.chat_snapshot, owner, chat.pk)
    while outbox.cursor < last["cursor"]:
        await asyncio.sleep(0.01)
    got = [json.loads(frame) for frame in line.frames]
    assert len(got) <= 4 and sum(map(len, line.frames)) < 60_000
    state = first
    for frame in got:
        state = condensed(state, frame)
    assert state == last
    draining.cancel()
    journal.hub.detach(chat.pk, outbox)


class Line:
    """Takes nothing until it is opened."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.frames: list[str] = []

    async def send(self, frame: str) -> None:
        await self.open.wait()
        self.frames.append(frame)


async def no_snapshot() -> tuple[int, str]:
    raise AssertionError("the events are kept")
