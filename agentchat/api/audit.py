"""The audit: what became of every request in a person's chats, also in those that they deleted."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from agentchat import wire
from agentchat.api import bodies, shapes
from agentchat.api.base import View, query
from agentchat.api.pages import page
from agentchat.models import Resolution
from agentchat.providers import registry
from agentchat.wire import Wire

FILTERS = {
    "action": "action",
    "cause": "cause",
    "tool": "tool",
    "chat": "chat",
    "decided_by": "decided_by_name",
    "from": "decided_at__gte",
    "to": "decided_at__lt",
}


class Resolutions(View):
    @extend_schema(
        operation_id="resolutions_list",
        parameters=[bodies.ResolutionsQuery],
        responses=shapes.answers(200, shapes.AuditRows, 422),
        summary="The audit, the last decision first",
    )
    def get(self, request: Request) -> Response:
        asked = query(request, bodies.ResolutionsQuery)
        return page(request, _resolutions(request.user, asked), ("pk",), asked, _row)


class Providers(View):
    @extend_schema(
        operation_id="providers_list",
        responses=shapes.answers(200, shapes.Provider(many=True)),
        summary="The agents that there are, and whether this server can run them",
    )
    def get(self, request: Request) -> Response:
        return Response(registry.describe())


def _resolutions(user: Any, asked: dict[str, Any]) -> QuerySet[Resolution]:
    given = {column: asked[name] for name, column in FILTERS.items() if name in asked}
    return Resolution.objects.filter(chat__owner=user, **given).select_related("receipt")


def _row(row: Resolution) -> Wire:
    chained = {"chat": str(row.chat_id), "proof": row.proof, "prev_hash": row.prev_hash}
    return wire.resolution(row, getattr(row, "receipt", None)) | chained
