from __future__ import annotations

import os

import pytest

from tests.core.conftest import chat, in_db, journal, output, owner, stranger  # noqa: F401  (fixtures)

BOTH = ["sqlite", "postgresql"]


def database(request: pytest.FixtureRequest) -> dict[str, str]:
    """The environment of a server on the database that the fixture's parameter names: a new one for each test."""
    if request.param == "sqlite":
        return {}
    return {"DATABASE_URL": request.getfixturevalue("postgres").create(f"fault_{os.urandom(6).hex()}")}
