"""What every page shows around its content."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from agentchat.services import clean, lists

THEMES = ("light", "dark")


def shell(request: HttpRequest) -> dict[str, Any]:
    """Lazily: a response that does not draw the list does not read it."""
    return {
        "theme": theme(request),
        "keys": "off" if request.COOKIES.get("keys") == "off" else "on",
        "side": SimpleLazyObject(lambda: side(request)),
    }


def theme(request: HttpRequest) -> str:
    """The scheme that the person chose; empty means as the system."""
    chosen = request.COOKIES.get("theme", "")
    return chosen if chosen in THEMES else ""


def side(request: HttpRequest) -> dict[str, Any]:
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {"needs": [], "working": [], "done": [], "pending": 0}
    return dict(lists.chat_list(user, q=searched(request).strip()[:200]))


def searched(request: HttpRequest) -> str:
    """What the person looks for, as it would be stored."""
    return clean.text(request.GET.get("q", ""))
