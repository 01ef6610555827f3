"""For a viewer whose line is slower than the stream: many events as few, with the text of an item in one piece.

Of long output of a call only the end comes, as nobody is shown more; what is left out is counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

from agentchat import conf
from agentchat.events import ItemType, Kind
from agentchat.exceptions import CursorTooOld
from agentchat.journal import reader
from agentchat.journal.entry import event, numbered
from agentchat.models import OutputItem
from agentchat.rendering.cut import HEAD, SLACK, TAIL

_DELTA, _BLOCK = (f'{{"kind":"{kind}"' for kind in (Kind.ITEM_DELTA, Kind.ITEM_BLOCK))
Numbered = tuple[int, str]


@dataclass(slots=True)
class _Text:
    """What an item grew by in one go. `seq` is the first event of it."""

    seq: int
    item: str
    offset: int
    parts: list[str] = field(default_factory=list)

    def bodies(self, outputs: set[UUID]) -> Iterator[str]:
        text = "".join(self.parts)
        head = max(0, HEAD - self.offset)
        is_long = self.offset + len(text) > HEAD + TAIL + SLACK and len(text) > head + TAIL
        if not is_long or UUID(self.item) not in outputs:
            yield self._body(0, text)
            return
        if head:
            yield self._body(0, text[:head])
        yield self._body(len(text) - TAIL, text[-TAIL:], skipped=len(text[head:-TAIL].encode()))

    def _body(self, start: int, text: str, **more: int) -> str:
        return event(Kind.ITEM_DELTA, item=self.item, offset=self.offset + start, text=text, **more)[1]


@dataclass(frozen=True, slots=True)
class Condensed:
    """All events from a cursor up to `cursor`, said in fewer."""

    cursor: int
    last_seq: int
    events: list[Numbered]

    def frame(self) -> str:
        events = ",".join(numbered(seq, body) for seq, body in self.events)
        return f'{{"type":"events","cursor":{self.cursor},"events":[{events}]}}'


def read(chat_id: UUID, after: int) -> Condensed:
    """Raises CursorTooOld, also if there is more than a snapshot would cost, and Gone without a chat."""
    said: list[Numbered | _Text] = []
    growing: dict[str, _Text] = {}
    cursor = after
    for _ in range(conf.CONDENSED_PAGES):
        page = reader.read(chat_id, cursor)
        for seq, body in enumerate(page.bodies, page.first):
            _say(said, growing, seq, body)
        cursor = page.cursor
        if cursor >= page.last_seq:
            return Condensed(cursor, page.last_seq, list(_written(said)))
    raise CursorTooOld()


def _say(said: list[Numbered | _Text], growing: dict[str, _Text], seq: int, body: str) -> None:
    """Text joins what the item grew by before, unless something else than text was said in between."""
    if not body.startswith(_DELTA):
        said.append((seq, body))
        if not body.startswith(_BLOCK):
            growing.clear()
        return
    delta = json.loads(body)
    if delta["item"] not in growing:
        growing[delta["item"]] = _Text(seq, delta["item"], delta["offset"])
        said.append(growing[delta["item"]])
    growing[delta["item"]].parts.append(delta["text"])


def _written(said: list[Numbered | _Text]) -> Iterator[Numbered]:
    items = {UUID(one.item) for one in said if isinstance(one, _Text)}
    outputs = set(OutputItem.objects.filter(pk__in=items, type=ItemType.OUTPUT).values_list("pk", flat=True))
    for one in said:
        if isinstance(one, _Text):
            for body in one.bodies(outputs):
                yield one.seq, body
        else:
            yield one
