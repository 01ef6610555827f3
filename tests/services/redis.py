"""A private Redis: a free port, nothing written to disk."""

from __future__ import annotations

import atexit
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import redis

from tests.services.process import Service, ServiceFailed, free_port, stop, tail, wait_until


class Redis(Service):
    """`with Redis() as server: server.url`. `stop()`, then `start()`, keep the port, as a restart does."""

    def __init__(self) -> None:
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self.folder: Path | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> Self:
        program = shutil.which("redis-server") or shutil.which("valkey-server")
        if program is None:
            raise ServiceFailed("Redis is missing. `tests/services/prepare` says how to get it.")
        atexit.register(self.stop)
        self.folder = Path(tempfile.mkdtemp(prefix="agentchat-redis-"))
        self.log = self.folder / "log"
        options = {"port": self.port, "bind": "127.0.0.1", "dir": self.folder, "save": "", "appendonly": "no"}
        words = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [program, *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            wait_until(self._answers, self.process, self.log, what="Redis", seconds=10)
        except BaseException:
            self.stop()
            raise
        return self

    def _answers(self) -> bool:
        try:
            with redis.Redis.from_url(self.url, socket_connect_timeout=2) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False

    def stop(self) -> None:
        if self.process is not None:
            stop(self.process)
            self.process = None
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None
        atexit.unregister(self.stop)

    def kill(self) -> None:
        """At once, as a crash does."""
        assert self.process is not None, "Redis is not running"
        stop(self.process, signal.SIGKILL)
        self.stop()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """It stands still: connections are there, and nothing answers."""
        assert self.process is not None, "Redis is not running"
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def says(self) -> str:
        return tail(self.log)
