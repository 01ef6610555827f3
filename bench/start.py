"""From the start of the program to its first page, and the memory that it then holds: `manage.py serve`, on SQLite."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import IO, Any

from bench.figures import Figure
from tests.services.server import Server

TIMES = 5
PAGE = "/accounts/login/"
"""What a person who is not signed in is sent to."""


class Timed(Server):
    """Knows when it was started, and is healthy as soon as the first page has come."""

    begun = took = 0.0

    def _open(self, log: IO[bytes], **more: Any) -> Any:
        self.begun = time.perf_counter()
        return super()._open(log, **more)

    def healthy(self) -> bool:
        line = HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            line.request("GET", PAGE)
            answer = line.getresponse()
            whole = answer.status == 200 and b"</html>" in answer.read()
        except (OSError, HTTPException):
            return False
        finally:
            line.close()
        self.took = time.perf_counter() - self.begun
        return whole


@contextmanager
def migrated() -> Iterator[Path]:
    """The folder of an installation that has been started before, and holds no chats."""
    folder = Path(tempfile.mkdtemp(prefix="agentchat-bench-start-"))
    try:
        server = Server(var=folder)
        server.manage("migrate", "-v0")
        server.close()
        yield folder
    finally:
        shutil.rmtree(folder)


def started(source: Path | None) -> tuple[float, float]:
    """Seconds to the first page, and MiB after it, of a server on a copy of a folder, or on none."""
    server = Timed()
    if source:
        shutil.copytree(source, server.var, dirs_exist_ok=True)
    with server:
        return server.took, resident(server.pid)


def resident(pid: int) -> float:
    """MiB of memory that a process holds."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


def measure() -> list[Figure]:
    with migrated() as source:
        known = [started(source) for _ in range(TIMES)]
        new = [started(None) for _ in range(TIMES)]
    how = (
        f"median of {TIMES}, `manage.py serve`, from the start of Python (whose files are compiled) to all of {PAGE},"
        " which is asked for every 50 ms"
    )
    seconds = statistics.median(took for took, _ in known)
    first = statistics.median(took for took, _ in new)
    memory = statistics.median(held for _, held in known)
    return [
        Figure("start of the server to the first page, database migrated", seconds, "s", 3, how),
        Figure("the same with a new database, migrated by the start", first, "s", None, how),
        Figure("memory of the server after its first page", memory, "MiB", None, "VmRSS of the one process"),
    ]
