"""The ASGI door: http to Django, sockets (of our own pages only) to the consumers, lifespan to the supervisor."""

from __future__ import annotations

import logging
from io import BytesIO
from typing import Any

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest
from django.urls import path

from agentchat.consumers import TRY_AGAIN, ChatConsumer, InboxConsumer
from agentchat.models import outage
from agentchat.supervisor import lifecycle

log = logging.getLogger(__name__)

websocket_urlpatterns = [
    path("ws/chats/<uuid:chat_id>/", ChatConsumer.as_asgi()),
    path("ws/inbox/", InboxConsumer.as_asgi()),
]


async def lifespan(scope: Any, receive: Any, send: Any) -> None:
    """uvicorn's way to start before the first request and to drain before the end; daphne has `manage.py serve`."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await lifecycle.start()
            await send({"type": "lifespan.startup.complete"})
        else:
            await lifecycle.stop()
            await send({"type": "lifespan.shutdown.complete"})
            return


class OwnPagesOnly:
    """Refuses a socket (403) whose Host or Origin Django would refuse for a form: another port is another site."""

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> Any:
        application = self._application if _is_own(scope) else WebsocketDenier.as_asgi()
        try:
            return await application(scope, receive, send)
        except outage.ERRORS as error:
            log.warning("A socket was not opened, since the database is away: %s", error)
            await send({"type": "websocket.close", "code": TRY_AGAIN})


def _is_own(scope: Any) -> bool:
    scheme = "https" if scope.get("scheme") == "wss" else "http"
    request = ASGIRequest({**scope, "method": "GET", "scheme": scheme, "query_string": b""}, BytesIO())
    try:
        own = f"{request.scheme}://{request.get_host()}"
    except DisallowedHost:
        return False
    return request.headers.get("Origin") in (own, *settings.CSRF_TRUSTED_ORIGINS)


def build(http: Any) -> Any:
    sockets = OwnPagesOnly(AuthMiddlewareStack(URLRouter(websocket_urlpatterns)))
    return ProtocolTypeRouter({"http": http, "websocket": sockets, "lifespan": lifespan})
