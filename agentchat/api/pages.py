"""Lists in pages. A cursor names the last row of a page, so a page does not shift when rows are added."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.core import signing
from django.db.models import Q, QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from agentchat.exceptions import Invalid

SALT = "agentchat.api.cursor"


def page(
    request: Request,
    rows: QuerySet[Any],
    order: Sequence[str],
    query: dict[str, Any],
    shown: Callable[[Any], Any],
) -> Response:
    """`{results, next}` of rows in this order (fields, each descending); the last of them must be unique."""
    if cursor := query.get("cursor"):
        rows = rows.filter(_below(order, _read(cursor, order)))
    found = list(rows.order_by(*(f"-{name}" for name in order))[: query["limit"] + 1])
    results, more = found[: query["limit"]], len(found) > query["limit"]
    following = _address(request, _cursor(results[-1], order)) if more else None
    return Response({"results": [shown(row) for row in results], "next": following})


def _below(order: Sequence[str], values: Sequence[Any]) -> Q:
    """(a, b) < (x, y), said in a way that also holds for booleans: a < x, or a = x and b < y."""
    found, same = Q(pk__in=[]), Q()
    for name, value in zip(order, values, strict=True):
        below = Q(**{name: False}) if value is True else Q(**{f"{name}__lt": value})
        if value is not False:
            found |= same & below
        same &= Q(**{name: value})
    return found


def _cursor(row: Any, order: Sequence[str]) -> str:
    values = [_plain(_value(row, name)) for name in order]
    return signing.dumps(values, salt=f"{SALT}:{','.join(order)}")


def _value(row: Any, name: str) -> Any:
    for part in name.split("__"):
        row = getattr(row, part)
    return row


def _plain(value: Any) -> Any:
    if isinstance(value, bool | int):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _read(cursor: str, order: Sequence[str]) -> list[Any]:
    """Signed, so that the database only ever sees values that it gave itself."""
    try:
        values: list[Any] = signing.loads(cursor, salt=f"{SALT}:{','.join(order)}")
    except signing.BadSignature:
        raise Invalid("This cursor is not one of this list. Begin at the first page.") from None
    return values


def _address(request: Request, cursor: str) -> str:
    query = request.query_params.copy()
    query["cursor"] = cursor
    return request.build_absolute_uri(f"{request.path}?{query.urlencode()}")
