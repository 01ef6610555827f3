"""A person, a chat, and the journal running in the test's own loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth import get_user_model

from agentchat.journal import process
from agentchat.journal.threads import DatabaseThread
from agentchat.models import Chat
from agentchat.services import chats, runs
from agentchat.services.output import Output
from agentchat.supervisor.lifecycle import Readers


@pytest.fixture
def owner(transactional_db: None) -> Any:
    return get_user_model().objects.create_user("ada", password="x")


@pytest.fixture
def stranger(transactional_db: None) -> Any:
    return get_user_model().objects.create_user("mallory", password="x")


@pytest.fixture
def chat(owner: Any) -> Chat:
    return chats.create(user=owner, provider="scripted", title="A chat")


@pytest.fixture
async def journal(transactional_db: None) -> AsyncIterator[process.Process]:
    write, read = DatabaseThread("test journal", durable=False), Readers()
    yield await process.start(write, read, with_bus=False, tick=0.01)
    await process.stop()
    write.close()
    read.close()


@pytest.fixture
def in_db() -> Callable[..., Any]:
    """Runs a function of the services in a thread with a connection that is closed afterwards."""
    from django.db import connection

    def run(function: Any, *arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        finally:
            connection.close()

    return lambda function, *arguments, **named: sync_to_async(run, thread_sensitive=False)(
        function, *arguments, **named
    )


@pytest.fixture
async def output(journal: process.Process, chat: Chat, owner: Any, in_db: Any) -> Output:
    """The output of a running run, with approval mode `ask`."""
    return await make_output(chat, owner, in_db)


async def make_output(chat: Chat, owner: Any, in_db: Any, text: str = "go", **more: Any) -> Output:
    _, run = await in_db(chats.post, user=owner, chat_id=chat.pk, text=text)
    await in_db(runs.claim, "test:worker")
    metadata = {"chat_id": chat.pk, "message_id": run.message_id, "task_id": run.pk}
    return Output(metadata, owner, **more)
