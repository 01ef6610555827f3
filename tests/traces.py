"""Checking an exported trace as somebody outside does: with `agentack check`."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from agentack import cli

PASS, FAIL, UNREADABLE, INCOMPLETE = range(4)
"""The codes with which it ends."""


def check(trace: str) -> tuple[int, set[str]]:
    """How `agentack check` ends, and the rules that it found broken."""
    with tempfile.TemporaryDirectory() as folder:
        file, report = Path(folder, "trace.jsonl"), Path(folder, "report.json")
        file.write_text(trace, "utf-8")
        code = cli.main(["check", str(file), "--json", str(report)])
        found = json.loads(report.read_text()) if report.exists() else {"result": {"rule_counts": {}}}
        return code, set(found["result"]["rule_counts"])


def records(trace: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in trace.splitlines()]


def kinds(trace: str) -> list[str]:
    """The records in short: `proposed`, `requested`, `allow`, `deny`, `executed`, `blocked`, `interrupt`, `end`."""
    return [record.get("decision") or record["type"].rpartition("_")[2] for record in records(trace)]
