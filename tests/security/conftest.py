from __future__ import annotations

from tests.core.conftest import chat, in_db, journal, output, owner, stranger  # noqa: F401  (fixtures)
