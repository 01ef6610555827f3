"""The ASGI door: http to Django, sockets (of our own pages only) to the consumers, lifespan to the supervisor."""

from __future__ import annotations

from typing import Any

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from django.urls import path

from agentchat.consumers import ChatConsumer, InboxConsumer
from agentchat.supervisor import lifecycle

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


def build(http: Any) -> Any:
    sockets = AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter(websocket_urlpatterns)))
    return ProtocolTypeRouter({"http": http, "websocket": sockets, "lifespan": lifespan})
