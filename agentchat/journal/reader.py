"""Replay: events of a chat after a cursor."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from agentchat import conf
from agentchat.exceptions import CursorTooOld, Gone
from agentchat.journal.entry import frame
from agentchat.models import Chat, Event


@dataclass(frozen=True, slots=True)
class Page:
    """Contiguous events; `bodies[0]` has the number `first`. `last_seq` is that of the chat at that moment."""

    first: int
    bodies: list[str]
    last_seq: int

    @property
    def cursor(self) -> int:
        return self.first + len(self.bodies) - 1

    def frame(self) -> str:
        return frame(self.first, self.bodies)


def read(chat_id: UUID, after: int, limit: int = conf.EVENTS_PER_READ) -> Page:
    """Events after `after`, a bounded number of them.

    Raises CursorTooOld if some of them are no longer kept (or the cursor is from the future), Gone without a chat.
    """
    chat = Chat.objects.filter(pk=chat_id).values("last_seq", "floor_seq", "deleted_at").first()
    if chat is None:
        raise Gone("This chat does not exist.")
    if after < chat["floor_seq"] or after > chat["last_seq"]:
        raise CursorTooOld()
    rows = Event.objects.filter(chat_id=chat_id, seq__gt=after).order_by("seq").values_list("seq", "body")[:limit]
    bodies: list[str] = []
    size = 0
    for number, (seq, body) in enumerate(rows, after + 1):
        if seq != number:
            raise CursorTooOld()
        bodies.append(body)
        size += len(body)
        if size > conf.EVENT_BYTES_PER_READ:
            break
    return Page(after + 1, bodies, max(chat["last_seq"], after + len(bodies)))


def last_seqs(chats: list[UUID]) -> dict[UUID, int]:
    """One query for all chats that a process shows."""
    return dict(Chat.objects.filter(pk__in=chats).values_list("pk", "last_seq"))
