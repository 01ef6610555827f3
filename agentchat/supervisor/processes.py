"""Several server processes behind one port: they inherit one listening socket, and one that dies is started again."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import time
from collections.abc import Callable, Sequence

log = logging.getLogger(__name__)
DRAIN_SECONDS = 30
"""Longer than a process takes to drain; one that is not done by then is killed."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
LIVED = 60.0
"""Seconds after which a death counts as the first again."""
ENDED_BY_US = (0, -signal.SIGTERM, -signal.SIGINT)
"""uvicorn ends by the signal that it was sent, after a clean end."""


class Processes:
    """`command(descriptor)` is what starts one. `ready` is called once the first of them answers."""

    def __init__(
        self, listener: socket.socket, command: Callable[[int], Sequence[str]], count: int, ready: Callable[[], None]
    ) -> None:
        self._listener, self._command, self._count, self._ready = listener, command, count, ready
        self._living: dict[int, asyncio.subprocess.Process] = {}
        self._answered = self._stubborn = False
        self._stopping = asyncio.Event()

    async def run(self) -> int:
        """Until SIGTERM or SIGINT: 0 if all drained, 1 if not, or if they could not even start."""
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._stopping.set)
        asking = asyncio.create_task(self._ask(), name="the first answer")
        keepers = [asyncio.create_task(self._keep(nth), name=f"process {nth}") for nth in range(1, self._count + 1)]
        await self._stopping.wait()
        asking.cancel()
        await asyncio.gather(asking, self._end(), *keepers, return_exceptions=True)
        return 0 if self._answered and not self._stubborn else 1

    async def _keep(self, nth: int) -> None:
        """Start one process, and another in its place whenever it dies."""
        deaths = 0
        while not self._stopping.is_set():
            begun = time.monotonic()
            code = await self._live(nth)
            if self._stopping.is_set():
                return
            deaths = 1 if time.monotonic() - begun > LIVED else deaths + 1
            await self._mourn(nth, code, min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (deaths - 1)))

    async def _live(self, nth: int) -> int:
        descriptor = self._listener.fileno()
        # A session of its own: Ctrl-C in a terminal reaches us, and we pass it on once.
        process = await asyncio.create_subprocess_exec(
            *self._command(descriptor), stdin=asyncio.subprocess.PIPE, pass_fds=[descriptor], start_new_session=True
        )
        self._living[nth] = process
        if self._stopping.is_set():
            self._send(process, signal.SIGTERM)
        log.info("Server process %d has the id %d.", nth, process.pid)
        try:
            return await process.wait()
        finally:
            del self._living[nth]

    async def _mourn(self, nth: int, code: int, pause: float) -> None:
        if not self._answered and code not in ENDED_BY_US:
            log.error("Server process %d ended with %d before any of them answered. Its words are above.", nth, code)
            self._stopping.set()
            return
        log.warning("Server process %d ended with %d. It is started again in %.1f s.", nth, code, pause)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._stopping.wait()

    async def _ask(self) -> None:
        """Whatever is answered: in production it may be a redirect."""
        address = self._listener.getsockname()
        while not self._answered:
            try:
                reader, writer = await asyncio.open_connection(*_reachable(address))
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                self._answered = (await reader.read(5)) == b"HTTP/"
                writer.close()
            except OSError as error:
                log.debug("No answer yet: %s", error)
            await asyncio.sleep(0 if self._answered else 0.1)
        self._ready()

    async def _end(self) -> None:
        for process in list(self._living.values()):
            self._send(process, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                while self._living:
                    await asyncio.sleep(0.05)
        for process in list(self._living.values()):
            self._stubborn = True
            log.error("The server process of id %d did not end in %d s and is killed.", process.pid, DRAIN_SECONDS)
            self._send(process, signal.SIGKILL)

    def _send(self, process: asyncio.subprocess.Process, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)


def _reachable(address: tuple[str, int]) -> tuple[str, int]:
    """Who listens on all addresses is asked on the loopback."""
    host, port = address[:2]
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), port


def serve(
    listener: socket.socket, command: Callable[[int], Sequence[str]], count: int, ready: Callable[[], None]
) -> int:
    async def run() -> int:
        return await Processes(listener, command, count, ready).run()

    return asyncio.run(run())
