"""What dies, and how; each fault ends with everything running again."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.restarts.bed import Bed
from tests.services.server import Server

BEGUN = 0.2
"""Seconds: a process that was told to stop has begun to, when what it waits for goes on."""


@dataclass(frozen=True)
class Fault:
    name: str
    act: Callable[[Bed], None]
    hits: str = ""
    """The fate of the worker, if it is the one that dies: `killed` or `stopped`."""


def killed(bed: Bed, server: Server) -> None:
    server.kill()
    bed.let_go()
    server.start()


def stopped(bed: Bed, server: Server) -> None:
    assert server.process
    server.process.send_signal(signal.SIGTERM)
    time.sleep(BEGUN)
    bed.let_go()
    server.process.wait(60)
    code = server.stop()
    assert code == 0, f"it ended with {code} after SIGTERM"
    server.start()


def postgres_again(bed: Bed, how: signal.Signals) -> None:
    bed.farm.postgres.halt(how)
    bed.farm.postgres.resume()
    bed.let_go()


FAULTS = (
    Fault("SIGKILL of the worker", lambda bed: killed(bed, bed.worker), "killed"),
    Fault("SIGTERM of the worker", lambda bed: stopped(bed, bed.worker), "stopped"),
    Fault("SIGKILL of the web process", lambda bed: killed(bed, bed.web)),
    Fault("SIGTERM of the web process", lambda bed: stopped(bed, bed.web)),
    Fault("restart of PostgreSQL", lambda bed: postgres_again(bed, signal.SIGINT)),
    Fault("crash of PostgreSQL", lambda bed: postgres_again(bed, signal.SIGQUIT)),
)
