"""Where the journal touches the database: a thread of its own, with a connection of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from django.db import InterfaceError, OperationalError, connection

T = TypeVar("T")


class DatabaseThread:
    """Runs functions one after another in one thread; a broken connection is replaced before the next."""

    def __init__(self, name: str, *, durable: bool = True) -> None:
        self._pool = ThreadPoolExecutor(1, name, initializer=None if durable else _relax)

    async def __call__(self, function: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, _guarded, function, *arguments)

    def close(self) -> None:
        self._pool.submit(lambda: connection.close()).result()
        self._pool.shutdown()


def _guarded(function: Callable[..., T], *arguments: Any) -> T:
    try:
        return function(*arguments)
    except (OperationalError, InterfaceError):
        connection.close()
        raise


def _relax() -> None:
    """Streamed text may lose its last instant at a power failure (not at a crash); a decision may not."""
    if connection.vendor == "sqlite":
        connection.ensure_connection()
        connection.connection.execute("PRAGMA synchronous=NORMAL")
