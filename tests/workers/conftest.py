from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.services.farm import Farm
from tests.services.postgres import Postgres
from tests.services.redis import Redis


@pytest.fixture(scope="module")
def redis() -> Iterator[Redis]:
    with Redis() as redis:
        yield redis


@pytest.fixture
def farm(postgres: Postgres, redis: Redis) -> Iterator[Callable[..., Farm]]:
    """`farm(workers=1, AGENTCHAT_PARK_SECONDS="1")`: a new one, with a database of its own."""
    with ExitStack() as stack:

        def make(**options: Any) -> Farm:
            return stack.enter_context(Farm(postgres, redis, **options))

        yield make
