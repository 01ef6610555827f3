"""Calls and their outputs. An id may repeat within a message; a result belongs to the latest open call of its id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentchat import conf
from agentchat.events import ItemStatus, ItemType
from agentchat.exceptions import Invalid
from agentchat.services import canonical, clean
from agentchat.services.pieces import Piece
from agentchat.services.writing import MessageWriter

Columns = dict[str, Any]


def columns(call_id: str, name: str, arguments: Any, native: Any, parent: str = "") -> Columns:
    """Checked before anything changes. Raises Invalid if the arguments are not JSON."""
    text = clean.arguments(arguments)
    return {
        "call_id": clean.call_id(call_id),
        "name": clean.name(name),
        "arguments": text,
        "digest": canonical.digest(text),
        "native": clean.jsonable(native),
        "parent_call_id": clean.text(parent)[: conf.CALL_ID_CHARS],
    }


def start(writer: MessageWriter, wanted: Columns, facts: Mapping[str, Any], done: bool) -> Piece:
    """The call that is meant: the open one, the ended one whose result is repeated, or a new one."""
    call = writer.pieces.call(wanted["call_id"])
    if call is None or not (call.is_open or (done and call.row.digest == wanted["digest"])):
        return writer.add(ItemType.CALL, meta=dict(facts), **wanted)
    if call.is_open:
        _refine(writer, call, wanted, facts)
    return call


def _refine(writer: MessageWriter, call: Piece, wanted: Columns, facts: Mapping[str, Any]) -> None:
    """What was asked about stays as it was shown; everything else may become more exact."""
    names = {"native"} if call.row.request is not None else set(wanted)
    changed = {name: wanted[name] for name in names if getattr(call.row, name) != wanted[name]}
    if changed.get("native", ...) is None:
        del changed["native"]
    if facts and call.row.meta | facts != call.row.meta:
        changed["meta"] = call.row.meta | facts
    if changed:
        writer.change(call, **changed)


def stream(writer: MessageWriter, call_id: str, text: str) -> None:
    call = writer.pieces.call(clean.call_id(call_id))
    output = call and writer.pieces.output(call)
    if call is None or not call.is_open or (output and not output.is_open):
        raise Invalid(f"No call {call_id!r} is running, so it has no output. Start it with `tool` first.")
    writer.grow(output_of(writer, call), text)


def finish(writer: MessageWriter, call: Piece, text: str | None, failed: bool, facts: Mapping[str, Any]) -> None:
    """`text` None keeps what was streamed. A call that still waits for a decision goes on waiting."""
    output = output_of(writer, call)
    if text is None:
        writer.end_stream(output)
    status = ItemStatus.FAILED if failed else ItemStatus.COMPLETED
    writer.change(output, text, status=status, meta=output.row.meta | facts)
    if call.row.status not in (status, ItemStatus.REJECTED, ItemStatus.PENDING):
        writer.change(call, status=status)


def output_of(writer: MessageWriter, call: Piece) -> Piece:
    if piece := writer.pieces.output(call):
        return piece
    return writer.add(ItemType.OUTPUT, call_id=call.row.call_id, name=call.row.name, output_of_id=call.id)
