"""Every stage with every fault."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.restarts.bed import Bed, Cell
from tests.restarts.checks import problems, settle
from tests.restarts.faults import FAULTS, Fault
from tests.restarts.stages import GOES_ON, STAGES, Stage

IDLE_SECONDS = 5.0
BUSY = 0.25
"""Of a core: a process that does more while nothing happens is spinning."""


@dataclass(frozen=True)
class Result:
    stage: Stage
    fault: Fault
    ended: str
    wrong: list[str]
    seconds: float

    @property
    def fails(self) -> bool:
        return bool(self.wrong)

    def line(self) -> str:
        said = "; ".join(self.wrong) or self.ended
        word = "FAILED" if self.fails else "ok"
        return f"{word:<7}{self.stage.name:<26}{self.fault.name:<28}{said} ({self.seconds:.1f} s)"


def play(bed: Bed, stage: Stage, fault: Fault) -> Result:
    begun, ended, wrong = time.monotonic(), "", []
    try:
        cell = Cell.new(bed, stage.provider, stage.mode)
        stage.reach(cell)
        fault.act(bed)
        stage.go_on(cell)
        settle(cell)
        ended = f"{cell.run()['status']}, {dict(cell.effects())}"
        wrong = list(problems(stage, cell, getattr(stage, fault.hits) if fault.hits else GOES_ON))
    except Exception as error:
        wrong = [f"{type(error).__name__}: {error}"]
        bed.repair()
    return Result(stage, fault, ended, wrong, time.monotonic() - begun)


def all_cells(words: list[str]) -> Iterator[tuple[Stage, Fault]]:
    """Those in whose names one of the words occurs; without words, all."""
    for stage in STAGES:
        for fault in FAULTS:
            name = f"{stage.name} x {fault.name}"
            if not words or any(word in name for word in words):
                yield stage, fault


def audit(bed: Bed) -> list[str]:
    """At the end, of all cells: the chains hold, nothing runs, and nobody is busy."""
    checked = bed.farm.web[0].manage("verify_resolutions", check=False)
    wrong = [checked.stderr.strip()] if checked.returncode else []
    open_runs = bed.farm.query("SELECT count(*) FROM agentchat_run WHERE ended_at IS NULL")[0][0]
    if open_runs:
        wrong.append(f"{open_runs} runs have not ended")
    for name, server in (("web process", bed.web), ("worker", bed.worker)):
        if (busy := used(server.pid)) > BUSY:
            wrong.append(f"the {name} uses {busy:.0%} of a core while nothing happens")
    return wrong


def used(pid: int) -> float:
    """The part of a core that a process uses."""
    before = ticks(pid)
    time.sleep(IDLE_SECONDS)
    return (ticks(pid) - before) / 100 / IDLE_SECONDS


def ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
