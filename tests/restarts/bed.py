"""What all cells share: a farm of one web process and one worker, and a person; and the chat of one cell."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.restarts.holds import SETTINGS, Holds
from tests.restarts.patient import Patient
from tests.services.client import until
from tests.services.farm import Farm
from tests.services.postgres import Postgres
from tests.services.redis import Redis


class Bed:
    def __init__(self, farm: Farm) -> None:
        self.farm, self.web, self.worker = farm, farm.web[0], farm.workers[0]
        self.person = Patient(farm.client(), self.web)
        self.holds = Holds(farm.url)
        self.holds.install()
        self.pool = ThreadPoolExecutor(4)

    def freeze(self) -> None:
        """The worker stands still until `let_go`, or until it is killed."""
        os.kill(self.worker.pid, signal.SIGSTOP)

    def let_go(self) -> None:
        """Whatever was held goes on, if it still lives."""
        self.holds.release()
        with contextlib.suppress(ProcessLookupError):
            if self.worker.process and self.worker.process.poll() is None:
                os.kill(self.worker.pid, signal.SIGCONT)

    def repair(self) -> None:
        """After a cell that failed halfway: everything runs."""
        self.let_go()
        if self.farm.postgres.process is None:
            self.farm.postgres.resume()
        for server in (self.web, self.worker):
            if server.process is None or server.process.poll() is not None:
                server.start()


@contextlib.contextmanager
def made() -> Iterator[Bed]:
    with Postgres(*SETTINGS) as postgres, Redis() as redis, Farm(postgres, redis, 1, 1) as farm:
        bed = Bed(farm)
        try:
            yield bed
        finally:
            bed.let_go()
            bed.pool.shutdown()


@dataclass
class Cell:
    """One chat: how it looked before its first message, and what was decided in it."""

    bed: Bed
    chat: str
    workspace: Path
    first: dict[str, Any]
    decided: dict[str, Future[httpx.Response]] = field(default_factory=dict)
    """By request, what the person was or will be answered."""

    @classmethod
    def new(cls, bed: Bed, provider: str, mode: str) -> Cell:
        folder = Path(tempfile.mkdtemp(dir=bed.farm.web[0].var / "workspaces"))
        wanted = {"provider": provider, "approval_mode": mode, "workspace": str(folder)}
        made = bed.person.post("/chats/", wanted).json()
        return cls(bed, made["id"], folder, bed.person.snapshot(made["id"]))

    def snapshot(self) -> Any:
        return self.bed.person.snapshot(self.chat)

    def run(self) -> Any:
        return self.snapshot()["messages"][-1]["run"]

    def is_(self, status: str) -> None:
        until(lambda: self.run()["status"] == status, 40)

    def requests(self) -> list[Any]:
        return [item for item in self.snapshot()["messages"][-1]["items"] if item.get("request")]

    def pending(self) -> list[Any]:
        return [item for item in self.requests() if item["status"] == "pending"]

    def decide(self) -> Future[httpx.Response]:
        """Allow the open request, in another thread: the answer may take a while."""
        [item] = until(self.pending)
        answer = self.bed.pool.submit(self.bed.person.decide, item)
        self.decided[item["id"]] = answer
        return answer

    def count(self, sql: Any) -> int:
        """`sql` counts something of this chat: `%s`."""
        return int(self.bed.farm.query(sql, self.chat)[0][0])

    def effects(self, name: str = "*") -> dict[str, int]:
        """Lines by file: each is something that an agent has done."""
        return {path.name: len(path.read_text().splitlines()) for path in self.workspace.glob(name) if path.is_file()}
