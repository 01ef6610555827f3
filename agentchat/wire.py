"""Rows as the dictionaries that go over the wire: one shape for REST, WebSocket and snapshot (docs/protocol.md).

An item has the shape of an OpenAI Responses item, plus `version`, `html` (finished blocks of markdown) with `html_end`
(how many code points of the text they cover), and, where its text is cut, `bytes` (of the whole) and `cut`.
Times are ISO 8601 in UTC with `Z`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from agentchat.events import Action, ItemStatus, ItemType
from agentchat.models import Chat, Message, OutputItem, Receipt, Resolution, Run
from agentchat.rendering.cut import HEAD, SLACK, TAIL

Wire = dict[str, Any]
ARGUMENTS_CHARS = 64_000
"""Longer arguments are cut on the wire; `GET /items/{id}/` has all of them."""
WHOLE = HEAD + TAIL + SLACK
"""The longest output that is sent whole, in code points."""
_PART = {ItemType.MESSAGE: "output_text", ItemType.REASONING: "reasoning_text"}


@dataclass(slots=True)
class Text:
    """The text of an item as it is sent: whole, or a head and a tail."""

    shown: str
    omitted: int
    bytes: int

    @classmethod
    def of(cls, text: str, type: str) -> Text:
        made = cls(text, 0, len(text.encode()))
        if type == ItemType.OUTPUT and len(text) > WHOLE:
            made.shown, made.omitted = text[:HEAD] + text[-TAIL:], len(text) - HEAD - TAIL
        return made

    def grow(self, text: str, type: str) -> None:
        """Add to the end, as every client does."""
        self.bytes += len(text.encode())
        if self.omitted:
            tail = self.shown[HEAD:] + text
            self.shown, self.omitted = self.shown[:HEAD] + tail[-TAIL:], self.omitted + len(text)
        else:
            grown = Text.of(self.shown + text, type)
            self.shown, self.omitted = grown.shown, grown.omitted

    @property
    def chars(self) -> int:
        return len(self.shown) + self.omitted


def time(moment: datetime | None) -> str | None:
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z") if moment else None


def chat(row: Chat) -> Wire:
    return {
        "id": str(row.pk),
        "title": row.title,
        "provider": row.provider,
        "workspace": row.workspace,
        "approval_mode": row.approval_mode,
        "pinned": row.pinned,
        "archived": row.archived_at is not None,
        "created_at": time(row.created_at),
        "updated_at": time(row.updated_at),
    }


def run(row: Run) -> Wire:
    return {
        "id": str(row.pk),
        "chat": str(row.chat_id),
        "message": str(row.message_id),
        "provider": row.provider,
        "status": row.status,
        "stopping": row.stop_requested_at is not None and row.ended_at is None,
        "error": row.error,
        "created_at": time(row.created_at),
        "started_at": time(row.started_at),
        "ended_at": time(row.ended_at),
    }


def message(row: Message, items: list[Wire], run: Wire | None) -> Wire:
    """`text` is what a person wrote; what an agent says is in its items."""
    return {
        "id": str(row.pk),
        "position": row.position,
        "parent": str(row.parent_id) if row.parent_id else None,
        "role": row.role,
        "author": row.author.get_username() if row.author else None,
        "text": row.text if row.author else "",
        "usage": row.usage,
        "error": row.error,
        "created_at": time(row.created_at),
        "ended_at": time(row.ended_at),
        "items": items,
        "run": run,
    }


def resolution(row: Resolution, receipt: Receipt | None = None) -> Wire:
    return {
        "id": row.pk,
        "item": str(row.item_id),
        "action": row.action,
        "cause": row.cause,
        "tool": row.tool,
        "arguments": row.arguments or None,
        "answers": row.answers,
        "reason": row.reason,
        "scope": row.scope,
        "rule": row.rule,
        "decided_by": row.decided_by_name or None,
        "decided_via": row.decided_via,
        "digest": row.digest,
        "final_digest": row.final_digest,
        "displayed_at": time(row.displayed_at),
        "decided_at": time(row.decided_at),
        "hash": row.hash,
        "receipt": receipt_of(receipt) if receipt else None,
    }


def receipt_of(row: Receipt) -> Wire:
    return {"delivered_at": time(row.delivered_at), "run": str(row.run_id) if row.run_id else None}


def status(stored: str, decided: Wire | None) -> str:
    """A request is pending only as long as nobody decided, whatever its row says."""
    if stored != ItemStatus.PENDING or decided is None:
        return stored
    return ItemStatus.REJECTED if decided["action"] == Action.REJECT else ItemStatus.IN_PROGRESS


def item(row: OutputItem, text: Text, decided: Wire | None = None) -> Wire:
    """`text` is given apart, since a row that is read for the wire leaves its long text in the database."""
    wire: Wire = {
        "id": str(row.pk),
        "message": str(row.message_id),
        "position": row.position,
        "type": str(row.type),
        "status": str(status(row.status, decided)),
        "version": row.version,
        "meta": row.meta,
        "created_at": time(row.created_at),
        "ended_at": time(row.ended_at),
    }
    return wire | _special(row, text, decided)


def _special(row: OutputItem, text: Text, decided: Wire | None) -> Wire:
    match row.type:
        case ItemType.MESSAGE | ItemType.REASONING:
            return _prose(row, text)
        case ItemType.CALL:
            names: Wire = {"call_id": row.call_id, "parent_call_id": row.parent_call_id, "name": row.name}
            return names | call(row.arguments, row.digest, row.request, row.expires_at) | {"resolution": decided}
        case ItemType.OUTPUT:
            of = str(row.output_of_id) if row.output_of_id else None
            return {"call": of, "call_id": row.call_id, "name": row.name} | output(text)
        case ItemType.NOTICE:
            return {"text": text.shown}
        case _:
            return {}


def _prose(row: OutputItem, text: Text) -> Wire:
    part = {"type": _PART[ItemType(row.type)], "text": text.shown}
    role: Wire = {"role": "assistant"} if row.type == ItemType.MESSAGE else {"summary": []}
    return {**role, "content": [part], "html": row.html, "html_end": row.html_end, "blocks": row.blocks}


def output(text: Text) -> Wire:
    """What a call gave back. `cut` says where code points are missing, and how many."""
    cut = {"head": HEAD, "omitted": text.omitted} if text.omitted else None
    return {"output": [{"type": "input_text", "text": text.shown}], "bytes": text.bytes, "cut": cut}


def call(arguments: str, digest: str, request: Wire | None, expires_at: datetime | None) -> Wire:
    """The part of a call that says what it would do and what it asks."""
    wire: Wire = {"arguments": arguments, "digest": digest, "request": request, "expires_at": time(expires_at)}
    if len(arguments) > ARGUMENTS_CHARS:
        wire |= {"arguments": arguments[:ARGUMENTS_CHARS], "arguments_bytes": len(arguments.encode())}
    return wire
