from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.core.conftest import chat, in_db, journal, output, owner, stranger  # noqa: F401  (fixtures)
from tests.services.server import Server


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        yield running
