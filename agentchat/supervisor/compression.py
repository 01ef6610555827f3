"""permessage-deflate (RFC 7692) with small windows, in both servers.

An event is some 150 bytes of names around 40 of text, and the next one has the same names: a window of 1 KiB makes it
a third. It costs 4 us and 12 KiB a socket; with zlib's own choice it would be 256 KiB.
"""

from __future__ import annotations

import socket
from asyncio.transports import BaseTransport
from typing import Any

from autobahn.websocket.compress import PerMessageDeflateOffer, PerMessageDeflateOfferAccept
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory
from websockets.server import ServerProtocol

WINDOW_BITS = 10
MEMORY_LEVEL = 2
UNSENT_BYTES = 8_192
"""What this process, and then the system, may hold for a slow line before `send` waits; they would take megabytes."""


def deflate() -> ServerPerMessageDeflateFactory:
    """The browser sends next to nothing, so it keeps no context either, which would cost memory here."""
    return ServerPerMessageDeflateFactory(
        server_max_window_bits=WINDOW_BITS,
        client_no_context_takeover=True,
        compress_settings={"memLevel": MEMORY_LEVEL},
    )


class UvicornSocket(WebSocketsSansIOProtocol):
    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.conn = ServerProtocol(extensions=[deflate()], max_size=self.config.ws_max_size, logger=self.logger)

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)
        self.transport.set_write_buffer_limits(high=UNSENT_BYTES)
        hold_little(self.transport.get_extra_info("socket"))


def hold_little(line: Any) -> None:
    """Where the system can be told."""
    if hasattr(socket, "TCP_NOTSENT_LOWAT") and line.family in (socket.AF_INET, socket.AF_INET6):
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)


def accept(offers: list[Any]) -> PerMessageDeflateOfferAccept | None:
    """What autobahn, and so daphne, answers to what a browser offers."""
    for offer in offers:
        if isinstance(offer, PerMessageDeflateOffer):
            return PerMessageDeflateOfferAccept(  # type: ignore[no-untyped-call]  # it has no types
                offer,
                request_no_context_takeover=True,
                window_bits=min(WINDOW_BITS, offer.request_max_window_bits or WINDOW_BITS),
                mem_level=MEMORY_LEVEL,
            )
    return None
