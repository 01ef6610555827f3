"""A worker says that it lives without waiting for anybody: it would hold up all that its agents say."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from tests.e2e.conftest import script
from tests.services.client import until
from tests.services.farm import Farm

pytestmark = [pytest.mark.slow, pytest.mark.services]
BEATS = "SELECT id, heartbeat_at FROM agentchat_run ORDER BY created_at"


def test_a_run_that_is_being_written_does_not_hold_up_the_heartbeat_of_the_others(farm: Callable[..., Farm]) -> None:
    it = farm(webs=1, workers=1)
    client = it.client()
    for _ in range(3):
        client.chat(script({"hang": True}), provider="scripted")
    before = dict(until(lambda: rows if len(rows := it.query(BEATS)) == 3 and all(at for _, at in rows) else None))
    first, *others = before
    with psycopg.connect(it.url) as writing:
        writing.execute("SELECT 1 FROM agentchat_run WHERE id = %s FOR UPDATE", [first])
        assert until(lambda: all(dict(it.query(BEATS))[run] > before[run] for run in others))
        assert dict(it.query(BEATS))[first] == before[first]
    assert until(lambda: dict(it.query(BEATS))[first] > before[first])
