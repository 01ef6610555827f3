"""A person who tries again: by the same Idempotency-Key, until somebody answers."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable
from itertools import cycle
from typing import Any

import httpx

from tests.services.client import Client
from tests.services.server import Server

PAUSE = 0.1


class Patient(Client):
    """`Patient(client, web, other)`: the same session, at the first process that answers.

    `answers` counts the status codes, and what was no answer at all by the name of the error.
    """

    def __init__(self, client: Client, *servers: Server, patience: float = 60) -> None:
        self._doors = [client.at(server).http for server in servers]
        self._turn = cycle(range(len(servers)))
        self._patience = patience
        self.http = self._doors[0]
        self.answers: Counter[str] = Counter()

    def get(self, path: str, **query: Any) -> Any:
        return self._insist(lambda door: door.get(f"/api/v1{path}", params=query)).json()

    def post(self, path: str, body: Any = None) -> httpx.Response:
        headers = {"X-CSRFToken": self.csrf, "Idempotency-Key": uuid.uuid4().hex}
        return self._insist(lambda door: door.post(f"/api/v1{path}", json=body or {}, headers=headers))

    def _insist(self, ask: Callable[[httpx.Client], httpx.Response]) -> httpx.Response:
        end = time.monotonic() + self._patience
        while True:
            answer = self._ask(ask)
            if answer is not None and answer.status_code < 500:
                return answer
            assert time.monotonic() < end, f"nobody answers: {answer and answer.text[:2000]} {dict(self.answers)}"
            time.sleep(PAUSE)

    def _ask(self, ask: Callable[[httpx.Client], httpx.Response]) -> httpx.Response | None:
        try:
            answer = ask(self._doors[next(self._turn)])
        except httpx.TransportError as error:
            self.answers[type(error).__name__] += 1
            return None
        self.answers[str(answer.status_code)] += 1
        return answer
