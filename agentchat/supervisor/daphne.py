"""daphne with a life of its own around it: it knows no lifespan, so ours starts before the port opens and drains at
the end."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from daphne.endpoints import build_endpoint_description_strings
from daphne.server import Server
from django.conf import settings
from django.utils.module_loading import import_string
from twisted.internet import reactor as twisted_reactor
from twisted.internet.defer import Deferred

from agentchat.supervisor import lifecycle

log = logging.getLogger(__name__)
DRAIN_SECONDS = 20
reactor: Any = twisted_reactor
"""Typed loosely: the reactor is chosen at run time (daphne.server installs the one of asyncio)."""


def serve(host: str, port: int) -> None:
    """Blocks until SIGTERM or SIGINT."""
    application = import_string(settings.ASGI_APPLICATION)
    server = Server(
        application,
        endpoints=build_endpoint_description_strings(host=host, port=port),
        application_close_timeout=5,
        websocket_handshake_timeout=10,
        verbosity=0,
    )
    reactor.callWhenRunning(_start)
    reactor.addSystemEventTrigger("before", "shutdown", _drain)
    server.run()


def _start() -> None:
    task = asyncio.get_event_loop().create_task(lifecycle.start(), name="start")
    task.add_done_callback(_started)


def _started(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()):
        log.critical("agentchat could not start.", exc_info=error)
        reactor.stop()


def _drain() -> Deferred[None]:
    """The reactor waits for what is returned."""
    return Deferred.fromFuture(asyncio.ensure_future(asyncio.wait_for(lifecycle.stop(), DRAIN_SECONDS)))
