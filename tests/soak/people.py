"""Those who write, decide and stop all the time, each in a thread of its own."""

from __future__ import annotations

import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg

from tests.restarts.patient import Patient
from tests.services.farm import Farm
from tests.soak.plan import Turn


class Busy(threading.Thread):
    """Repeats a step until it is told to leave; `failed` says why it ended before."""

    def __init__(self, step: Callable[[], None], every: float) -> None:
        super().__init__(daemon=True, name=step.__qualname__)
        self._step, self._every = step, every
        self._over = threading.Event()
        self.failed = ""

    def run(self) -> None:
        try:
            while not self._over.wait(self._every):
                self._step()
        except Exception as error:
            self.failed = f"{self.name}: {type(error).__name__}: {error}"

    def leave(self, seconds: float = 120) -> None:
        self._over.set()
        self.join(seconds)


class Speaker:
    """Says the next turn in every chat whose run has ended."""

    def __init__(self, farm: Farm, person: Patient, count: int) -> None:
        self._farm, self._person = farm, person
        self.workspaces: dict[str, Path] = {}
        self.turns: dict[str, tuple[str, Turn]] = {}
        """By run, its chat and what it plays."""
        self._last: dict[str, str] = {}
        for _ in range(count):
            self._open()

    def _open(self) -> None:
        folder = self._farm.web[0].var / "workspaces" / f"chat-{len(self.workspaces)}"
        folder.mkdir()
        chat = self._person.post("/chats/", {"provider": "scripted", "workspace": str(folder)}).json()["id"]
        self.workspaces[chat] = folder

    def step(self) -> None:
        running = set(open_runs(self._farm))
        for chat in self.workspaces:
            if self._last.get(chat) not in running:
                turn = Turn(len(self.turns))
                answer = self._person.say(chat, turn.message())
                self._last[chat] = answer["run"]["id"]
                self.turns[answer["run"]["id"]] = (chat, turn)

    def said(self) -> dict[str, int]:
        """By run, how many pieces its agent has handed over; of the newest runs."""
        found = {}
        for run in list(self._last.values()):
            chat, turn = self.turns[run]
            file = self.workspaces[chat] / f"said-{turn.number}"
            found[run] = file.read_bytes().count(b"\n") if file.exists() else 0
        return found


def open_runs(farm: Farm) -> list[str]:
    """Runs that have not ended, however long it takes to learn that."""
    while True:
        try:
            return [str(row[0]) for row in farm.query("SELECT id FROM agentchat_run WHERE ended_at IS NULL")]
        except psycopg.OperationalError:
            time.sleep(0.2)


class Decider:
    """Decides about half of what waits in each round. Another one may decide otherwise at the same time."""

    def __init__(self, person: Patient, seed: int) -> None:
        self._person, self._random = person, random.Random(seed)
        self.won: dict[str, set[str]] = defaultdict(set)
        """By request, the decisions that were answered by 200."""
        self.lost: dict[str, str] = {}
        """By request, the answer that was not 200."""

    def step(self) -> None:
        rows: list[Any] = self._person.get("/approvals/", state="pending", limit=100)["results"]
        for row in self._random.sample(rows, (len(rows) + 1) // 2):
            action = self._random.choices(("approve", "reject"), (4, 1))[0]
            answer = self._person.decide(row["item"], action)
            if answer.status_code == 200:
                self.won[row["item"]["id"]].add(action)
            else:
                self.lost[row["item"]["id"]] = f"{answer.status_code} {answer.json().get('code')}"


class Stopper:
    """Stops a run now and then."""

    def __init__(self, farm: Farm, person: Patient, seed: int) -> None:
        self._farm, self._person, self._random = farm, person, random.Random(seed)

    def step(self) -> None:
        if found := open_runs(self._farm):
            self._person.post(f"/runs/{self._random.choice(found)}/stop/")
