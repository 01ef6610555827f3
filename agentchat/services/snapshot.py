"""All that a browser needs to draw a chat, in a fixed number of queries, with the number of the event it is true at."""

from __future__ import annotations

from collections import defaultdict
from typing import Any
from uuid import UUID

from django.db.models import F, Func, Value
from django.db.models.functions import Length, Right, Substr

from agentchat import conf, wire
from agentchat.events import ItemType
from agentchat.exceptions import NotFound
from agentchat.models import Chat, Message, OutputItem
from agentchat.rendering.cut import HEAD, TAIL
from agentchat.services import consistent, fold
from agentchat.wire import Text, Wire


class _Bytes(Func):
    """Length in bytes of the UTF-8."""

    function = "OCTET_LENGTH"

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(compiler, connection, template="LENGTH(CAST(%(expressions)s AS BLOB))", **context)


def chat_snapshot(user: Any, chat_id: UUID, before: int | None = None, limit: int = conf.SNAPSHOT_MESSAGES) -> Wire:
    """`{cursor, chat, messages, more}`: the newest messages, or those whose position is below `before`.

    Raises NotFound.
    """
    with consistent.view():
        chat = _chat(user, chat_id)
        rows = Message.objects.filter(chat=chat, removed_at=None).order_by("-position")
        if before is not None:
            rows = rows.filter(position__lt=before)
        page = list(rows.select_related("author", "run")[: limit + 1])
        messages = _messages(chat, page[:limit][::-1])
    return {"cursor": chat.last_seq, "chat": wire.chat(chat), "messages": messages, "more": len(page) > limit}


def message_snapshot(user: Any, message_id: UUID) -> Wire:
    """`{cursor, chat, message}`. Raises NotFound."""
    with consistent.view():
        rows = Message.objects.filter(pk=message_id, removed_at=None).select_related("author", "run", "chat")
        row = rows.filter(chat__owner=user, chat__deleted_at=None).first()
        if row is None:
            raise NotFound()
        message = _messages(row.chat, [row])[0]
    return {"cursor": row.chat.last_seq, "chat": wire.chat(row.chat), "message": message}


def item_snapshot(user: Any, item_id: UUID) -> Wire:
    """`{cursor, chat, item, outputs}`; the outputs are those of a call. Raises NotFound."""
    with consistent.view():
        chat_id = OutputItem.objects.visible_to(user).filter(pk=item_id).values_list("message__chat", flat=True).first()
        if chat_id is None:
            raise NotFound()
        chat = Chat.objects.get(pk=chat_id)
        items = _items(chat, OutputItem.objects.filter(pk=item_id) | OutputItem.objects.filter(output_of=item_id))
    item = next(item for item in items if item["id"] == str(item_id))
    outputs = [other for other in items if other is not item]
    return {"cursor": chat.last_seq, "chat": wire.chat(chat), "item": item, "outputs": outputs}


def full_text(user: Any, item_id: UUID) -> str:
    """The whole text of an item, cut or not. Raises NotFound."""
    with consistent.view():
        row = OutputItem.objects.visible_to(user).select_related("message").filter(pk=item_id).first()
        if row is None:
            raise NotFound()
        fold.complete(row, fold.progress(row.message.chat_id, [row])[str(row.pk)])
    return row.text


def arguments(user: Any, item_id: UUID) -> str:
    """The exact arguments of a call. Raises NotFound."""
    found = OutputItem.objects.visible_to(user).filter(pk=item_id).values_list("arguments", flat=True).first()
    if found is None:
        raise NotFound()
    return found


def _chat(user: Any, chat_id: UUID) -> Chat:
    chat = Chat.objects.visible_to(user).filter(pk=chat_id).first()
    if chat is None:
        raise NotFound()
    return chat


def _messages(chat: Chat, rows: list[Message]) -> list[Wire]:
    items: dict[str, list[Wire]] = defaultdict(list)
    for item in _items(chat, OutputItem.objects.filter(message__in=rows)):
        items[item["message"]].append(item)
    return [wire.message(row, items[str(row.pk)], wire.run(row.run) if hasattr(row, "run") else None) for row in rows]


def _items(chat: Chat, rows: Any) -> list[Wire]:
    """Of all kinds; a long text stays in the database, but for its head and tail."""
    found = list(
        rows.defer("text", "native")
        .select_related("resolution__receipt")
        .annotate(
            head=Substr("text", 1, wire.WHOLE), tail=Right("text", TAIL), chars=Length("text"), octets=_Bytes(F("text"))
        )
        .filter(type__in=[kind for kind in ItemType if kind not in _PROSE])
    )
    found += rows.defer("native").select_related("resolution__receipt").annotate(
        head=F("text"), tail=Value(""), chars=Value(0), octets=Value(0)
    ).filter(type__in=_PROSE)  # fmt: skip
    grown = fold.progress(chat.pk, found)
    found.sort(key=lambda row: (row.message_id, row.position))
    return [_item(row, grown[str(row.pk)]) for row in found]


_PROSE = (ItemType.MESSAGE, ItemType.REASONING)


def _item(row: Any, events: list[dict[str, Any]]) -> Wire:
    text = Text.of(row.head, row.type)
    if row.chars > wire.WHOLE:
        text = Text(row.head[:HEAD] + row.tail, row.chars - HEAD - TAIL, row.octets)
    fold.apply(row, text, events)
    return wire.item(row, text, decided(row))


def decided(row: OutputItem) -> Wire | None:
    resolution = getattr(row, "resolution", None)
    return wire.resolution(resolution, getattr(resolution, "receipt", None)) if resolution else None


def item_of(row: OutputItem) -> Wire:
    """A request as on the wire; a call has no text that grows."""
    return wire.item(row, Text("", 0, 0), decided(row))
