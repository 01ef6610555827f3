"""The items of one message while an agent writes it: what is in memory, and the journal entries that each change makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils import timezone

from agentchat import wire
from agentchat.events import ItemStatus, ItemType, Kind
from agentchat.journal.entry import SEQ, Entry, Event, Write, event
from agentchat.models import OutputItem, ids
from agentchat.rendering.markdown import Block, MarkdownStream
from agentchat.services.clean import Joiner
from agentchat.wire import Text

PROSE = (ItemType.MESSAGE, ItemType.REASONING)
OPEN = (ItemStatus.IN_PROGRESS, ItemStatus.PENDING)
CHECKPOINT_CHARS = 4_096
"""Text shorter than this is stored with its item's end only; until then it is in the journal."""


@dataclass(slots=True, eq=False)
class Piece:
    """One item. `row` is never saved; it holds the columns as they will be stored."""

    row: OutputItem
    parts: list[str] = field(default_factory=list)
    chars: int = 0
    stored: int = 0
    """How many code points of the text the row in the database holds."""
    html: list[str] = field(default_factory=list)
    markdown: MarkdownStream | None = None
    unread: str = ""
    """Text of an earlier Output that `markdown` has still to read."""
    joiner: Joiner = field(default_factory=Joiner)
    id: UUID = field(init=False)
    was_asked: bool = False
    """A request that an earlier Output made, and that has told nobody what was decided."""

    def __post_init__(self) -> None:
        self.id = UUID(str(self.row.pk))

    @classmethod
    def restored(cls, row: OutputItem) -> Piece:
        """Of a row that an earlier Output of the same message wrote; its text goes on where it ended."""
        piece = cls(row, [row.text], len(row.text), len(row.text), [row.html])
        piece.was_asked = row.request is not None and row.status == ItemStatus.PENDING
        if row.type in PROSE:
            piece.markdown, piece.unread = MarkdownStream(row.html_end), row.text[row.html_end :]
        return piece

    @property
    def is_open(self) -> bool:
        return self.row.status in OPEN

    @property
    def text(self) -> str:
        if len(self.parts) > 1:
            self.parts = ["".join(self.parts)]
        return self.parts[0] if self.parts else ""

    def grow(self, text: str) -> list[Event]:
        """Take text that is on its way to the journal as a delta; returns the events of the blocks that it finished."""
        self.parts.append(text)
        self.chars += len(text)
        return [self._block(block) for block in self._read(text)]

    def finish_text(self) -> list[Event]:
        if self.markdown is None:
            return []
        return [self._block(block) for block in [*self._read(""), *self.markdown.finish()]]

    def _read(self, text: str) -> list[Block]:
        if self.markdown is None:
            return []
        unread, self.unread = self.unread + text, ""
        return self.markdown.feed(unread)

    def _block(self, block: Block) -> Event:
        index = self.row.blocks
        self.html.append(block.html)
        self.row.html_end, self.row.blocks = block.end, index + 1
        return event(Kind.ITEM_BLOCK, item=str(self.id), index=index, html=block.html, end=block.end)

    def wants_checkpoint(self) -> bool:
        """Geometric, so that all rewriting together costs what the text costs."""
        return self.chars - self.stored > max(CHECKPOINT_CHARS, self.stored // 2)

    def checkpoint(self) -> Write:
        self.stored = self.chars
        return Write(OutputItem, self.id, self.text_columns(), guard={"version": self.row.version})

    def text_columns(self) -> dict[str, Any]:
        self.html = ["".join(self.html)]
        return {
            "text": self.text,
            "html": self.html[0],
            "html_end": self.row.html_end,
            "blocks": self.row.blocks,
            "checkpoint_seq": SEQ,
        }

    def wire(self) -> dict[str, Any]:
        self.row.html = "".join(self.html)
        return wire.item(self.row, Text.of(self.text, self.row.type))


COLUMNS = (
    "message", "position", "type", "call_id", "parent_call_id", "output_of", "name", "arguments", "digest", "status",
    "request", "expires_at", "native", "meta", "version", "created_at", "ended_at",
)  # fmt: skip


class Pieces:
    """All pieces of a message, in order."""

    def __init__(self, message_id: UUID, chat_id: UUID) -> None:
        self.message_id, self.chat_id = message_id, chat_id
        self.all: list[Piece] = []

    def restore(self, rows: list[OutputItem]) -> None:
        self.all = [Piece.restored(row) for row in rows]

    # Finding

    def open_text(self, kind: ItemType) -> Piece | None:
        last = self.all[-1] if self.all else None
        return last if last and last.is_open and last.row.type == kind else None

    def call(self, call_id: str) -> Piece | None:
        """The latest call of an id: providers use an id again."""
        calls = (piece for piece in reversed(self.all) if piece.row.type == ItemType.CALL)
        return next((piece for piece in calls if piece.row.call_id == call_id), None)

    def output(self, call: Piece) -> Piece | None:
        return next((piece for piece in reversed(self.all) if piece.row.output_of_id == call.id), None)

    def of_type(self, kind: ItemType) -> Piece | None:
        return next((piece for piece in reversed(self.all) if piece.row.type == kind), None)

    @property
    def content(self) -> str:
        """The plain text of all message items, an empty line between them."""
        return "\n\n".join(piece.text for piece in self.all if piece.row.type == ItemType.MESSAGE and piece.text)

    # Changing: each returns the entry that says it

    def add(self, kind: ItemType, text: str = "", **columns: Any) -> tuple[Piece, Entry]:
        now = timezone.now()
        status = columns.pop("status", ItemStatus.IN_PROGRESS)
        row = OutputItem(
            pk=ids.random(), message_id=self.message_id, position=self._position(), type=kind, status=status,
            created_at=now, ended_at=None if status in OPEN else now, **columns,
        )  # fmt: skip
        piece = Piece(row, [text], len(text), len(text))
        if kind in PROSE:
            piece.markdown = MarkdownStream()
        self.all.append(piece)
        entry = Entry(self.chat_id, [event(Kind.ITEM_ADDED, message=str(self.message_id), item=piece.wire())])
        values = {name: getattr(row, f"{name}_id" if name in ("message", "output_of") else name) for name in COLUMNS}
        entry.writes.append(Write(OutputItem, row.pk, values | piece.text_columns(), insert=True))
        return piece, entry

    def _position(self) -> int:
        return self.all[-1].row.position + 1 if self.all else 0

    def change(self, piece: Piece, text: str | None = None, **columns: Any) -> Entry:
        """Change columns; `text` replaces the whole text of an output."""
        row, before, version = piece.row, piece.row.status, piece.row.version
        events = piece.finish_text() if columns.get("status", before) not in OPEN and before in OPEN else []
        if text is not None:
            piece.parts, piece.chars = [text], len(text)
        if columns.get("status", before) not in OPEN and row.ended_at is None:
            columns["ended_at"] = timezone.now()
        columns["version"] = version + 1
        for name, value in columns.items():
            setattr(row, name, value)
        changes = _on_the_wire(piece, columns, text is not None)
        piece.stored = piece.chars
        write = Write(OutputItem, piece.id, columns | piece.text_columns(), guard={"version": version})
        return Entry(self.chat_id, [*events, event(Kind.ITEM_CHANGED, item=str(piece.id), changes=changes)], [write])


_HIDDEN = {"native"}
_OF_A_CALL = {"arguments", "digest", "request", "expires_at"}


def _on_the_wire(piece: Piece, columns: Mapping[str, Any], has_text: bool) -> dict[str, Any]:
    row = piece.row
    changes = {name: _value(value) for name, value in columns.items() if name not in _HIDDEN | _OF_A_CALL}
    if _OF_A_CALL & set(columns):
        changes |= wire.call(row.arguments, row.digest, row.request, row.expires_at)
    if has_text:
        changes |= wire.output(Text.of(piece.text, row.type))
    return changes


def _value(value: Any) -> Any:
    return wire.time(value) if isinstance(value, datetime) else value
