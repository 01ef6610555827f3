"""The worker, the web process and the database die at the worst moments. `make restarts` plays all of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.restarts.bed import Bed, made
from tests.restarts.faults import Fault
from tests.restarts.matrix import all_cells, audit, play
from tests.restarts.stages import Stage

pytestmark = [pytest.mark.slow, pytest.mark.services]
SHORT = {
    "queued x SIGTERM of the worker",
    "being taken x SIGTERM of the worker",
    "waiting x SIGKILL of the worker",
    "being decided x SIGKILL of the web process",
    "decided, not delivered x SIGKILL of the worker",
    "being delivered x restart of PostgreSQL",
    "delivered, not run x SIGKILL of the worker",
    "finishing, the run x SIGTERM of the worker",
}
"""The others take minutes."""


def cells() -> Iterator[object]:
    for stage, fault in all_cells([]):
        name = f"{stage.name} x {fault.name}"
        yield pytest.param(stage, fault, id=name, marks=[] if name in SHORT else [pytest.mark.soak])


@pytest.fixture(scope="module")
def bed() -> Iterator[Bed]:
    with made() as bed:
        yield bed


@pytest.mark.parametrize(("stage", "fault"), list(cells()))
def test_after_a_restart_nothing_is_lost_doubled_or_stuck(bed: Bed, stage: Stage, fault: Fault) -> None:
    result = play(bed, stage, fault)
    assert not result.fails, result.line()


def test_at_the_end_the_audit_holds_and_nobody_is_busy(bed: Bed) -> None:
    assert audit(bed) == []
