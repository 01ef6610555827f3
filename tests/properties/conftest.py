from __future__ import annotations

from tests.core.conftest import owner  # noqa: F401  (fixture)
