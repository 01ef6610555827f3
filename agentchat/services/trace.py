"""A run as a trace that others can check: what was asked, decided, taken and done (docs/approvals.md says by which facts).

The records are those of AgentAck, version 2. Nothing is smoothed: rows that contradict each other give records that do.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import zip_longest
from typing import Any
from uuid import UUID

from agentchat.events import Action, Cause, ItemType
from agentchat.exceptions import Invalid, NotFound
from agentchat.models import OutputItem, Receipt, Resolution, Run
from agentchat.services import canonical, clean, closing, consistent
from agentchat.wire import time

Record = dict[str, Any]
VERSION = 2
_RANK = {
    "action_proposed": 0,
    "approval_requested": 1,
    "approval_decision": 2,
    "action_executed": 3,
    "action_blocked": 3,
    "interrupt": 4,
    "session_end": 5,
}
"""Which record comes first where the times are equal."""


@dataclass(slots=True)
class Rows:
    """All of a run that the trace is made of."""

    run: Run
    calls: list[OutputItem]
    outputs: dict[UUID, list[OutputItem]] = field(default_factory=lambda: defaultdict(list))
    """By the id of the call."""
    resolutions: dict[UUID, list[Resolution]] = field(default_factory=lambda: defaultdict(list))
    """By the id of the call. The database lets one in; whoever forces a second one in is to be seen."""
    receipts: dict[int, list[Receipt]] = field(default_factory=lambda: defaultdict(list))
    """By the id of the resolution; the same holds."""


@dataclass(frozen=True, slots=True)
class _Line:
    at: datetime
    """Where in the order it stands."""
    record: Record


def read(run_id: UUID) -> Rows:
    """Raises NotFound."""
    with consistent.view():
        run = Run.objects.filter(pk=run_id).first()
        if run is None:
            raise NotFound(f"There is no run with the id {run_id}.")
        rows = Rows(run, list(_items(run).filter(type=ItemType.CALL).defer("html", "native", "text")))
        _add(rows)
    return rows


def _items(run: Run) -> Any:
    return OutputItem.objects.filter(message=run.message_id).order_by("position").defer("html", "native")


def _add(rows: Rows) -> None:
    for output in _items(rows.run).filter(output_of__request__isnull=False):
        rows.outputs[output.output_of_id].append(output)
    for resolution in Resolution.objects.filter(item__message=rows.run.message_id).order_by("pk"):
        rows.resolutions[resolution.item_id].append(resolution)
    for receipt in Receipt.objects.filter(resolution__item__message=rows.run.message_id).order_by("pk"):
        rows.receipts[receipt.resolution_id].append(receipt)


def records(rows: Rows) -> list[Record]:
    """In the order in which it happened."""
    lines = [line for call in rows.calls for line in _call(rows, call)]
    lines += _run(rows)
    lines.sort(key=lambda line: (line.at, _RANK[line.record["type"]]))
    head = {"schema_version": VERSION, "session_id": str(rows.run.pk)}
    return [{**head, **line.record} for line in lines]


def _run(rows: Rows) -> Iterator[_Line]:
    """What the end closes belongs to it: those rows are in its transaction, written after it took its time."""
    run, resolutions = rows.run, [row for found in rows.resolutions.values() for row in found]
    if run.stop_requested_at:
        yield _line("interrupt", run.stop_requested_at, reason="a person stopped the run")
    if run.ended_at:
        closed = [row.decided_at for row in resolutions if row.cause in (Cause.STOPPED, Cause.AGENT_GONE)]
        causes = sorted(Counter(row.cause for row in resolutions).items())
        decided = ", ".join(f"{cause} {count}" for cause, count in causes) or "nothing"
        reason = f"{run.status}; decided by: {decided}"
        yield _line("session_end", run.ended_at, order=max([run.ended_at, *closed]), reason=reason)


def _call(rows: Rows, call: OutputItem) -> Iterator[_Line]:
    if call.request is None:
        return _unasked(call)
    resolutions = rows.resolutions.get(call.pk, [])
    taken = {row.pk: [receipt.delivered_at for receipt in rows.receipts.get(row.pk, [])] for row in resolutions}
    outputs = [row for row in rows.outputs.get(call.pk, []) if _is_result(row, resolutions)]
    return _Asked(call, resolutions, taken, [row.created_at for row in outputs], rows.run.ended_at).lines()


def _unasked(call: OutputItem) -> Iterator[_Line]:
    """A call that an agent made without asking: it has begun when it is told of."""
    action = _action(call, call.name, _digest(call.arguments))
    yield _line("action_proposed", call.created_at, str(call.pk), action)
    yield _line("action_executed", call.created_at, str(call.pk), action)


def _is_result(output: OutputItem, resolutions: Iterable[Resolution]) -> bool:
    """Not what we wrote ourselves: why there is no result, or what was decided."""
    ours = set(closing.INTERRUPTED.values())
    for row in resolutions:
        reason = {"reason": row.reason} if row.reason else {}
        ours.add(clean.result({"action": row.action, "cause": row.cause, **reason}))
    return output.text not in ours


@dataclass(frozen=True, slots=True)
class _Asked:
    """One request. Edited arguments make a second action: the first did not run, the second is what the person allowed."""

    call: OutputItem
    resolutions: list[Resolution]
    taken: dict[int, list[datetime]]
    """When receipts were written, by resolution."""
    results: list[datetime]
    """When a result began to come."""
    run_ended_at: datetime | None

    def lines(self) -> Iterator[_Line]:
        yield from self._shown()
        for resolution in self.resolutions:
            yield from self._decided(resolution)
            yield from self._blocked(resolution)
        yield from self._executed()

    def _shown(self) -> Iterator[_Line]:
        """What is in the row now, and what the person was shown. A resolution's row can only exist after the request's."""
        at, call = self.call.created_at, self.call
        first = min([at, *(row.decided_at for row in self.resolutions)])
        tool, digest = (self._first.tool, self._first.digest) if self._first else (call.name, call.digest)
        now = _action(call, call.name, _digest(call.arguments))
        yield _line("action_proposed", at, self._key, now, order=first)
        yield _line(
            "approval_requested", at, self._key, _action(call, tool, digest), order=first, approval_id=self._key
        )

    def _decided(self, row: Resolution) -> Iterator[_Line]:
        at, key, given = row.decided_at, self._key, "deny" if row.action == Action.REJECT else "allow"
        if _is_edited(row):
            yield _line("approval_decision", at, key, approval_id=key, decision="deny")
            key, action = _edited(key), _action(self.call, row.tool, row.final_digest)
            yield _line("action_proposed", at, key, action)
            yield _line("approval_requested", at, key, action, approval_id=key)
        yield _line("approval_decision", at, key, approval_id=key, decision=given, **self._void(row))

    def _void(self, row: Resolution) -> Record:
        """A yes has no expiry of its own; one that came after that of its request was void from the start."""
        expiry = self.call.expires_at
        late = expiry is not None and row.decided_at > expiry and row.action != Action.REJECT
        return {"expires_at": time(expiry)} if late else {}

    def _blocked(self, row: Resolution) -> Iterator[_Line]:
        """What the decision kept from running; and what it allowed, if no run ever took it."""
        taken = self.taken.get(row.pk, [])
        at, key = min(taken, default=row.decided_at), self._key
        if row.action == Action.REJECT:
            yield _line("action_blocked", at, key, approval_id=key, reason=row.cause)
            return
        if _is_edited(row):
            yield _line("action_blocked", at, key, approval_id=key, reason="edited")
            key = _edited(key)
        if not taken and self.run_ended_at:
            yield _line("action_blocked", self.run_ended_at, key, approval_id=key, reason="the decision was not taken")

    def _executed(self) -> Iterator[_Line]:
        """A receipt of a yes comes right before the act; a result shows that there was one, whatever was decided."""
        receipts = [at for row in self.resolutions if row.action != Action.REJECT for at in self.taken.get(row.pk, [])]
        edited = self._first is not None and _is_edited(self._first)
        text = (self._first.arguments if self._first else "") or self.call.arguments
        key, action = _edited(self._key) if edited else self._key, _action(self.call, self.call.name, _digest(text))
        for receipt, result in zip_longest(receipts, self.results):
            early = result and self._first and result < self._first.decided_at
            yield _line("action_executed", result if early or not receipt else receipt, key, action, approval_id=key)

    @property
    def _key(self) -> str:
        return str(self.call.pk)

    @property
    def _first(self) -> Resolution | None:
        return self.resolutions[0] if self.resolutions else None


def _is_edited(row: Resolution) -> bool:
    return row.final_digest != row.digest


def _edited(key: str) -> str:
    return f"{key}:edited"


def _digest(arguments: str) -> str:
    """Computed again from the text."""
    try:
        return canonical.digest(arguments)
    except Invalid:
        return hashlib.sha256(arguments.encode()).hexdigest()


def _action(call: OutputItem, tool: str, digest: str) -> Record:
    kind = "call" if call.request is None else str(call.request.get("kind") or "tool")
    return {"tool": tool.strip() or "unnamed", "operation": kind.strip() or "tool", "parameters": {"sha256": digest}}


def _line(
    type: str,
    at: datetime,
    key: str = "",
    action: Record | None = None,
    *,
    order: datetime | None = None,
    **facts: Any,
) -> _Line:
    """The same tool with the same arguments is the same intent: a no to it holds for every call."""
    record = {"type": type, "timestamp": time(at), **facts}
    if key:
        record["action_id"] = key
    if action:
        record |= {"action": action, "intent_id": f"{action['tool']} {action['parameters']['sha256']}"}
    return _Line(order or at, record)
