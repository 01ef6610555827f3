"""The database of the tests: real files or PostgreSQL, with the triggers of the audit in force."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from agentchat.events import Action, Cause, ItemType, Via
from agentchat.models import Chat, Message, OutputItem, Resolution, triggers

pytestmark = pytest.mark.databases


@pytest.mark.django_db(transaction=True)
def test_other_threads_see_what_is_committed() -> None:
    get_user_model().objects.create(username="ada")
    seen: list[bool] = []

    def look() -> None:
        seen.append(get_user_model().objects.filter(username="ada").exists())
        connection.close()

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [True]


@pytest.mark.django_db
def test_sqlite_is_a_file() -> None:
    if connection.vendor == "sqlite":
        assert Path(connection.settings_dict["NAME"]).is_file()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("turn", ["first", "after the flush"])
def test_triggers_hold_during_a_test_and_yield_to_the_flush_after_it(turn: str) -> None:
    """The second turn finds empty tables, although the first has left a row that nobody may delete."""
    assert triggers.missing() == []
    assert not Resolution.objects.exists()
    make_resolution()
    for statement in ("DELETE FROM agentchat_resolution", "UPDATE agentchat_resolution SET reason = 'other'"):
        with (
            pytest.raises(DatabaseError, match="insert-only"),
            transaction.atomic(),
            connection.cursor() as cursor,
        ):
            cursor.execute(statement)
    assert Resolution.objects.count() == 1


def make_resolution() -> None:
    now = timezone.now()
    user = get_user_model().objects.create(username="ada")
    chat = Chat.objects.create(owner=user, provider="x", workspace="/", created_at=now, updated_at=now)
    message = Message.objects.create(chat=chat, position=1, role="assistant", created_at=now)
    item = OutputItem.objects.create(
        message=message, position=0, type=ItemType.CALL, digest="0" * 64, request={}, created_at=now
    )
    Resolution.objects.create(
        item=item,
        chat=chat,
        action=Action.REJECT,
        cause=Cause.PERSON,
        tool="x",
        decided_by=user,
        decided_by_name="ada",
        decided_via=next(iter(Via)),
        digest="0" * 64,
        final_digest="0" * 64,
        decided_at=now,
        hash="1" * 64,
    )
