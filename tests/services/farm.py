"""Web processes that take no runs, and workers that do nothing else, on one database, one Redis and one folder."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, LiteralString, Self

import psycopg

from tests.services.client import Client
from tests.services.cluster import WebProcess, migrated
from tests.services.postgres import Postgres
from tests.services.process import Service
from tests.services.redis import Redis
from tests.services.worker import Worker


class Farm(Service):
    """`web` and `workers`, which all run; each can be killed, stopped and started again by itself."""

    def __init__(self, postgres: Postgres, redis: Redis, webs: int = 2, workers: int = 2, **env: str) -> None:
        self.postgres, self.redis = postgres, redis
        self.url = migrated(postgres)
        given = {
            "DATABASE_URL": self.url,
            "REDIS_URL": redis.url,
            "AGENTCHAT_QUEUE": "workers",
            "AGENTCHAT_POLL_SECONDS": "0.5",
            "LOG_LEVEL": "INFO",
        }
        first = WebProcess(env=given | env)
        self.web = [first, *(WebProcess(env=given | env, var=first.var) for _ in range(webs - 1))]
        self.workers = [Worker(env=given | env, var=first.var) for _ in range(workers)]
        self._stack = ExitStack()

    def start(self) -> Self:
        with ExitStack() as stack:
            for server in [*self.web, *self.workers]:
                stack.callback(server.close)
                server.start()
            self._stack = stack.pop_all()
        return self

    def stop(self) -> None:
        self._stack.close()

    def client(self) -> Client:
        return Client(self.web[0])

    def worker_of(self, run: str) -> Worker | None:
        """The process that holds this run."""
        [(name,)] = self.query("SELECT worker FROM agentchat_run WHERE id = %s", run)
        path = self.web[0].var / "workers" / name
        pid = int(path.read_text()) if name and path.exists() else 0
        return next((worker for worker in self.workers if worker.process and worker.pid == pid), None)

    def query(self, sql: LiteralString, *parameters: Any) -> list[Any]:
        with psycopg.connect(self.url) as connection:
            return connection.execute(sql, parameters).fetchall()
