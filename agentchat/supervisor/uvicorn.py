"""uvicorn on a socket that another process has opened: one of the processes of `serve --processes`.

Its standard input is a pipe from the process that started it. When that ends, the server drains: nobody would
look after it any more.
"""

from __future__ import annotations

import asyncio
import socket
import sys

import uvicorn
from django.conf import settings
from django.utils.module_loading import import_string

from agentchat.supervisor import compression, lifecycle

CLOSE_SECONDS = 3
"""For answers that are on their way when everything else has drained."""


class _Server(uvicorn.Server):
    """Drains first: uvicorn would wait for the long polls, which only the end of the hub ends, and would close
    sockets by a code of its own."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), self._parent_is_gone)

    def _parent_is_gone(self) -> None:
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        await lifecycle.stop()
        await super().shutdown(sockets)


def serve(descriptor: int) -> None:
    """Blocks until SIGTERM or SIGINT, by which it then ends: that is uvicorn's way, and no failure."""
    config = uvicorn.Config(
        import_string(settings.ASGI_APPLICATION),
        lifespan="on",
        ws=compression.UvicornSocket,
        ws_per_message_deflate=False,  # the socket has a cheaper one
        timeout_graceful_shutdown=CLOSE_SECONDS,
        log_config=None,
        access_log=False,
        proxy_headers=False,
    )
    with socket.socket(fileno=descriptor) as listener:
        _Server(config).run(sockets=[listener])
