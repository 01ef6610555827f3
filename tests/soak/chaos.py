"""Something random dies and is started again, over and over."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable

from tests.services.farm import Farm
from tests.services.process import stop, tail
from tests.services.server import Server

Said = Callable[[], dict[str, int]]
ACTS = {"kill": 4, "stop": 4, "PostgreSQL": 1, "Redis": 1}
"""How often, in relation to each other."""
STOPS_WITHIN = 30.0
SETTLED = 6.0
"""Seconds after a restart of PostgreSQL until nothing waits for it any more."""


class Chaos:
    """`said` counts what the agents have handed over; what they had `kept` seconds before a kill must be there."""

    def __init__(self, farm: Farm, said: Said, kept: float, seed: int) -> None:
        self._farm, self._said, self._kept = farm, said, kept
        self._random = random.Random(seed)
        self._database_back = 0.0
        self.acts: Counter[str] = Counter()
        self.must_be_there: dict[str, int] = {}
        """By run, pieces of text."""
        self.wrong: list[str] = []

    def step(self) -> None:
        act = self._random.choices(list(ACTS), list(ACTS.values()))[0]
        servers: list[Server] = self._random.choice([list(self._farm.web), list(self._farm.workers)])
        if act == "kill":
            self._kill(self._random.choice(servers))
        elif act == "stop":
            self._stop(self._random.choice(servers))
        elif act == "PostgreSQL":
            self._postgres()
        else:
            self._redis()

    def _count(self, act: str, server: Server) -> None:
        self.acts[f"{act} of a {'worker' if server in self._farm.workers else 'web process'}"] += 1

    def _kill(self, server: Server) -> None:
        self._count("SIGKILL", server)
        if time.monotonic() - self._database_back > SETTLED:
            said = self._said()
            time.sleep(self._kept)
            for run, pieces in said.items():
                self.must_be_there[run] = max(pieces, self.must_be_there.get(run, 0))
        server.kill()
        self._start(server)

    def _stop(self, server: Server) -> None:
        self._count("SIGTERM", server)
        assert server.process
        server.process.send_signal(signal.SIGTERM)
        try:
            server.process.wait(STOPS_WITHIN)
        except subprocess.TimeoutExpired:
            stop(server.process, signal.SIGABRT)  # it writes down what its threads do
        if code := server.stop():
            log = tail(server.log_file, 100)
            self.wrong.append(f"after SIGTERM it ended with {code}; the acts so far: {dict(self.acts)}\n{log}")
        self._start(server)

    def _start(self, server: Server) -> None:
        time.sleep(self._random.uniform(0, 2))
        server.start()

    def _postgres(self) -> None:
        how = self._random.choice([signal.SIGINT, signal.SIGQUIT])
        self.acts["crash of PostgreSQL" if how == signal.SIGQUIT else "restart of PostgreSQL"] += 1
        self._farm.postgres.halt(how)
        time.sleep(self._random.uniform(0, 2))
        self._farm.postgres.resume()
        self._database_back = time.monotonic()

    def _redis(self) -> None:
        self.acts["restart of Redis"] += 1
        self._farm.redis.kill()
        time.sleep(self._random.uniform(0, 2))
        self._farm.redis.start()
