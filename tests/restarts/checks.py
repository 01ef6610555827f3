"""What must hold after every recovery; each check gives what is wrong."""

from __future__ import annotations

from collections.abc import Iterator

from tests.cases.helpers import marked_processes
from tests.reducer import apply
from tests.restarts.bed import Cell
from tests.restarts.stages import RECEIPTS, Stage
from tests.services.client import until

ENDED = {"completed", "failed", "cancelled", "interrupted"}
LATE = {(410, "agent_gone"), (409, "already_resolved")}
"""Nobody can answer any more, or the chat's mode did."""
DECISIONS = "SELECT count(*) FROM agentchat_resolution WHERE chat_id = %s AND cause = 'person'"
OPEN = "SELECT count(*) FROM agentchat_run WHERE chat_id = %s AND ended_at IS NULL"


def settle(cell: Cell) -> None:
    """Answer what still waits for a person, until the run has ended."""

    def look() -> bool:
        has_ended = cell.run()["status"] in ENDED
        if not has_ended and any(item["id"] not in cell.decided for item in cell.pending()):
            cell.decide().result(60)
        return has_ended

    until(look, 60)


def problems(stage: Stage, cell: Cell, allowed: frozenset[str]) -> Iterator[str]:
    """Of a run that has ended."""
    for check in (_decisions, _closed, _journal, _left_over):
        yield from check(cell)
    yield from _end(stage, cell, allowed)
    yield from _effects(cell)


def _decisions(cell: Cell) -> Iterator[str]:
    made = sum(answer.result(60).status_code == 200 for answer in cell.decided.values())
    if (stored := cell.count(DECISIONS)) != made:
        yield f"{made} decisions were answered by 200, {stored} are stored"


def _closed(cell: Cell) -> Iterator[str]:
    """A later answer gets what is stored, or why there can be none."""
    for item in cell.requests():
        late = cell.bed.person.decide(item)
        got = late.status_code, late.json().get("code", "")
        if got != (200, "") if item["id"] in cell.decided else got not in LATE:
            yield f"a late decision got {late.status_code} {late.text}"


def _journal(cell: Cell) -> Iterator[str]:
    rows = cell.bed.farm.query("SELECT seq, body::json FROM agentchat_event WHERE chat_id = %s ORDER BY seq", cell.chat)
    last = cell.snapshot()
    if [seq for seq, _ in rows] != list(range(1, last["cursor"] + 1)):
        yield "the numbers of the journal have a gap"
    later = [{"seq": seq, **body} for seq, body in rows if seq > cell.first["cursor"]]
    if apply(cell.first, later) != last:
        yield "the replayed events do not give the snapshot"


def _left_over(cell: Cell) -> Iterator[str]:
    if found := marked_processes(cell.run()["id"]):
        yield f"processes are left: {found}"
    if cell.count(OPEN):
        yield "a run has not ended"


def _end(stage: Stage, cell: Cell, allowed: frozenset[str]) -> Iterator[str]:
    """The final state is one that may be, and says why if it is not the good one."""
    run, said = cell.run(), text(cell)
    if run["status"] not in allowed:
        yield f"it is {run['status']}: {run['error']!r}"
    if (run["status"] == "completed") == bool(run["error"]):
        yield f"it is {run['status']} and says {run['error']!r}"
    if said != stage.text if run["status"] == "completed" else not stage.text.startswith(said):
        yield f"it said {said!r}"


def text(cell: Cell) -> str:
    items = cell.snapshot()["messages"][-1]["items"]
    return "".join(part["text"] for item in items if item["type"] == "message" for part in item["content"])


def _effects(cell: Cell) -> Iterator[str]:
    """At most once, and exactly once if it has completed; never without a receipt."""
    done = cell.effects()
    done.pop("go", None)
    if wrong := {name: count for name, count in done.items() if count > 1}:
        yield f"more than once: {wrong}"
    if cell.run()["status"] == "completed" and not done:
        yield "it has completed and done nothing"
    if "act" in done and cell.count(RECEIPTS) != 1:
        yield "it acted without a receipt"
