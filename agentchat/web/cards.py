"""A request as the card that a person decides on, and what became of it in a sentence."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from agentchat.rendering import times, visible
from agentchat.web import words
from agentchat.web.words import Wire

HEADINGS = {
    "command": "Run this command?",
    "edit": "Make this change?",
    "plan": "Start with this plan?",
    "question": "The agent asks you",
}
WORDS = {"low": "Low risk", "medium": "Medium risk", "high": "High risk", "destructive": "Destructive"}
HEAD_LINES, TAIL_LINES, LONG_LINES = 12, 10, 30
ICONS = {
    "pending": "gate", "recorded": "spin", "delivered": "spin", "ran": "ran", "failed": "warn",
    "rejected": "no", "expired": "clock", "stopped": "stop", "gone": "gone",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Step:
    """A dot of the track: what happened, when, and `on` as the design's `data-on`."""

    text: str
    at: str | None = None
    on: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the shown text; `hidden` ones are opened by a button that counts what it holds."""

    text: str
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Card:
    item: Wire
    chat: Wire
    agent: str
    kind: str
    state: str
    heading: str
    shown: str
    """The exact text that is decided on."""
    parts: list[Part] = field(default_factory=list)
    risk: Wire | None = None
    suspects: list[Any] = field(default_factory=list)
    sentence: str = ""
    why: str = ""
    reason: str = ""
    own: str = ""
    """The person's own version, if there is one."""
    track: list[Step] = field(default_factory=list)
    stale: bool = False
    lost: str = ""

    @property
    def id(self) -> str:
        return str(self.item["id"])

    @property
    def pending(self) -> bool:
        return self.state == "pending"

    @property
    def icon(self) -> str:
        return ICONS[self.state]

    @property
    def request(self) -> Wire:
        return self.item.get("request") or {}

    @property
    def careful(self) -> bool:
        """Allowing takes a second step, and no number key does it."""
        level = (self.risk or {}).get("level")
        return level in ("high", "destructive") or bool(self.suspects) or self.cut

    @property
    def cut(self) -> bool:
        """The arguments are longer than what the page holds."""
        return "arguments_bytes" in self.item

    @property
    def risk_word(self) -> str:
        return WORDS.get((self.risk or {}).get("level", ""), "")

    @property
    def cwd(self) -> str:
        return str(self.request.get("cwd") or self.chat.get("workspace") or "")

    @property
    def editable(self) -> bool:
        return self.kind == "command" and not self.cut and words.command(self.item) is not None

    @property
    def lines(self) -> int:
        return self.shown.count("\n") + 1

    @property
    def hidden_lines(self) -> int:
        return sum(part.text.count("\n") + 1 for part in self.parts if part.hidden)

    @property
    def digest(self) -> str:
        return str(self.item.get("digest") or "")

    @property
    def short_digest(self) -> str:
        return f"{self.digest[:4]} {self.digest[4:8]}"

    @property
    def settled_at(self) -> str | None:
        resolution = self.item.get("resolution")
        return resolution["decided_at"] if resolution else self.item.get("ended_at")

    @property
    def one_line(self) -> str:
        """What was asked, for a row of a list."""
        if self.kind == "question":
            return self.heading
        return " ".join((words.command(self.item) or self.request.get("title") or self.heading).split())[:400]

    @property
    def is_code(self) -> bool:
        return self.kind == "command"


def build(item: Wire, chat: Wire, me: str, outputs: list[Wire] | None = None, *, tried: str = "",
          stale: bool = False) -> Card:  # fmt: skip
    """`tried` is the decision that this person sent and that came too late."""
    kind = words.kind_of(item)
    shown = words.command(item) if kind == "command" else None
    shown = words.pretty(item) if shown is None else shown
    settled = _settled(item, words.agent(chat), me, outputs or [])
    risk = (item.get("request") or {}).get("risk")
    return Card(
        item=item, chat=chat, agent=words.agent(chat), kind=kind, heading=_heading(item, kind), shown=shown,
        parts=_parts(shown), risk=risk, suspects=list(visible.suspects(shown)), stale=stale,
        lost=_lost(item.get("resolution"), tried, me), **settled,
    )  # fmt: skip


def _heading(item: Wire, kind: str) -> str:
    questions = (item.get("request") or {}).get("questions") or []
    if kind == "question" and questions:
        return str(questions[0].get("question") or HEADINGS["question"])
    return HEADINGS.get(kind) or f"Let it use {item.get('name') or 'this tool'}?"


def _parts(text: str) -> list[Part]:
    """Long text keeps its head and its tail in sight; what lies between is counted."""
    lines = text.split("\n")
    if len(lines) <= LONG_LINES:
        return [Part(text)]
    cuts = (lines[:HEAD_LINES], lines[HEAD_LINES:-TAIL_LINES], lines[-TAIL_LINES:])
    return [Part("\n".join(piece), hidden=number == 1) for number, piece in enumerate(cuts)]


def _settled(item: Wire, agent: str, me: str, outputs: list[Wire]) -> Wire:
    """State, sentence, reason and track of a request that is decided (or the state alone, if it is not)."""
    resolution = item.get("resolution")
    if resolution is None:
        if item["status"] == "pending":
            return {"state": "pending"}
        return {"state": "gone", "sentence": f"{agent} ended before this was decided.", "why": "It did not run."}
    cause, action = resolution["cause"], resolution["action"]
    if cause in ("timeout", "stopped", "agent_gone"):
        return {**_nobody(cause, agent), "track": [_recorded(resolution)]}
    who = _who(resolution, me)
    if action == "reject":
        return {
            "state": "rejected",
            "sentence": f"{who} refused this. It did not run."
            if cause == "rule"
            else f"{who} denied this. It did not run.",
            "reason": resolution.get("reason") or "",
            "track": _track(resolution, f"{agent} read it", Step("not run", on="1")),
        }
    if action == "answer":
        delivered = resolution.get("receipt")
        return {
            "state": "ran" if delivered else "recorded",
            "sentence": f"{who} answered." if not who.startswith("Your") else f"{who} answered this.",
            "why": "" if delivered else f"On its way to {agent}.",
            "reason": answered(item, resolution),
            "track": _track(resolution, f"{agent} read it", None),
        }
    return _allowed(item, resolution, who, agent, outputs)


def _allowed(item: Wire, resolution: Wire, who: str, agent: str, outputs: list[Wire]) -> Wire:
    own = own_version(resolution)
    sentence = f"{who} allowed {'an own version' if who != 'You' else 'your own version'} once." if own else (
        f"{who} allowed this." if resolution["cause"] in ("rule", "mode") else f"{who} allowed this once.")  # fmt: skip
    state, why = "recorded", f"On its way to {agent}."
    if resolution.get("receipt"):
        state, why = "delivered", f"{agent} has it and runs it now."
    last = Step("not run yet")
    if item["status"] in ("completed", "failed", "interrupted"):
        facts = result(item, outputs)
        bad = item["status"] != "completed" or facts["exit_code"] not in (None, 0)
        state, why = "failed" if bad else "ran", ""
        verb = "interrupted" if item["status"] == "interrupted" else "ran"
        last = Step(", ".join(filter(None, (verb, facts["exit"], facts["time"]))), on="bad" if bad else "ok")
    return {
        "state": state, "sentence": sentence, "why": why, "own": own,
        "track": _track(resolution, "delivered", last),
    }  # fmt: skip


def _nobody(cause: str, agent: str) -> Wire:
    if cause == "timeout":
        why = f"It did not run. {agent} was told that nobody answered, not that you said no."
        return {"state": "expired", "sentence": "Nobody answered in time.", "why": why}
    if cause == "stopped":
        return {
            "state": "stopped",
            "sentence": "The run was stopped before this was decided.",
            "why": "It did not run.",
        }
    sentence = f"{agent} is gone. Nobody waits for an answer."
    return {"state": "gone", "sentence": sentence, "why": "It did not run."}


def _track(resolution: Wire, delivered: str, last: Step | None) -> list[Step]:
    receipt = resolution.get("receipt")
    steps = [_recorded(resolution)]
    steps.append(Step(delivered, receipt["delivered_at"], "1") if receipt else Step("not delivered yet"))
    return [*steps, last] if last else steps


def _recorded(resolution: Wire) -> Step:
    return Step(f"no. {str(resolution['hash'])[:4]}, recorded", resolution["decided_at"], "1")


def _who(resolution: Wire, me: str) -> str:
    if resolution["cause"] == "rule":
        return "Your rule"
    if resolution["cause"] == "mode":
        return "The mode of this chat"
    name = resolution.get("decided_by") or "Somebody"
    return "You" if name == me else str(name)


def _lost(resolution: Wire | None, tried: str, me: str) -> str:
    """To the one who came second. The same decision twice is no news."""
    if not tried or not resolution or resolution["action"] == tried:
        return ""
    mine = {"approve": "yes", "reject": "no", "answer": "answer"}.get(tried, "decision")
    return f"Your {mine} came later and was not used. If this must not go on, stop the run."


def own_version(resolution: Wire) -> str:
    text = resolution.get("arguments")
    if not text:
        return ""
    try:
        parsed = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return str(text)
    value = parsed.get("command") if isinstance(parsed, dict) else None
    return value if isinstance(value, str) else json.dumps(parsed, indent=2, ensure_ascii=False)


def answered(item: Wire, resolution: Wire) -> str:
    """The answers on one line each, the question in front if there are several."""
    answers = resolution.get("answers") or {}
    questions = (item.get("request") or {}).get("questions") or []
    lines = []
    for question in questions:
        given = answers.get(str(question.get("id"))) or {}
        if isinstance(given, dict):
            said = ", ".join([*map(str, given.get("choices") or []), *filter(None, [given.get("text")])])
        else:
            said = str(given)
        lines.append(f"{question.get('header') or question.get('question')}: {said}" if len(questions) > 1 else said)
    return "\n".join(lines)


def result(item: Wire, outputs: list[Wire]) -> Wire:
    """How a call ended: exit code and time, wherever the provider noted them."""
    metas = [row.get("meta") or {} for row in (item, *outputs)]
    code = next((meta["exit_code"] for meta in metas if meta.get("exit_code") is not None), None)
    seconds = next((meta["seconds"] for meta in metas if meta.get("seconds") is not None), None)
    if seconds is None and not item.get("request"):
        seconds = times.seconds_between(item.get("created_at"), item.get("ended_at"))
    return {
        "exit_code": code,
        "exit": "" if code is None else f"exit {code}",
        "time": times.duration(seconds) if seconds is not None else "",
    }
