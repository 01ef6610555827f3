"""Chats, and what is said in them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from agentchat import wire
from agentchat.api import bodies, shapes
from agentchat.api.base import View, body, query
from agentchat.api.idempotency import once
from agentchat.api.pages import page
from agentchat.events import RunStatus
from agentchat.exceptions import Invalid, NotFound
from agentchat.models import Chat, Run
from agentchat.services import chats, lists, runs, snapshot

NEWEST = ("pinned", "updated_at", "pk")


class Chats(View):
    @extend_schema(
        operation_id="chats_list",
        parameters=[bodies.ChatsQuery],
        responses=shapes.answers(200, shapes.Chats, 422),
        summary="Chats, pinned first, then newest first",
    )
    def get(self, request: Request) -> Response:
        asked = query(request, bodies.ChatsQuery)
        rows = lists.chats(request.user, q=asked["q"], archived=asked["archived"] == "1")
        return page(request, rows, NEWEST, asked, wire.chat)

    @extend_schema(
        operation_id="chats_create",
        parameters=[shapes.KEY],
        request=bodies.ChatBody,
        responses=shapes.answers(201, shapes.Chat, 400, 403, 422),
        summary="Start a chat",
    )
    @once
    def post(self, request: Request) -> Response:
        chat = chats.create(user=request.user, **body(request, bodies.ChatBody))
        return Response(wire.chat(chat), status=201)


class ChatDetail(View):
    @extend_schema(operation_id="chats_read", responses=shapes.answers(200, shapes.Chat, 404), summary="One chat")
    def get(self, request: Request, chat_id: UUID) -> Response:
        return Response(wire.chat(chat_of(request.user, chat_id)))

    @extend_schema(
        operation_id="chats_change",
        request=bodies.ChatChanges,
        responses=shapes.answers(200, shapes.Chat, 400, 403, 404, 422),
        summary="Rename, pin, archive, or change the mode",
    )
    def patch(self, request: Request, chat_id: UUID) -> Response:
        changes = body(request, bodies.ChatChanges)
        if not changes:
            raise Invalid(f"Nothing is changed. Name at least one of: {', '.join(chats.CHANGEABLE)}.")
        return Response(wire.chat(chats.change(user=request.user, chat_id=chat_id, **changes)))

    @extend_schema(operation_id="chats_delete", responses=shapes.answers(204, None, 403, 404), summary="Delete a chat")
    def delete(self, request: Request, chat_id: UUID) -> Response:
        chats.delete(user=request.user, chat_id=chat_id)
        return Response(status=204)


class Messages(View):
    @extend_schema(
        operation_id="messages_list",
        parameters=[bodies.BeforeQuery],
        responses=shapes.answers(200, shapes.Messages, 404, 422),
        summary="The newest messages, the oldest of them first; `next` leads to older ones",
    )
    def get(self, request: Request, chat_id: UUID) -> Response:
        found = snapshot.chat_snapshot(request.user, chat_id, **query(request, bodies.BeforeQuery))
        return Response({"results": found["messages"], "next": _older(request, found)})

    @extend_schema(
        operation_id="messages_create",
        parameters=[shapes.KEY],
        request=bodies.MessageBody,
        responses=shapes.answers(201, shapes.Posted, 400, 403, 404, 409, 422),
        summary="Say something; the agent answers",
    )
    @once
    def post(self, request: Request, chat_id: UUID) -> Response:
        said, run = chats.post(user=request.user, chat_id=chat_id, **body(request, bodies.MessageBody))
        return Response({"message": wire.message(said, [], None), "run": wire.run(run)}, status=201)


class Snapshot(View):
    @extend_schema(
        operation_id="chats_snapshot",
        parameters=[bodies.BeforeQuery],
        responses=shapes.answers(200, shapes.Snapshot, 404, 422),
        summary="All that is needed to draw a chat, with the event up to which it is true",
    )
    def get(self, request: Request, chat_id: UUID) -> Response:
        return Response(snapshot.chat_snapshot(request.user, chat_id, **query(request, bodies.BeforeQuery)))


class ShowRun(View):
    @extend_schema(
        operation_id="runs_show",
        responses=shapes.answers(200, shapes.PlacedRun, 404),
        summary="A run; while it waits for a free worker, with its place in the line",
    )
    def get(self, request: Request, run_id: UUID) -> Response:
        run = Run.objects.filter(pk=run_id, chat__in=Chat.objects.visible_to(request.user)).first()
        if run is None:
            raise NotFound()
        place = runs.place(run.pk) if run.status == RunStatus.QUEUED else None
        return Response({"run": wire.run(run), "place": place})


class StopRun(View):
    @extend_schema(
        operation_id="runs_stop",
        parameters=[shapes.KEY],
        request=None,
        responses=shapes.answers(200, shapes.Run, 400, 403, 404, 422),
        summary="Stop a run, or take back a message that waits for its turn",
    )
    @once
    def post(self, request: Request, run_id: UUID) -> Response:
        body(request, bodies.EmptyBody)
        return Response(wire.run(runs.stop(request.user, run_id)))


def chat_of(user: Any, chat_id: UUID) -> Chat:
    """Raises NotFound, also for what is not theirs."""
    chat = Chat.objects.visible_to(user).filter(pk=chat_id).first()
    if chat is None:
        raise NotFound()
    return chat


def _older(request: Request, found: dict[str, Any]) -> str | None:
    if not found["more"]:
        return None
    return request.build_absolute_uri(f"{request.path}?before={found['messages'][0]['position']}")
