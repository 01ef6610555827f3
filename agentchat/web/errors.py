"""The pages for what went wrong. They read no database, so that they work when it does not."""

from __future__ import annotations

import sys

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string

from agentchat.exceptions import DatabaseAway
from agentchat.models import outage
from agentchat.web.context import theme

TEXTS = {
    400: ("This request does not make sense", "The page may be old. Go back, load it again, and repeat what you did."),
    403: ("This was refused", "Your session may have ended in another tab. Load the page again, or sign in again."),
    404: (
        "There is nothing here for you",
        "This does not exist, was deleted, or belongs to somebody else. From outside these look the same, on purpose.",
    ),
    500: ("Something broke on the server", "It is in the server's log. What was decided before is kept."),
}
CODES = {400: "bad_request", 403: "forbidden", 404: "not_found", 500: "server_error"}


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return error(request, 400)


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return error(request, 403)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    return error(request, 403)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return error(request, 404)


def server_error(request: HttpRequest) -> HttpResponse:
    if away := outage.of(sys.exc_info()[1]):
        return _unavailable(request, away)
    return error(request, 500)


def _unavailable(request: HttpRequest, away: DatabaseAway) -> HttpResponse:
    """Not our fault, and it passes."""
    heading, _, text = away.message.partition(". ")
    response = _answer(request, 503, away.code, away.message, heading, text)
    response["Retry-After"] = "2"
    return response


def error(request: HttpRequest, status: int) -> HttpResponse:
    heading, text = TEXTS[status]
    return _answer(request, status, CODES[status], f"{heading}.", heading, text)


def _answer(request: HttpRequest, status: int, code: str, detail: str, heading: str, text: str) -> HttpResponse:
    if request.path.startswith("/api/"):
        return JsonResponse({"code": code, "detail": detail}, status=status)
    context = {"status": status, "heading": heading, "text": text, "theme": theme(request)}
    return HttpResponse(render_to_string("agentchat/error.html", context), status=status)
