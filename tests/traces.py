"""Traces of runs: rows to make them of, and checking them as somebody outside does, with `agentack check`."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from agentack import cli
from django.core.management import call_command

from agentchat.events import Action, ItemStatus, ItemType, RunStatus, Via
from agentchat.models import Message, OutputItem, Receipt, Resolution, clock
from agentchat.services import approvals, canonical, runs
from agentchat.services.approvals import Decision
from tests import made

PASS, FAIL, UNREADABLE, INCOMPLETE = range(4)
"""The codes with which it ends."""


def check(trace: str, policy: str = "") -> tuple[int, set[str]]:
    """How `agentack check` ends, and the rules that it found broken."""
    with tempfile.TemporaryDirectory() as folder:
        file, report, rules = (Path(folder, name) for name in ("trace.jsonl", "report.json", "agentack.toml"))
        file.write_text(trace, "utf-8")
        rules.write_text(policy)
        code = cli.main(["check", str(file), "--json", str(report), *(["--policy", str(rules)] if policy else [])])
        return code, set(json.loads(report.read_text())["result"]["rule_counts"])


def lines(records: Iterable[Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def records(trace: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in trace.splitlines()]


def kinds(trace: str) -> list[str]:
    """The records in short: `proposed`, `requested`, `allow`, `deny`, `executed`, `blocked`, `interrupt`, `end`."""
    return [record.get("decision") or record["type"].rpartition("_")[2] for record in records(trace)]


# Rows, without an agent


def decided(message: Message, action: str = "approve", command: str = "make", **more: Any) -> OutputItem:
    """A request that is decided and taken; a yes has a result too."""
    item = made.question_in(message) if action == "answer" else made.request_in(message, {"command": command})
    taken(answered(item, action, **more))
    if action == "approve":
        result_of(item)
    return item


def answered(item: OutputItem, action: str = "approve", **more: Any) -> Resolution:
    decision = Decision(action, item.digest, **more)
    return approvals.decide(item.message.chat.owner, item.pk, decision, via=Via.API, proof="test")


def taken(row: Resolution) -> Receipt:
    run, status = row.item.message.run, ItemStatus.REJECTED if row.action == Action.REJECT else ItemStatus.COMPLETED
    OutputItem.objects.filter(pk=row.item_id).update(status=status)
    return Receipt.objects.create(resolution=row, run=run, worker="test", delivered_at=clock.now())


def result_of(item: OutputItem, text: str = "done") -> OutputItem:
    return made.item_in(item.message, ItemType.OUTPUT, output_of=item, call_id=item.call_id, name=item.name, text=text)


def unasked(message: Message, name: str = "read", arguments: str = '{"path":"README.md"}') -> OutputItem:
    """A call that an agent made without asking."""
    digest = canonical.digest(arguments)
    return made.item_in(message, ItemType.CALL, name=name, call_id="u", arguments=arguments, digest=digest)


def finished(message: Message) -> str:
    runs.finish(message.run.pk, RunStatus.COMPLETED)
    return exported(message)


def exported(message: Message) -> str:
    """What the command writes."""
    out = io.StringIO()
    call_command("export_trace", str(message.run.pk), stdout=out, stderr=out)
    return out.getvalue()
