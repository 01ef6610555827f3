"""What every client does with events, written from docs/protocol.md alone: the reference for the tests."""

from __future__ import annotations

import copy
from typing import Any

HEAD = TAIL = 8000
SLACK = 1000


def condensed(snapshot: dict[str, Any], frame: dict[str, Any]) -> dict[str, Any]:
    """The snapshot that would be taken at the cursor of a frame for a viewer that asked for `condense=1`."""
    state = copy.deepcopy(snapshot)
    for event in frame["events"]:
        assert state["cursor"] < event["seq"] <= frame["cursor"], "an event twice, or of a later frame"
        _HANDLERS[event["kind"]](state, event)
    return state | {"cursor": frame["cursor"]}


def apply(snapshot: dict[str, Any], events: list[dict[str, Any]]) -> dict[str, Any]:
    """The snapshot that would be taken after these events."""
    state = copy.deepcopy(snapshot)
    for event in events:
        assert event["seq"] == state["cursor"] + 1, "a gap, or an event twice"
        state["cursor"] = event["seq"]
        _HANDLERS[event["kind"]](state, event)
    return state


def _message(state: dict[str, Any], id: str) -> dict[str, Any]:
    return next(message for message in state["messages"] if message["id"] == id)


def _item(state: dict[str, Any], id: str) -> dict[str, Any]:
    return next(item for message in state["messages"] for item in message["items"] if item["id"] == id)


def _message_added(state: dict[str, Any], event: dict[str, Any]) -> None:
    state["messages"].append(copy.deepcopy(event["message"]))


def _message_changed(state: dict[str, Any], event: dict[str, Any]) -> None:
    if event["changes"].get("removed"):
        state["messages"] = [message for message in state["messages"] if message["id"] != event["message"]]
    else:
        _message(state, event["message"]).update(event["changes"])


def _item_added(state: dict[str, Any], event: dict[str, Any]) -> None:
    _message(state, event["message"])["items"].append(copy.deepcopy(event["item"]))


def _item_delta(state: dict[str, Any], event: dict[str, Any]) -> None:
    item = _item(state, event["item"])
    part = (item.get("content") or item.get("output"))[0]
    omitted = (item.get("cut") or {}).get("omitted", 0)
    if event.get("skipped"):
        part["text"], omitted = part["text"][:HEAD], event["offset"] - HEAD
        item["bytes"] += event["skipped"]
    new = event["text"][max(0, len(part["text"]) + omitted - event["offset"]) :]
    part["text"] += new
    if item["type"] == "function_call_output":
        item["bytes"] += len(new.encode())
        if omitted or len(part["text"]) > HEAD + TAIL + SLACK:
            omitted += len(part["text"]) - HEAD - TAIL
            part["text"] = part["text"][:HEAD] + part["text"][-TAIL:]
            item["cut"] = {"head": HEAD, "omitted": omitted}


def _item_block(state: dict[str, Any], event: dict[str, Any]) -> None:
    item = _item(state, event["item"])
    if event["index"] == item["blocks"]:
        item["html"] += event["html"]
        item["html_end"], item["blocks"] = event["end"], item["blocks"] + 1


def _item_changed(state: dict[str, Any], event: dict[str, Any]) -> None:
    _item(state, event["item"]).update(copy.deepcopy(event["changes"]))


def _approval_requested(state: dict[str, Any], event: dict[str, Any]) -> None:
    assert _item(state, event["item"])["status"] == "pending"


def _approval_resolved(state: dict[str, Any], event: dict[str, Any]) -> None:
    item = _item(state, event["item"])
    item["status"], item["resolution"] = event["status"], copy.deepcopy(event["resolution"])


def _approval_delivered(state: dict[str, Any], event: dict[str, Any]) -> None:
    _item(state, event["item"])["resolution"]["receipt"] = event["receipt"]


def _run_changed(state: dict[str, Any], event: dict[str, Any]) -> None:
    for message in state["messages"]:
        if message["id"] == event["message"]:
            message["run"].update(event["changes"])


def _chat_changed(state: dict[str, Any], event: dict[str, Any]) -> None:
    state["chat"] = event["chat"]


_HANDLERS = {
    "message.added": _message_added,
    "message.changed": _message_changed,
    "item.added": _item_added,
    "item.delta": _item_delta,
    "item.block": _item_block,
    "item.changed": _item_changed,
    "approval.requested": _approval_requested,
    "approval.resolved": _approval_resolved,
    "approval.delivered": _approval_delivered,
    "run.changed": _run_changed,
    "chat.changed": _chat_changed,
}
