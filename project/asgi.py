"""The door of the server: http, websocket, and the lifespan by which uvicorn starts and drains us."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
django_application = get_asgi_application()

from agentchat.routing import build  # noqa: E402  (models can be imported only after the set-up above)

application = build(django_application)
