"""The product in several processes: a private PostgreSQL, a private Redis, two uvicorn processes behind one port, and workers.

To try it: `make cluster`. Tests that must reach each process by itself start `WebProcess`es.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import IO, Any, LiteralString, Self

import psycopg

from tests.services.client import until
from tests.services.postgres import Postgres
from tests.services.process import Service, ServiceFailed
from tests.services.redis import Redis
from tests.services.server import Server
from tests.services.worker import Worker

SIGN_IN = "from agentchat.services import signin; print('TOKEN', signin.token(signin.owner()))"


class WebProcess(Server):
    """One uvicorn process, as `serve --processes` starts it, but at a port of its own and with nobody who starts it again.

    The database must be migrated.
    """

    def _open(self, log: IO[bytes], **more: Any) -> subprocess.Popen[bytes]:
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", self.port))
            listener.listen()
            command = [*self.program, "serve", "--inherited", str(listener.fileno()), "--skip-checks"]
            inherited = {"args": command, "stdin": subprocess.PIPE, "pass_fds": [listener.fileno()]}
            return super()._open(log, **(inherited | more))

    program: Sequence[str] = (sys.executable, "manage.py")

    @property
    def link(self) -> str:
        said = self.manage("shell", "-c", SIGN_IN).stdout.split("TOKEN", 1)[1]
        return f"{self.url}/accounts/link/{said.split()[0]}/"

    def stop(self, seconds: float = 30) -> int:
        """uvicorn ends by the signal that it was sent, after a clean end."""
        code = super().stop(seconds)
        return 0 if code == -signal.SIGTERM else code


class Cluster(Service):
    """`with Cluster() as cluster: cluster.server.url`. `options` are those of PostgreSQL; without workers the servers take
    the runs."""

    def __init__(self, *options: str, processes: int = 2, workers: int = 0, port: int | None = None) -> None:
        self.postgres, self.redis = Postgres(*options), Redis()
        self._processes, self._workers, self._port = processes, workers, port
        self._stack = ExitStack()

    def start(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self.postgres)
            stack.enter_context(self.redis)
            env = {"DATABASE_URL": self.postgres.url, "REDIS_URL": self.redis.url}
            env |= {"AGENTCHAT_QUEUE": "workers"} if self._workers else {}
            self.server = Server("--processes", str(self._processes), env=env, port=self._port)
            stack.enter_context(self.server)
            for _ in range(self._workers):
                stack.enter_context(Worker(env=env, var=self.server.var))
            self._stack = stack.pop_all()
        return self

    def stop(self) -> None:
        self._stack.close()

    def pids(self) -> list[int]:
        """The processes that serve, without the one that looks after them."""
        pid = self.server.pid
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def all_lead(self, count: int) -> bool:
        """Whether so many processes have started completely: each holds its lock."""
        return len(list((self.server.var / "workers").glob("*"))) == count


class Pair(Service):
    """Two `WebProcess`es, each at a port of its own, that share the database, Redis and the files."""

    def __init__(self, postgres: Postgres, redis: Redis, program: Sequence[str] = (), **env: str) -> None:
        self.postgres, self.redis = postgres, redis
        self.url = migrated(postgres)
        given = {"DATABASE_URL": self.url, "REDIS_URL": redis.url, "AGENTCHAT_POLL_SECONDS": "0.5", **env}
        self.one = WebProcess(env=given)
        self.two = WebProcess(env=given, var=self.one.var)
        if program:
            self.two.program = [sys.executable, *program]

    def start(self) -> Self:
        try:
            self.one.start()
            self.two.start()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        self.two.close()
        self.one.close()

    def host_of(self, run: str) -> tuple[WebProcess, WebProcess]:
        """The process that drives this run, and the other one."""
        worker = until(lambda: self.query("SELECT worker FROM agentchat_run WHERE id = %s", run)[0][0])
        pid = int((self.one.var / "workers" / worker).read_text())
        return (self.one, self.two) if pid == self.one.pid else (self.two, self.one)

    def query(self, sql: LiteralString, *parameters: Any) -> list[Any]:
        with psycopg.connect(self.url) as connection:
            return connection.execute(sql, parameters).fetchall()


def migrated(postgres: Postgres) -> str:
    """The URL of a new database with all tables; the first call makes the one that the others are copied from."""
    name = f"migrated_{os.urandom(4).hex()}"
    template = getattr(postgres, "template", "")
    if not template:
        template = "agentchat_template"
        bare = Server(env={"DATABASE_URL": postgres.create(template)})
        bare.manage("migrate", "-v0")
        bare.close()
        postgres.template = template  # type: ignore[attr-defined]
    return postgres.create(name, template)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="agentchat in several processes, with data that are gone at the end.")
    parser.add_argument("--port", type=int, default=int(os.environ.get("PORT") or 8000))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _leave)
    print("Starting PostgreSQL, Redis and agentchat ...", flush=True)
    with Cluster(processes=asked.processes, workers=asked.workers, port=asked.port) as cluster:
        print(f"\n{cluster.server.link}\n\nThis signs you in, once.")
        print(f"{asked.processes} processes serve, {asked.workers} take runs.")
        print("Everything here is temporary: chats and files are deleted at the end. Ctrl-C ends it.", flush=True)
        assert cluster.server.process
        return int(cluster.server.process.wait())


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except ServiceFailed as failed:
        sys.exit(str(failed))
    except KeyboardInterrupt:
        print("Ended. Nothing is left.")
