"""Idempotency-Key: repeating a POST with the same key gives the stored answer and changes nothing more."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.db import IntegrityError, transaction
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from agentchat.api.base import View
from agentchat.api.errors import KeyReused
from agentchat.exceptions import Invalid
from agentchat.models import IdempotencyKey, clock, outage

HEADER = "Idempotency-Key"
REPLAYED = "Idempotent-Replay"
LONGEST = 200
Handler = Callable[..., Response]


def once(handler: Handler) -> Handler:
    """For a POST of a View: act at most once a key."""

    @wraps(handler)
    def guarded(view: View, request: Request, *args: Any, **kwargs: Any) -> Response:
        key = _key(request)
        if not key:
            return handler(view, request, *args, **kwargs)
        with transaction.atomic():
            claim = _claim(request, key)
            if claim is None:
                return _replay(request, key)
            return _act(claim, view, lambda: handler(view, request, *args, **kwargs))

    return guarded


def _key(request: Request) -> str:
    key = request.headers.get(HEADER, "").strip()
    if len(key) > LONGEST:
        raise Invalid(f"An {HEADER} has at most {LONGEST} characters; this has {len(key)}.")
    return key


def _claim(request: Request, key: str) -> IdempotencyKey | None:
    """The insert is the lock: who comes second waits here for the first, then finds the key taken."""
    row = IdempotencyKey(user=_user(request), key=key, path=request.path, digest=_digest(request), status=0)
    row.created_at = clock.now()
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError:
        return None
    return row


def _act(claim: IdempotencyKey, view: View, act: Callable[[], Response]) -> Response:
    """The act and its answer are committed together. Only success is kept: what was refused may be repeated.

    A refusal becomes its answer here and is not raised, since it may have written (a request that expired).
    """
    try:
        response = act()
    except outage.ERRORS:
        raise  # nothing can be written any more, and nothing was
    except Exception as error:
        response = view.handle_exception(error)
    if not 200 <= response.status_code < 300:
        claim.delete()
        return response
    claim.status, claim.body = response.status_code, JSONRenderer().render(response.data).decode()
    claim.save(update_fields=["status", "body"])
    return response


def _replay(request: Request, key: str) -> Response:
    stored = IdempotencyKey.objects.get(user=_user(request), key=key)
    if (stored.path, stored.digest) != (request.path, _digest(request)):
        raise KeyReused()
    return Response(json.loads(stored.body), status=stored.status, headers={REPLAYED: "true"})


def _user(request: Request) -> Any:
    """Signed in: a View refuses everybody else before."""
    return request.user


def _digest(request: Request) -> str:
    return hashlib.sha256(request._request.body).hexdigest()
