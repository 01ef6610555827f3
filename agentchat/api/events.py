"""The journal of a chat, for those who cannot hold a socket open."""

from __future__ import annotations

import json
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from agentchat.api import bodies, shapes
from agentchat.api.base import View, query
from agentchat.api.chats import chat_of
from agentchat.api.polling import not_yet
from agentchat.journal import reader


class Events(View):
    @extend_schema(
        operation_id="events_list",
        parameters=[bodies.EventsQuery],
        responses=shapes.answers(200, shapes.Events, 404, 410, 422),
        summary="What happened after an event; 410 means: take the snapshot",
    )
    def get(self, request: Request, chat_id: UUID) -> Response:
        asked = query(request, bodies.EventsQuery)
        chat_of(request.user, chat_id)
        page = reader.read(chat_id, asked["after"])
        events = [{"seq": seq, **json.loads(body)} for seq, body in enumerate(page.bodies, page.first)]
        response = Response({"cursor": page.cursor, "events": events})
        return response if events else not_yet(response, chat_id, asked["wait"])
