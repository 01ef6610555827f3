"""Pieces of pages for the page's script. Each root carries `data-seq`, the event up to which it is true."""

from __future__ import annotations

import uuid
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from agentchat.exceptions import NotFound
from agentchat.services import snapshot
from agentchat.web import pages, transcript
from agentchat.web.access import fragment, name_of
from agentchat.web.context import searched

DECISIONS = ("approve", "reject", "answer")


@fragment
@require_GET
def whole(request: HttpRequest, chat_id: uuid.UUID) -> HttpResponse:
    before = _number(request.GET.get("before", ""))
    shown = transcript.build(snapshot.chat_snapshot(request.user, chat_id, before=before), name_of(request.user))
    return _render(request, "turns", shown)


@fragment
@require_GET
def dock(request: HttpRequest, chat_id: uuid.UUID) -> HttpResponse:
    shown = transcript.build(snapshot.chat_snapshot(request.user, chat_id), name_of(request.user))
    return _render(request, "dock", shown)


@fragment
@require_GET
def message(request: HttpRequest, chat_id: uuid.UUID, message_id: uuid.UUID) -> HttpResponse:
    """The whole turn of an answer: what the person said comes with it."""
    found = snapshot.message_snapshot(request.user, message_id)
    _belongs(found["chat"], chat_id)
    messages = [found["message"]]
    if parent := found["message"].get("parent"):
        messages.insert(0, snapshot.message_snapshot(request.user, parent)["message"])
    shown = transcript.build(
        {"cursor": found["cursor"], "chat": found["chat"], "messages": messages}, name_of(request.user)
    )
    return _render(request, "turns", shown)


@fragment
@require_GET
def item(request: HttpRequest, chat_id: uuid.UUID, item_id: uuid.UUID) -> HttpResponse:
    """`?tried=reject` is the decision that came too late, `?stale=1` says that the request changed meanwhile."""
    found = snapshot.item_snapshot(request.user, item_id)
    _belongs(found["chat"], chat_id)
    tried = request.GET.get("tried", "")
    shown = transcript.piece(
        found["item"], found["outputs"], found["chat"], name_of(request.user),
        tried=tried if tried in DECISIONS else "", stale=request.GET.get("stale") == "1",
    )  # fmt: skip
    context: dict[str, Any] = {"piece": shown, "seq": found["cursor"], "chat": found["chat"]}
    if request.GET.get("in") == "inbox":
        context["alone"] = True
    return render(request, "agentchat/parts/piece.html", context)


@fragment
@require_GET
def side(request: HttpRequest) -> HttpResponse:
    context = {"current": request.GET.get("current", ""), "q": searched(request)}
    return render(request, "agentchat/parts/side-list.html", context)


@fragment
@require_GET
def approvals(request: HttpRequest) -> HttpResponse:
    return render(request, "agentchat/parts/inbox.html", pages.inbox_context(request))


def _render(request: HttpRequest, name: str, shown: transcript.Transcript) -> HttpResponse:
    context = pages.context_of(shown) if name == "dock" else {"t": shown, "chat": shown.chat, "agent": shown.agent}
    return render(request, f"agentchat/parts/{name}.html", context)


def _belongs(chat: dict[str, Any], chat_id: uuid.UUID) -> None:
    if str(chat["id"]) != str(chat_id):
        raise NotFound


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None
