"""Messages of the wire as the turns, pieces and run bar that the templates show."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from agentchat.rendering import times
from agentchat.web import cards, words
from agentchat.web.cards import Card
from agentchat.web.words import Wire

ACTIVE = ("running", "waiting")
SHOWN_AS_ITSELF = {"message": "text", "reasoning": "reasoning", "plan": "plan", "notice": "notice"}


@dataclass(frozen=True, slots=True)
class Output:
    """Raw terminal text: closed lines, and the open one that the page goes on writing."""

    item: Wire
    head: str
    tail: str
    open: str
    length: int

    @property
    def live(self) -> bool:
        return bool(self.item["status"] == "in_progress")

    @property
    def omitted(self) -> int:
        return int((self.item.get("cut") or {}).get("omitted") or 0)

    @property
    def lines(self) -> int:
        text = self.head + self.tail
        return text.count("\n") + (not text.endswith("\n") if text else 0)


@dataclass(frozen=True, slots=True)
class Piece:
    """One thing on the spine. `kind` names its template."""

    kind: str
    item: Wire
    chat: Wire
    outputs: list[Output] = field(default_factory=list)
    card: Card | None = None

    @property
    def id(self) -> str:
        return str(self.item["id"])

    @property
    def live(self) -> bool:
        return bool(self.item["status"] in ("in_progress", "pending"))

    @property
    def text(self) -> str:
        return whole(self.item)

    @property
    def rest(self) -> str:
        """What the finished blocks do not cover yet."""
        cut = self.item.get("cut")
        end = int(self.item.get("html_end") or 0)
        if cut and end > cut["head"]:
            end = max(cut["head"], end - cut["omitted"])
        return self.text[end:]

    @property
    def length(self) -> int:
        return len(self.text) + int((self.item.get("cut") or {}).get("omitted") or 0)

    @property
    def verb(self) -> str:
        return words.verb(self.item)[0]

    @property
    def icon(self) -> str:
        return words.verb(self.item)[1]

    @property
    def argument(self) -> str:
        return words.argument(self.item)

    @property
    def arguments(self) -> str:
        """In full, where the row cannot show them on its line."""
        full = words.command(self.item) or words.pretty(self.item)
        parsed = words.arguments(self.item)
        said = isinstance(parsed, dict) and list(parsed.values()) == [self.argument]
        return "" if said or full == self.argument or full in ("null", "{}") else full

    @property
    def result(self) -> Wire:
        return cards.result(self.item, [output.item for output in self.outputs])

    @property
    def failed(self) -> bool:
        return self.item["status"] in ("failed", "interrupted") or self.result["exit_code"] not in (None, 0)

    @property
    def opened(self) -> bool:
        return self.live or self.failed or self.card is not None

    @property
    def has_row(self) -> bool:
        """A decided request shows its work under the card, once there is any."""
        return self.card is None or bool(self.outputs)

    @property
    def by_mode(self) -> str:
        """The mode or rule that let this call through."""
        resolution = self.item.get("resolution")
        return resolution["cause"] if resolution and resolution["cause"] in ("mode", "rule") else ""

    @property
    def thought_for(self) -> str:
        return times.duration(times.seconds_between(self.item.get("created_at"), self.item.get("ended_at")))

    @property
    def steps(self) -> list[Wire]:
        return list((self.item.get("meta") or {}).get("steps") or [])

    @property
    def steps_done(self) -> int:
        return sum(step.get("state") == "done" for step in self.steps)


@dataclass(frozen=True, slots=True)
class Turn:
    """What a person said and what the agent made of it. Its id is the answer's, or the message's if there is none."""

    said: Wire | None
    answer: Wire | None
    pieces: list[Piece]

    @property
    def id(self) -> str:
        return str((self.answer or self.said or {})["id"])

    @property
    def position(self) -> int:
        return int((self.said or self.answer or {})["position"])

    @property
    def run(self) -> Wire:
        return (self.answer or {}).get("run") or {}

    @property
    def error(self) -> str:
        return str((self.answer or {}).get("error") or self.run.get("error") or "")

    @property
    def ended(self) -> bool:
        return self.run.get("status") not in (*ACTIVE, "queued", None)

    @property
    def has_not_begun(self) -> bool:
        return self.run.get("status") == "queued" and not self.run.get("started_at")


@dataclass(frozen=True, slots=True)
class Transcript:
    chat: Wire
    turns: list[Turn]
    queued: list[Turn]
    cursor: int
    before: int | None
    """Where the older pages begin; None if there are none."""
    agent: str

    @property
    def latest(self) -> Turn | None:
        return self.turns[-1] if self.turns else None

    @property
    def active(self) -> Turn | None:
        found = (turn for turn in reversed(self.turns) if turn.run.get("status") in (*ACTIVE, "queued"))
        return next(found, None)

    @property
    def for_a_worker(self) -> str | None:
        """The run that waits for nothing but a free worker."""
        if self.active:
            return str(self.active.run["id"]) if self.active.run["status"] == "queued" else None
        return str(self.queued[0].run["id"]) if self.queued else None

    @property
    def waiting(self) -> list[Card]:
        found = [piece.card for turn in self.turns for piece in turn.pieces if piece.card and piece.card.pending]
        return list(found)

    @property
    def bar(self) -> Wire:
        """The run bar: its state, and what the agent is at."""
        turn = self.active
        if turn is None:
            return self._ended()
        state = "stopping" if turn.run.get("stopping") else "waiting" if self.waiting else turn.run["status"]
        state = "running" if state == "waiting" and not self.waiting else state
        at = next((piece for piece in reversed(turn.pieces) if piece.live), None)
        doing = f"{at.verb} {at.argument}" if at and at.item["type"] == "function_call" else ""
        return {"state": state, "run": turn.run, "doing": doing, "waiting": self.waiting}

    def _ended(self) -> Wire:
        run = self.latest.run if self.latest else {}
        seconds = times.seconds_between(run.get("started_at"), run.get("ended_at"))
        said = (self.latest.said or {}).get("text", "") if self.latest else ""
        return {"state": run.get("status") or "none", "run": run, "took": times.duration(seconds), "said": said}

    @property
    def plan(self) -> Piece | None:
        found = [piece for turn in self.turns for piece in turn.pieces if piece.kind == "plan"]
        return found[-1] if found else None


def build(snapshot: Wire, me: str) -> Transcript:
    chat, messages = snapshot["chat"], snapshot["messages"]
    turns = _turns(messages, chat, me)
    return Transcript(
        chat=chat,
        turns=[turn for turn in turns if not turn.has_not_begun],
        queued=[turn for turn in turns if turn.has_not_begun],
        cursor=snapshot["cursor"],
        before=messages[0]["position"] if messages and snapshot.get("more") else None,
        agent=words.agent(chat),
    )


def _turns(messages: list[Wire], chat: Wire, me: str) -> list[Turn]:
    answers = {message["parent"]: message for message in messages if message["role"] == "assistant"}
    said = {message["id"] for message in messages if message["role"] == "user"}
    turns = []
    for message in messages:
        if message["role"] == "user":
            answer = answers.get(message["id"])
            turns.append(Turn(message, answer, pieces(answer, chat, me)))
        elif message["parent"] not in said:
            turns.append(Turn(None, message, pieces(message, chat, me)))
    return turns


def pieces(answer: Wire | None, chat: Wire, me: str) -> list[Piece]:
    items = (answer or {}).get("items") or []
    outputs: dict[Any, list[Wire]] = {}
    for item in items:
        if item["type"] == "function_call_output":
            outputs.setdefault(item.get("call"), []).append(item)
    return [
        piece(item, outputs.get(item["id"], []), chat, me) for item in items if item["type"] != "function_call_output"
    ]


def piece(item: Wire, outputs: list[Wire], chat: Wire, me: str, **card: Any) -> Piece:
    """`card` is passed on to `cards.build`."""
    shown = [output(row) for row in outputs if row["status"] == "in_progress" or whole(row)]
    if item["type"] != "function_call":
        return Piece(SHOWN_AS_ITSELF.get(item["type"], "text"), item, chat)
    decided = (item.get("resolution") or {}).get("cause")
    silent = decided in ("mode", "rule") and item["resolution"]["action"] != "reject"
    if not item.get("request") or silent:
        return Piece("call", item, chat, shown)
    return Piece("call", item, chat, shown, cards.build(item, chat, me, outputs, **card))


def output(item: Wire) -> Output:
    text, cut = whole(item), item.get("cut")
    head = text[: cut["head"]] if cut else ""
    tail = text[cut["head"] :] if cut else text
    length = len(text) + (int(cut["omitted"]) if cut else 0)
    if item["status"] != "in_progress":
        return Output(item, head, tail, "", length)
    closed, newline, rest = tail.rpartition("\n")
    return Output(item, head, closed + newline, rest, length)


def whole(item: Wire) -> str:
    """The text of an item, whichever part carries it."""
    parts = item.get("content") or item.get("output") or []
    return "".join(str(part.get("text") or "") for part in parts) or str(item.get("text") or "")
