"""What is handed to the journal, and what comes back. Pure data."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import models

from agentchat.events import Kind

Event = tuple[Kind, str]
"""Kind and body; the body is a JSON object without `seq`."""


class _Seq:
    """Stands for the number of the entry's last event, known only at the commit."""

    def __repr__(self) -> str:
        return "SEQ"


SEQ: Any = _Seq()


@dataclass(slots=True)
class Write:
    """One row to insert, or to update by its primary key.

    `guard` names what an updated row must still hold; if it does not, the whole entry is refused with Gone.
    """

    model: type[models.Model]
    pk: Any
    values: dict[str, Any]
    insert: bool = False
    guard: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Entry:
    """Events of one chat and the rows that say the same, committed together."""

    chat_id: UUID
    events: list[Event] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    done: Callable[[Committed | Exception], None] | None = None
    durable: bool = False
    """Must survive a power failure too: the use of a decision, which must not happen twice."""
    fence: int | None = None
    """Written only while the chat's fence is this; None: whoever runs there."""


@dataclass(frozen=True, slots=True)
class Committed:
    """Events of one chat that are in the database: `events[0]` has the number `first`."""

    chat_id: UUID
    first: int
    events: tuple[Event, ...]

    @property
    def last(self) -> int:
        return self.first + len(self.events) - 1


def encode(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def body(kind: Kind, payload: dict[str, Any]) -> str:
    return encode({"kind": kind, **payload})


def event(kind: Kind, **payload: Any) -> Event:
    return kind, body(kind, payload)


def numbered(seq: int, body: str) -> str:
    """The event as it stands on the wire."""
    return f'{{"seq":{seq},{body[1:]}'


def frame(first: int, bodies: list[str]) -> str:
    """A WebSocket frame of contiguous events."""
    events = ",".join(numbered(seq, body) for seq, body in enumerate(bodies, first))
    return f'{{"type":"events","cursor":{first + len(bodies) - 1},"events":[{events}]}}'
