"""Many chats whose agents stream and ask, in a farm where something dies every few seconds."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

from tests.faults.viewer import Viewer
from tests.restarts.patient import Patient
from tests.services.client import Client
from tests.services.farm import Farm
from tests.services.postgres import Postgres
from tests.services.redis import Redis
from tests.soak.chaos import Chaos
from tests.soak.people import Busy, Decider, Speaker, Stopper, open_runs
from tests.soak.tally import Tally

ENV = {"AGENTCHAT_PARK_SECONDS": "5", "AGENTCHAT_KEEP_DELTAS_SECONDS": "86400", "PYTHONFAULTHANDLER": "1"}
DECIDERS = 2
ENDS_WITHIN = 120.0
TELLS_EVERY = 59.0
SEQ = "SELECT last_seq FROM agentchat_chat WHERE id = %s"


@dataclass(frozen=True)
class Wanted:
    """`kept`: how many seconds old a text must be to survive a kill. `every`: the pause between two deaths."""

    seconds: float
    chats: int = 50
    viewers: int = 12
    kept: float = 0.1
    every: float = 2.0
    seed: int = 0


@contextlib.contextmanager
def farm() -> Iterator[Farm]:
    with Postgres("synchronous_commit=on") as postgres, Redis() as redis, Farm(postgres, redis, 2, 2, **ENV) as running:
        yield running


class Soak:
    def __init__(self, farm: Farm, wanted: Wanted, say: Callable[[str], None] = print) -> None:
        self._farm, self._wanted, self._say = farm, wanted, say
        self._client = farm.client()
        self._people = [self._person() for _ in range(DECIDERS + 2)]
        self._deciders = [Decider(self._people[n], wanted.seed + n) for n in range(DECIDERS)]
        self._speaker = Speaker(farm, self._people[-1], wanted.chats)
        self._stopper = Stopper(farm, self._people[-2], wanted.seed)
        self._chaos = Chaos(farm, self._speaker.said, wanted.kept, wanted.seed)
        self._viewers: dict[str, Viewer] = {}

    def _person(self) -> Patient:
        return Patient(self._client, *self._farm.web)

    def run(self) -> Tally:
        with ExitStack() as stack:
            self._watch(stack, self._client)
            self._busy()
            tally = self.tally()
        tally.zero["unclean ends of a process"] = self._chaos.wrong
        answers = sum((person.answers for person in self._people), Counter[str]())
        tally.zero["answers that are errors of the server"] = [f"{n} x {a}" for a, n in answers.items() if a == "500"]
        tally.shown |= {"deaths": dict(self._chaos.acts), "answers": dict(answers)}
        return tally

    def tally(self) -> Tally:
        """Of what is there now."""
        tally = Tally(self._farm, self._speaker, self._deciders)
        tally.take(self._viewers, self._chaos.must_be_there)
        return tally

    def _watch(self, stack: ExitStack, client: Client) -> None:
        for chat in list(self._speaker.workspaces)[: self._wanted.viewers]:
            self._viewers[chat] = stack.enter_context(Viewer(client, chat, *self._farm.web))

    def _busy(self) -> None:
        speaking, killing = Busy(self._speaker.step, 0.5), Busy(self._chaos.step, self._wanted.every)
        stopping = Busy(self._stopper.step, 7)
        deciding = [Busy(decider.step, 0.3) for decider in self._deciders]
        for thread in (speaking, killing, stopping, *deciding):
            thread.start()
        self._wait(time.monotonic() + self._wanted.seconds, [speaking, killing, stopping, *deciding])
        for thread in (killing, stopping, speaking):
            thread.leave()
        self._settle()
        for thread in deciding:
            thread.leave()
        failed = [thread.failed for thread in (speaking, killing, stopping, *deciding) if thread.failed]
        assert not failed, failed

    def _wait(self, end: float, threads: list[Busy]) -> None:
        told = time.monotonic()
        while time.monotonic() < end and not any(thread.failed for thread in threads):
            time.sleep(0.5)
            if time.monotonic() - told > TELLS_EVERY:
                told = time.monotonic()
                self._say(f"{end - told:.0f} s to go; {self._progress()}")

    def _progress(self) -> str:
        decided = sum(len(decider.won) for decider in self._deciders)
        return f"{len(self._speaker.turns)} runs, {decided} decisions, {sum(self._chaos.acts.values())} deaths"

    def _settle(self) -> None:
        """Nothing dies any more: all runs come to an end, and the viewers to the end of their chats."""
        end = time.monotonic() + ENDS_WITHIN
        while time.monotonic() < end and (open_runs(self._farm) or self._behind()):
            time.sleep(0.5)

    def _behind(self) -> bool:
        last = {chat: self._farm.query(SEQ, chat)[0][0] for chat in self._viewers}
        return any(viewer.events[-1]["seq"] < last[chat] for chat, viewer in self._viewers.items() if viewer.events)


def table(tally: Tally) -> list[str]:
    lines = [f"{name + ':':<40} {figure}" for name, figure in tally.shown.items()]
    for name, found in tally.zero.items():
        lines.append(f"{name + ':':<40} {len(found)}{'  MUST BE ZERO' if found else ''}")
        lines += [f"    {example}" for example in found[:5]]
    return lines


def failed(tally: Tally) -> bool:
    return any(tally.zero.values())
