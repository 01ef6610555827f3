"""The pages of a signed-in person."""

from __future__ import annotations

import uuid
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from agentchat.services import lists, runs, snapshot
from agentchat.web import cards, newchat, transcript
from agentchat.web.access import name_of, page
from agentchat.web.context import THEMES, searched, side

YEAR = 365 * 86_400


@page
@require_GET
def chats(request: HttpRequest) -> HttpResponse:
    found = side(request)
    if not any((found["needs"], found["working"], found["done"], request.GET.get("q"))):
        return render(request, "agentchat/first-run.html", newchat.choices())
    return render(request, "agentchat/chats.html", {"side": found, "q": searched(request)})


@page
@require_GET
def chat(request: HttpRequest, chat_id: uuid.UUID) -> HttpResponse:
    shown = transcript.build(snapshot.chat_snapshot(request.user, chat_id), name_of(request.user))
    return render(request, "agentchat/chat.html", context_of(shown))


def context_of(shown: transcript.Transcript) -> dict[str, Any]:
    return {"t": shown, "chat": shown.chat, "agent": shown.agent, "place": place(shown)}


def place(shown: transcript.Transcript) -> int | None:
    """How far a run of the chat is from a free worker, if it waits for one."""
    return runs.place(uuid.UUID(shown.for_a_worker)) if shown.for_a_worker else None


@page
def new_chat(request: HttpRequest) -> HttpResponse:
    form = newchat.Form.read(request.POST if request.method == "POST" else request.GET)
    if request.method == "POST":
        form.check()
        if not form.problems and (chat_id := form.start(request.user)):
            return redirect("agentchat:chat", chat_id)
    context = newchat.choices() | {"form": form}
    return render(request, "agentchat/new-chat.html", context, status=422 if form.problems else 200)


@page
@require_GET
def approvals(request: HttpRequest) -> HttpResponse:
    return render(request, "agentchat/inbox.html", inbox_context(request))


@page
@require_GET
def settings(request: HttpRequest) -> HttpResponse:
    return render(request, "agentchat/settings.html")


@page
@require_POST
def look(request: HttpRequest) -> HttpResponse:
    """Keep the scheme, or the switch of the number keys, in a cookie of this browser."""
    response = redirect("agentchat:settings")
    if "theme" in request.POST:
        _keep(response, "theme", request.POST["theme"], THEMES)
    if "keys" in request.POST:
        _keep(response, "keys", request.POST["keys"], ("off",))
    return response


def _keep(response: HttpResponse, name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value in allowed:
        response.set_cookie(name, value, max_age=YEAR, samesite="Lax")
    else:
        response.delete_cookie(name, samesite="Lax")


def inbox_context(request: HttpRequest) -> dict[str, Any]:
    """The list, and the card that is open: the one asked for, or the one that waits longest."""
    found, me = lists.inbox(request.user), name_of(request.user)
    pending = [_ask(row, me) for row in found["pending"]]
    decided = [_ask(row, me) for row in found["decided"]]
    wanted = request.GET.get("open", "")
    opened = next((ask for ask in [*pending, *decided] if ask.id == wanted), None)
    return {
        "pending": pending,
        "decided": decided,
        "pending_count": found["pending_count"],
        "opened": opened or (pending[0] if pending and not wanted else None),
        "view": "peek" if opened else "list",
    }


def _ask(row: dict[str, Any], me: str) -> cards.Card:
    return cards.build(row["item"], row["chat"], me)
