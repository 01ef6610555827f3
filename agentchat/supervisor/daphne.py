"""daphne with a life of its own around it: it knows no lifespan, so ours starts before the port opens and drains at
the end."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from typing import Any

from daphne.endpoints import build_endpoint_description_strings
from daphne.server import Server
from daphne.ws_protocol import WebSocketFactory, WebSocketProtocol
from django.conf import settings
from django.utils.module_loading import import_string
from twisted.internet import reactor as twisted_reactor
from twisted.internet.defer import Deferred

from agentchat.supervisor import compression, lifecycle

DRAIN_SECONDS = 20
GOING_AWAY = 1001
CLOSE_SECONDS = 2
"""For sockets to be closed (1001) and for answers that wait."""
reactor: Any = twisted_reactor
"""Typed loosely: which reactor it is (that of asyncio) is settled at run time, by importing daphne.server first."""
reactor.seconds = time.monotonic  # by the clock on the wall, set back by an hour, nothing would be due for an hour


class _Socket(WebSocketProtocol):  # type: ignore[misc]  # it has no types
    """Deflates, as browsers offer. Its own way to close allows only the codes of applications, and raises for that of a
    server that goes away. And it would hold all that a slow line does not take: here `send` waits instead."""

    last_ping: float

    def _connectionMade(self) -> None:
        super()._connectionMade()
        self.perMessageCompressionAccept = compression.accept
        self.room = asyncio.Event()
        self.room.set()
        self.transport.unregisterProducer()  # that of HTTP
        self.transport.bufferSize = compression.UNSENT_BYTES
        self.transport.registerProducer(self, True)
        compression.hold_little(self.transport.getHandle())

    def pauseProducing(self) -> None:
        self.room.clear()

    def resumeProducing(self) -> None:
        self.room.set()

    stopProducing = resumeProducing

    def check_timeouts(self) -> None:
        """daphne pings by the clock on the wall, which may be set back."""
        self.last_ping = min(self.last_ping, time.time())
        super().check_timeouts()

    def serverClose(self, code: int | None = None) -> None:
        if code == GOING_AWAY:
            self.sendCloseFrame(code=code)
        else:
            super().serverClose(code)


class _Server(Server):  # type: ignore[misc]  # it has no types
    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        await super().handle_reply(protocol, message)
        if isinstance(protocol, _Socket) and message["type"] == "websocket.send":
            await protocol.room.wait()


def serve(host: str, port: int, ready: Callable[[], None]) -> None:
    """Blocks until SIGTERM or SIGINT. `ready` is called once the port is open."""
    server = _Server(
        import_string(settings.ASGI_APPLICATION),
        endpoints=build_endpoint_description_strings(host=host, port=port),
        signal_handlers=False,
        application_close_timeout=5,
        verbosity=0,
    )
    WebSocketFactory.protocol = _Socket
    loop = reactor._asyncioEventloop
    asyncio.set_event_loop(loop)
    loop.run_until_complete(lifecycle.start())
    reactor.callWhenRunning(ready)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _end, server)
    reactor.addSystemEventTrigger("before", "shutdown", _drain)
    server.run()


def _end(server: Any) -> None:
    """Drain first: daphne cuts off what is open as soon as it stops, before any socket could be told."""
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, lambda: None)
    leaving = asyncio.ensure_future(_leave(server))
    leaving.add_done_callback(lambda _: server.stop())


async def _leave(server: Any) -> None:
    async with asyncio.timeout(DRAIN_SECONDS):
        await lifecycle.stop()
    still = [details.get("application_instance") for details in server.connections.values()]
    if any(still):
        await asyncio.wait(filter(None, still), timeout=CLOSE_SECONDS)


def _drain() -> Deferred[None]:
    """The reactor waits for what is returned."""
    return Deferred.fromFuture(asyncio.ensure_future(asyncio.wait_for(lifecycle.stop(), DRAIN_SECONDS)))
