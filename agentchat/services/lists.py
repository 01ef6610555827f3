"""The lists of a person: their chats, and the requests that wait for them."""

from __future__ import annotations

from typing import Any

from django.db.models import Case, Count, Exists, OuterRef, Q, When

from agentchat import wire
from agentchat.events import ACTIVE, RunStatus
from agentchat.models import Chat, Message, OutputItem, Run
from agentchat.services import clean
from agentchat.services.snapshot import item_of
from agentchat.wire import Wire

CHATS = 100
REQUESTS = 100
DECIDED = 20


def chats(user: Any, *, q: str = "", archived: bool = False) -> Any:
    """A person's chats, newest first. `q` searches titles and what was said."""
    rows = Chat.objects.visible_to(user).filter(archived_at__isnull=not archived)
    if q := clean.text(q):
        said = Message.objects.filter(chat=OuterRef("pk"), text__icontains=q, removed_at=None)
        rows = rows.filter(Q(title__icontains=q) | Exists(said))
    return rows.order_by("-pinned", "-updated_at", "-pk")


def chat_list(user: Any, q: str = "") -> Wire:
    """`{needs, working, done, pending}`: rows of chats by what they want from the person, and how many requests wait."""
    pending = dict(
        _pending(user).order_by().values("message__chat").annotate(n=Count("pk")).values_list("message__chat", "n")
    )
    newest = Run.objects.filter(chat=OuterRef("pk")).exclude(status=RunStatus.QUEUED).order_by("-created_at")
    running = Exists(Run.objects.filter(chat=OuterRef("pk"), status__in=(*ACTIVE, RunStatus.QUEUED)))
    waiting = Case(When(pk__in=list(pending), then=1), default=0)
    rows = chats(user, q=q).annotate(running=running, last_status=newest.values("status")[:1], waiting=waiting)
    groups: Wire = {"needs": [], "working": [], "done": [], "pending": sum(pending.values())}
    for row in rows.order_by("-waiting", "-running", "-pinned", "-updated_at")[:CHATS]:
        group = "needs" if row.pk in pending else "working" if row.running else "done"
        extra = {"pending": pending.get(row.pk, 0), "status": row.last_status}
        groups[group].append(wire.chat(row) | extra)
    return groups


def _pending(user: Any) -> Any:
    return OutputItem.objects.visible_to(user).pending()


def pending_count(user: Any) -> int:
    return int(_pending(user).count())


def inbox(user: Any) -> Wire:
    """`{pending, decided, pending_count}`; rows `{item, chat}`, the longest waiting first, then what was decided last."""
    rows = OutputItem.objects.visible_to(user).select_related("message__chat", "resolution__receipt")
    waiting = rows.pending().order_by("created_at")
    decided = rows.filter(resolution__isnull=False).exclude(resolution__cause="mode").order_by("-resolution__pk")
    return {
        "pending": [_row(row) for row in waiting[:REQUESTS]],
        "decided": [_row(row) for row in decided.defer("text", "html", "native")[:DECIDED]],
        "pending_count": pending_count(user),
    }


def _row(row: OutputItem) -> Wire:
    return {"item": item_of(row), "chat": wire.chat(row.message.chat)}
