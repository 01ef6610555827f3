"""Rows as the dictionaries that go over the wire: one shape for REST, WebSocket and snapshot (docs/protocol.md).

An item has the shape of an OpenAI Responses item, plus `version`, `html` (finished blocks of markdown) with `html_end`
(how many code points of the text they cover), and, where its text is cut, `bytes` (of the whole) and `cut`.
Times are ISO 8601 in UTC with `Z`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from agentchat.events import Action, ItemStatus, ItemType
from agentchat.models import Chat, Message, OutputItem, Receipt, Resolution, Run
from agentchat.rendering import cut

Wire = dict[str, Any]
ARGUMENTS_CHARS = 64_000
"""Longer arguments are cut on the wire; `GET /items/{id}/` has all of them."""
PART = {ItemType.MESSAGE: "output_text", ItemType.REASONING: "reasoning_text", ItemType.OUTPUT: "input_text"}
LONGEST = cut.HEAD + cut.TAIL + cut.SLACK


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
    return {
        "id": str(row.pk),
        "position": row.position,
        "parent": str(row.parent_id) if row.parent_id else None,
        "role": row.role,
        "author": row.author.get_username() if row.author else None,
        "text": row.text,
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
        "type": row.type,
        "status": status(row.status, decided),
        "version": row.version,
        "meta": row.meta,
        "created_at": time(row.created_at),
        "ended_at": time(row.ended_at),
    }
    if row.type in (ItemType.MESSAGE, ItemType.REASONING):
        wire |= {"role": "assistant"} if row.type == ItemType.MESSAGE else {"summary": []}
        wire |= {"html": row.html, "html_end": row.html_end, "blocks": row.blocks}
    if row.type in (ItemType.CALL, ItemType.OUTPUT):
        wire |= {"call_id": row.call_id, "parent_call_id": row.parent_call_id, "name": row.name}
    if row.type == ItemType.CALL:
        wire |= call(row.arguments, row.digest, row.request, row.expires_at) | {"resolution": decided}
    if row.type == ItemType.OUTPUT:
        wire["call"] = str(row.call_id_of) if hasattr(row, "call_id_of") else _id(row)
    if row.type == ItemType.NOTICE:
        wire["text"] = text.whole()
    else:
        put_text(wire, text)
    return wire


def _id(row: OutputItem) -> str | None:
    key = row.serializable_value("call")
    return str(key) if key else None


def call(arguments: str, digest: str, request: Wire | None, expires_at: datetime | None) -> Wire:
    """The part of a call that says what it would do and what it asks."""
    wire: Wire = {"arguments": arguments, "digest": digest, "request": request, "expires_at": time(expires_at)}
    if len(arguments) > ARGUMENTS_CHARS:
        wire |= {"arguments": arguments[:ARGUMENTS_CHARS], "arguments_bytes": len(arguments.encode())}
    return wire
