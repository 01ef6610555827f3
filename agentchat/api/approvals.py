"""Requests, and deciding them."""

from __future__ import annotations

import hashlib
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from agentchat import wire
from agentchat.api import bodies, shapes
from agentchat.api.base import View, body, query
from agentchat.api.idempotency import once
from agentchat.api.items import whole
from agentchat.api.pages import page
from agentchat.api.polling import not_yet
from agentchat.events import Action, ItemStatus, Scope, Via
from agentchat.exceptions import NotFound
from agentchat.models import OutputItem
from agentchat.services import approvals, canonical, permissions, snapshot
from agentchat.wire import Wire

NEWEST = ("created_at", "pk")
DECIDED_LAST = ("resolution__pk",)
FILTERS = {"tool": "name", "chat": "message__chat", "risk": "request__risk__level"}
OUR_PAGE = "agentchat-page"
"""What our own page says in `X-Requested-With`."""


class Approvals(View):
    @extend_schema(
        operation_id="approvals_list",
        parameters=[bodies.ApprovalsQuery],
        responses=shapes.answers(200, shapes.Approvals, 422),
        summary="Requests, newest first; decided ones: the last decision first",
    )
    def get(self, request: Request) -> Response:
        asked = query(request, bodies.ApprovalsQuery)
        order = DECIDED_LAST if asked.get("state") == "decided" else NEWEST
        return page(request, _requests(request.user, asked), order, asked, _row)


class Approval(View):
    @extend_schema(
        operation_id="approvals_read",
        parameters=[bodies.WaitQuery],
        responses=shapes.answers(200, shapes.ApprovalDetail, 404, 422),
        summary="One request; with `wait`, as soon as it is decided",
    )
    def get(self, request: Request, item_id: UUID) -> Response:
        asked = query(request, bodies.WaitQuery)
        row = OutputItem.objects.visible_to(request.user).requests().select_related("message__chat")
        found = row.defer("text", "html", "native").filter(pk=item_id).first()
        if found is None:
            raise NotFound()
        item = whole(request, item_id)
        response = Response(_detail(item, wire.chat(found.message.chat)))
        return not_yet(response, found.message.chat_id, asked["wait"]) if _is_open(item) else response


class Decision(View):
    @extend_schema(
        operation_id="approvals_decide",
        parameters=[shapes.KEY],
        request=bodies.DecisionBody,
        responses=shapes.answers(200, shapes.Decided, 400, 403, 404, 409, 410, 422),
        summary="Decide a request. The first decision stands; the same again gives the stored one",
    )
    @once
    def post(self, request: Request, item_id: UUID) -> Response:
        said = body(request, bodies.DecisionBody)
        decision = approvals.Decision(**said | {"reason": said["reason"] or ""})
        if isinstance(decision.arguments, str):
            canonical.parse(decision.arguments)  # or a typing mistake would become the arguments
        made = approvals.decide(request.user, item_id, decision, via=_via(request), proof=_proof(request))
        return Response({"resolution": wire.resolution(made, getattr(made, "receipt", None))})


def _requests(user: Any, asked: dict[str, Any]) -> QuerySet[OutputItem]:
    rows = OutputItem.objects.visible_to(user).requests()
    if asked.get("state") == "pending":
        rows = rows.pending()
    elif asked.get("state") == "decided":
        rows = rows.filter(resolution__isnull=False)
    given = {column: asked[name] for name, column in FILTERS.items() if name in asked}
    related = rows.filter(**given).select_related("message__chat", "resolution__receipt")
    return related.defer("text", "html", "native")


def _row(row: OutputItem) -> Wire:
    item = snapshot.item_of(row)
    return {
        "id": item["id"],
        "item": item,
        "chat": wire.chat(row.message.chat),
        "resolution": item["resolution"],
    }


def _detail(item: Wire, chat: Wire) -> Wire:
    resolution = item["resolution"]
    return {
        "id": item["id"],
        "item": item,
        "chat": chat,
        "request": item["request"],
        "digest": item["digest"],
        "options": _options(item),
        "resolution": resolution,
        "delivery": resolution and resolution["receipt"],
    }


def _options(item: Wire) -> Wire:
    if not _is_open(item):
        return {"actions": [], "scopes": []}
    yes = Action.ANSWER if permissions.is_question(item["name"], item["request"]) else Action.APPROVE
    return {"actions": [yes, Action.REJECT], "scopes": [Scope.ONCE]}


def _is_open(item: Wire) -> bool:
    return item["resolution"] is None and item["status"] == ItemStatus.PENDING


def _via(request: Request) -> Via:
    return Via.BROWSER if request.headers.get("X-Requested-With") == OUR_PAGE else Via.API


def _proof(request: Request) -> str:
    """Names the session without giving it away."""
    key = request.session.session_key or ""
    return f"session:{hashlib.sha256(key.encode()).hexdigest()[:16]}"
