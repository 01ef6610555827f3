"""Writing one message through the journal: loads what is there, remembers what is open, and knows when it must stop."""

from __future__ import annotations

import asyncio
import time
from typing import Any
from uuid import UUID

from agentchat import conf
from agentchat.events import ItemStatus, ItemType
from agentchat.exceptions import Gone, Invalid, MessageEnded
from agentchat.journal import process
from agentchat.journal.entry import Committed, Entry, Write
from agentchat.models import Chat, Message, OutputItem, Run
from agentchat.services import fold
from agentchat.services.pieces import PROSE, Piece, Pieces


class MessageWriter:
    """`fence` is that of the run, when its worker took it; None: that of the chat, when this begins to write."""

    def __init__(self, chat_id: UUID, message_id: UUID, run_id: UUID | None, fence: int | None = None) -> None:
        self.chat_id, self.message_id, self.run_id = chat_id, message_id, run_id
        self.fence = fence
        self.pieces = Pieces(message_id, chat_id)
        self._chars = 0
        self._touched = time.monotonic()
        self.message: Message | None = None
        self.chat: Chat | None = None
        self.ended = False
        self._failed: Exception | None = None
        self._loading = asyncio.Lock()

    async def ready(self) -> None:
        """Raises Gone (the message or chat was deleted), MessageEnded, and what the journal could not write."""
        self._touched = time.monotonic()
        if self.message is None:
            async with self._loading:
                if self.message is None:
                    await process.insist(self._load)
        if self._failed:
            raise self._failed
        if self.ended:
            raise MessageEnded()

    def idle(self) -> float:
        """Seconds since the agent last did something."""
        return time.monotonic() - self._touched

    def _load(self) -> None:
        rows = Message.objects.filter(pk=self.message_id, chat=self.chat_id, chat__deleted_at=None, removed_at=None)
        message = rows.select_related("chat").first()
        if message is None:
            raise Gone()
        items = list(OutputItem.objects.filter(message=message).order_by("position"))
        grown = fold.progress(self.chat_id, items)
        for item in items:
            fold.complete(item, grown[str(item.pk)])
        self.pieces.restore(items)
        self.chat, self.ended = message.chat, message.ended_at is not None
        if self.fence is None:
            self.fence = message.chat.fence
        self.message = message

    def loaded(self) -> tuple[Chat, Message]:
        """After `ready`."""
        if self.chat is None or self.message is None:
            raise Gone()
        return self.chat, self.message

    # The journal

    def submit(self, entry: Entry) -> None:
        entry.done, entry.fence = self.note, self.fence
        process.current().writer.submit(entry)

    def note(self, result: Committed | Exception) -> None:
        """What could not be written ends the run at its next call."""
        if isinstance(result, Exception) and self._failed is None:
            self._failed = result

    async def commit(self, entry: Entry) -> None:
        """Write at once, and wait until it is in the database. Raises Gone, or why the database refused it."""
        entry.fence = self.fence
        try:
            await process.current().writer.committed(entry)
        except Exception as error:
            self.note(error)  # what is in memory was not stored, so nothing may build on it
            raise

    def entry_of_run(self, **columns: Any) -> Entry:
        return Entry(self.chat_id, [], [Write(Run, self.run_id, columns)])

    async def settled(self) -> None:
        """Wait until everything submitted so far is stored."""
        await self.commit(Entry(self.chat_id))
        if self._failed:
            raise self._failed

    async def room(self) -> None:
        writer = process.current().writer
        if writer.is_full:
            await writer.room()

    # Pieces

    def add(self, kind: ItemType, text: str = "", **columns: Any) -> Piece:
        if len(self.pieces.all) >= conf.ITEMS_PER_MESSAGE:
            raise Invalid(f"A message has at most {conf.ITEMS_PER_MESSAGE:,} items. Go on in a new message.")
        self._count(text)
        self.close_text()
        piece, entry = self.pieces.add(kind, text, **columns)
        self.submit(entry)
        return piece

    def _count(self, text: str) -> None:
        self._chars += len(text)
        if self._chars > conf.RUN_CHARS:
            raise Invalid(f"The agent said more than {conf.RUN_CHARS:,} characters in one message, so it was ended.")

    def change(self, piece: Piece, text: str | None = None, **columns: Any) -> None:
        self._count(text or "")
        self.submit(self.pieces.change(piece, text, **columns))

    def prose(self, kind: ItemType, text: str) -> None:
        piece = self.pieces.open_text(kind) or (self.add(kind) if text else None)
        if piece:
            self.grow(piece, text)

    def grow(self, piece: Piece, text: str) -> None:
        """Add raw text to a piece."""
        self._grow(piece, self._bounded(piece, piece.joiner.feed(text)))

    def _grow(self, piece: Piece, text: str) -> None:
        self._count(text)
        writer = process.current().writer
        for start in range(0, len(text), conf.DELTA_CHARS):
            part = text[start : start + conf.DELTA_CHARS]
            writer.delta(self.chat_id, piece.id, piece.chars, part, self.note, self.fence)
            for block in piece.grow(part):
                self.submit(Entry(self.chat_id, [block]))
        if piece.wants_checkpoint():
            self.submit(Entry(self.chat_id, [], [piece.checkpoint()]))

    @staticmethod
    def _bounded(piece: Piece, text: str) -> str:
        """At the bound the text ends, with a line that says so."""
        left = conf.RESULT_CHARS - piece.chars
        if len(text) <= left:
            return text
        says = f"\n[cut here: a text has at most {conf.RESULT_CHARS:,} characters]"
        return text[:left] + says if left > 0 else ""

    def end_stream(self, piece: Piece) -> None:
        """What the stream still held back (half a character) comes now."""
        self._grow(piece, piece.joiner.rest())

    def close_text(self) -> None:
        """Text ends when something else begins."""
        last = self.pieces.all[-1] if self.pieces.all else None
        if last and last.is_open and last.row.type in PROSE:
            self.end_stream(last)
            self.change(last, status=ItemStatus.COMPLETED)

    def checkpoint(self, entry: Entry) -> None:
        """Let an entry store the text of all open pieces."""
        for piece in self.pieces.all:
            if piece.is_open and piece.chars > piece.stored:
                entry.writes.append(piece.checkpoint())
