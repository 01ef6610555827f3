"""Items whole: the full arguments of a call, the full text of an output."""

from __future__ import annotations

import re
from uuid import UUID

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from agentchat.api import shapes
from agentchat.api.base import View
from agentchat.api.errors import NoSuchRange, handle
from agentchat.services import snapshot
from agentchat.wire import Wire

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


class Item(View):
    @extend_schema(
        operation_id="items_read",
        responses=shapes.answers(200, shapes.Item, 404),
        summary="One item, with all its arguments",
    )
    def get(self, request: Request, item_id: UUID) -> Response:
        return Response(whole(request, item_id))


class Text(View):
    @extend_schema(
        operation_id="items_text",
        parameters=[shapes.RANGE],
        responses=shapes.answers((200, "text/plain"), OpenApiTypes.STR, 404, 416)
        | {(206, "text/plain"): OpenApiTypes.STR},
        summary="The whole text of an item, or a range of its bytes",
    )
    def get(self, request: Request, item_id: UUID) -> HttpResponse:
        content = snapshot.full_text(request.user, item_id).encode()
        try:
            wanted = byte_range(request.headers.get("Range", ""), len(content))
        except NoSuchRange as error:
            return _no_such_range(error, len(content))
        if wanted is None or "If-Range" in request.headers:
            return _text(content)
        response = _text(content[wanted.start : wanted.stop], status=206)
        response["Content-Range"] = f"bytes {wanted.start}-{wanted.stop - 1}/{len(content)}"
        return response


def whole(request: Request, item_id: UUID) -> Wire:
    """An item as on the wire, its arguments uncut."""
    item: Wire = snapshot.item_snapshot(request.user, item_id)["item"]
    if item.pop("arguments_bytes", None) is not None:
        item["arguments"] = snapshot.arguments(request.user, item_id)
    return item


def byte_range(header: str, size: int) -> range | None:
    """The bytes that a Range header asks for. None: all, as for every header that we do not read.

    Raises NoSuchRange.
    """
    found = _RANGE.fullmatch(header.replace(" ", ""))
    if not found or not any(found.groups()):
        return None
    first, last = found.groups()
    if not first:
        start, stop = max(0, size - int(last)), size
    else:
        start, stop = int(first), min(int(last) + 1, size) if last else size
        if last and int(last) < start:
            return None
    if start >= stop:
        raise NoSuchRange(f"The text has {size:,} bytes; there are none in {header!r}.")
    return range(start, stop)


def _text(content: bytes, status: int = 200) -> HttpResponse:
    """Shown as what it is and never run, whatever an agent wrote."""
    response = HttpResponse(content, status=status, content_type="text/plain; charset=utf-8")
    response["Accept-Ranges"] = "bytes"
    response["Content-Disposition"] = "inline"
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _no_such_range(error: NoSuchRange, size: int) -> Response:
    response = handle(error, {})
    assert response is not None
    response["Content-Range"] = f"bytes */{size}"
    return response
