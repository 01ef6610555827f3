"""A line that carries so many bytes a second, and holds next to nothing on the way."""

from __future__ import annotations

import asyncio
import socket
from types import TracebackType
from typing import Self

STEP = 0.05
"""Seconds between two pieces."""


class SlowLine:
    """`async with SlowLine(port, 20_000) as line:` and connect to `line.port` instead of `port`, on 127.0.0.1."""

    def __init__(self, port: int, bytes_per_second: int) -> None:
        self._to, self._piece = port, int(bytes_per_second * STEP)
        self._lines: set[asyncio.Task[None]] = set()
        self.carried = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for line in self._lines:
            line.cancel()
        await asyncio.gather(*self._lines, return_exceptions=True)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        near = socket.socket()
        near.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        near.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(near, ("127.0.0.1", self._to))
        for line in (self._up(reader, near), self._down(near, writer)):
            self._lines.add(asyncio.create_task(line))

    async def _up(self, reader: asyncio.StreamReader, near: socket.socket) -> None:
        while data := await reader.read(4096):
            await asyncio.get_running_loop().sock_sendall(near, data)

    async def _down(self, near: socket.socket, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while data := await loop.sock_recv(near, self._piece):
            writer.write(data)
            await writer.drain()
            self.carried += len(data)
            due = max(due, loop.time() - STEP) + len(data) / self._piece * STEP
            await asyncio.sleep(max(0, due - loop.time()))
        writer.close()
