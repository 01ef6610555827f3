"""Browsers by the hundred, as cheap as can be: they take in what comes, answer pings, and read it when all is over."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Iterator
from typing import Any, Self

HANDSHAKE = (
    "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}\r\nCookie: {cookie}\r\n"
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n\r\n"
)
"""RFC 6455, section 4.1, with the offer of RFC 7692 that browsers make."""
PING, COMPRESSED = 0x89, 0xC1
PONG = b"\x8a\x80\0\0\0\0"


class Browser(asyncio.Protocol):
    def __init__(self, handshake: str) -> None:
        self._handshake = handshake.encode()
        self._transport: asyncio.Transport
        self._data = bytearray()
        self._read = 0
        self._inflate = zlib.decompressobj(wbits=-15)
        self.payloads: list[bytes] = []

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        transport.write(self._handshake)

    def data_received(self, data: bytes) -> None:
        self._data += data
        if not self._read:
            end = self._data.find(b"\r\n\r\n")
            self._read = end + 4 if end >= 0 else 0
        while self._read and self._frame():
            continue

    def _frame(self) -> bool:
        """Whether a whole frame could be taken."""
        data, at = self._data, self._read
        if len(data) < at + 4:
            return False
        short = data[at + 1]
        size, begin = (short, at + 2) if short < 126 else (int.from_bytes(data[at + 2 : at + 4]), at + 4)
        if short == 127:
            size, begin = int.from_bytes(data[at + 2 : at + 10]), at + 10
        if len(data) < begin + size:
            return False
        self._take(data[at], bytes(data[begin : begin + size]))
        self._read = begin + size
        return True

    def _take(self, kind: int, payload: bytes) -> None:
        if kind == PING:
            self._transport.write(PONG)
        elif kind == COMPRESSED:
            self.payloads.append(payload)
        else:
            raise ValueError(f"The server sent a frame that begins with {kind:#x}: {payload[:80]!r}")

    def frames(self) -> Iterator[Any]:
        """All of them. Call it once: the context of the compression is used up by it."""
        for payload in self.payloads:
            yield json.loads(self._inflate.decompress(payload + b"\0\0\xff\xff"))

    def gaps(self, after: int) -> int:
        """Events that are missing, or there twice, between `after` and the last one."""
        seqs = [event["seq"] for frame in self.frames() for event in frame["events"]]
        return len(set(range(after + 1, max(seqs, default=after) + 1)) ^ set(seqs)) + len(seqs) - len(set(seqs))

    def close(self) -> None:
        self._transport.close()


class Crowd:
    """`async with Crowd(port, path, cookie, 500) as crowd:`; all of them are connected, and let in."""

    def __init__(self, port: int, path: str, cookie: str, count: int) -> None:
        self._port, self._count = port, count
        self._handshake = HANDSHAKE.format(path=path, port=port, cookie=cookie)
        self.browsers: list[Browser] = []

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        for _ in range(self._count):
            _, browser = await loop.create_connection(lambda: Browser(self._handshake), "127.0.0.1", self._port)
            self.browsers.append(browser)
            await asyncio.sleep(0.01)
        return self

    async def __aexit__(self, *exception: object) -> None:
        for browser in self.browsers:
            browser.close()
        await asyncio.sleep(0.5)

    @property
    def delivered(self) -> int:
        return sum(len(browser.payloads) for browser in self.browsers)
