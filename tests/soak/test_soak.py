"""`make soak` in short; and its counts notice what must not happen."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.services.farm import Farm
from tests.soak.soak import Soak, Wanted, failed, farm, table

pytestmark = [pytest.mark.slow, pytest.mark.services, pytest.mark.timeout(300)]
SHORT = Wanted(seconds=20, chats=12, viewers=4, kept=1, every=0.5)


@pytest.fixture
def running() -> Iterator[Farm]:
    with farm() as running:
        yield running


def test_nothing_is_lost_doubled_or_stuck_while_processes_die(running: Farm) -> None:
    soak = Soak(running, SHORT)
    tally = soak.run()
    assert not failed(tally), "\n".join(table(tally))
    assert tally.shown["decisions delivered"]
    _counts_notice(soak, running)


def _counts_notice(soak: Soak, running: Farm) -> None:
    """An effect twice, one that nobody allowed, and text that is not there any more."""
    first, *_ = sorted((running.web[0].var / "workspaces").glob("*/did-*"))
    first.write_text("1\n1\n")
    first.with_name("did-nobody").write_text("1\n")
    item = running.query(
        "UPDATE agentchat_outputitem SET text = 'else' WHERE type = 'message' AND text <> '' RETURNING id"
    )
    tally = soak.tally()
    assert len(tally.zero["decisions doubled"]) == 2
    assert len(item) and tally.zero["text that no script says"]
