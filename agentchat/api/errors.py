"""How what went wrong becomes a response: always `{"code", "detail", ...}`, with a code for programs."""

from __future__ import annotations

import logging
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.http import Http404
from rest_framework import exceptions as rest
from rest_framework.response import Response

from agentchat import exceptions as ours
from agentchat.models import outage

log = logging.getLogger(__name__)
RETRY_AFTER = "2"

STATUS: dict[type[ours.AgentChatError], int] = {
    ours.Invalid: 422,
    ours.NotFound: 404,
    ours.Gone: 404,
    ours.MessageEnded: 409,
    ours.CursorTooOld: 410,
    ours.ChatBusy: 409,
    ours.AlreadyResolved: 409,
    ours.Expired: 410,
    ours.Stopped: 410,
    ours.AgentGone: 410,
    ours.Stale: 409,
    ours.AlreadyDelivered: 409,
    ours.DatabaseAway: 503,
    ours.JournalClosed: 503,
    ours.Backlog: 503,
}
CODES: dict[type[Exception], str] = {
    rest.ParseError: "bad_request",
    rest.NotAuthenticated: "not_signed_in",
    rest.AuthenticationFailed: "not_signed_in",
    rest.PermissionDenied: "forbidden",
    rest.NotFound: "not_found",
    rest.MethodNotAllowed: "method_not_allowed",
    rest.UnsupportedMediaType: "unsupported_media_type",
    rest.Throttled: "too_many_requests",
}
SIGN_IN = "Sign in first: the session is missing or has ended."


class KeyReused(ours.Invalid):
    """This Idempotency-Key was used for another request. Take a new key for each request."""

    code = "idempotency_key_reused"


class NoSuchRange(ours.AgentChatError):
    """The text has no such bytes."""

    code = "range_not_satisfiable"


STATUS[NoSuchRange] = 416


def handle(error: Exception, context: dict[str, Any]) -> Response | None:
    """The exception handler of the REST framework. None for the unexpected: that is a 500, and logged."""
    if away := outage.of(error):
        log.warning("%s (%s)", away.message, error)
        error = away
    if isinstance(error, ours.AgentChatError):
        return _of_ours(error)
    if isinstance(error, RequestDataTooBig):
        return _response(413, "too_large", "The body of this request is too long. Send less at once.")
    if isinstance(error, Http404):
        error = rest.NotFound("There is nothing here for you.")
    elif isinstance(error, PermissionDenied):
        error = rest.PermissionDenied()
    return _of_framework(error) if isinstance(error, rest.APIException) else None


def _of_ours(error: ours.AgentChatError) -> Response:
    status = next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), 400)
    code = ours.NotFound.code if status == 404 else error.code
    response = _response(status, code, error.message, **error.context)
    if status == 503:
        response["Retry-After"] = RETRY_AFTER
    return response


def _of_framework(error: rest.APIException) -> Response:
    if isinstance(error, rest.ValidationError):
        return _response(422, "invalid", _sentence(error.detail), errors=error.detail)
    code = next((CODES[kind] for kind in type(error).__mro__ if kind in CODES), "error")
    if code == "not_signed_in":
        response = _response(401, code, SIGN_IN)
        response["WWW-Authenticate"] = "Session"
        return response
    response = _response(error.status_code, code, str(error.detail))
    if wait := getattr(error, "wait", None):
        response["Retry-After"] = str(int(wait) + 1)
    return response


def _response(status: int, code: str, detail: str, **context: Any) -> Response:
    return Response({"code": code, "detail": detail, **context}, status=status)


def _sentence(detail: Any, where: str = "") -> str:
    """The first problem, with the name of its field."""
    if isinstance(detail, dict):
        name, inner = next(iter(detail.items()))
        return _sentence(inner, "" if name == "non_field_errors" else f"`{name}`: ")
    if isinstance(detail, list):
        return _sentence(detail[0], where) if detail else "The request does not make sense."
    return f"{where}{detail}"
