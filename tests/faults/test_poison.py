"""An entry that the database refuses, also only at the commit, takes nothing of other chats with it."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest
from django.db import IntegrityError, connection

from agentchat.events import Kind
from agentchat.journal import process, store
from agentchat.journal.entry import Committed, Entry, Write, event
from agentchat.models import Chat, Event, Receipt, clock
from agentchat.services import chats

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.databases]


def poison(chat: Chat) -> Entry:
    """A receipt of a resolution that does not exist: SQLite notices it when the transaction ends."""
    columns = {"resolution": 987_654, "run": None, "worker": "x", "delivered_at": clock.now()}
    return Entry(chat.pk, [event(Kind.CHAT_CHANGED)], [Write(Receipt, None, columns, insert=True)])


def healthy(chat: Chat, n: int = 0) -> Entry:
    return Entry(chat.pk, [event(Kind.CHAT_CHANGED, n=n)])


def test_alone_it_is_refused_and_the_connection_is_free_again(chat: Chat) -> None:
    for _ in range(2):
        [refused] = store.commit([poison(chat)])
        assert isinstance(refused, IntegrityError)
    [done] = store.commit([healthy(chat)])
    assert isinstance(done, Committed) and done.first == 1
    assert connection.vendor == "postgresql" or not connection.connection.in_transaction


def test_other_chats_in_the_same_commit_are_written(chat: Chat, owner: Any) -> None:
    other, third = (chats.create(user=owner, provider="scripted") for _ in range(2))
    found = store.commit([healthy(other), poison(chat), healthy(third), healthy(other, 1), healthy(chat)])
    assert [type(one) for one in found] == [Committed, IntegrityError, Committed, Committed, IntegrityError]
    assert Event.objects.filter(chat=other).count() == 2
    assert not Event.objects.filter(chat=chat).exists()
    chat.refresh_from_db()
    assert chat.last_seq == 0


async def test_the_writer_tells_its_run_at_once_and_goes_on(
    journal: process.Process, chat: Chat, owner: Any, in_db: Any
) -> None:
    """Not after a minute of repeating it, in which no chat of the process could be written."""
    other = await in_db(chats.create, user=owner, provider="scripted")
    bad = journal.writer.committed(await in_db(poison, chat))
    good = journal.writer.committed(healthy(other))
    async with asyncio.timeout(20):
        with pytest.raises(IntegrityError):
            await bad
        assert (await good).first == 1
        assert (await journal.writer.committed(healthy(chat))).first == 1


async def test_a_chat_that_is_not_there_takes_nothing_with_it(journal: process.Process, chat: Chat) -> None:
    nowhere = journal.writer.committed(Entry(uuid.uuid4(), [event(Kind.CHAT_CHANGED)]))
    good = journal.writer.committed(healthy(chat))
    assert isinstance((await asyncio.gather(nowhere, return_exceptions=True))[0], Exception)
    assert (await good).first == 1
