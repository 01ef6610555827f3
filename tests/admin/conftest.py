from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from agentchat.models import Chat, Message, OutputItem
from agentchat.services import chats
from tests import made


@pytest.fixture
def root(db: None) -> Any:
    return get_user_model().objects.create_superuser("root", password="x")


@pytest.fixture
def ada(db: None) -> Any:
    """Staff, and owner of the chat."""
    return get_user_model().objects.create_user("ada", password="x", is_staff=True)


@pytest.fixture
def bob(db: None) -> Any:
    """Staff with a chat of his own, or none."""
    return get_user_model().objects.create_user("bob", password="x", is_staff=True)


@pytest.fixture
def chat(ada: Any) -> Chat:
    return chats.create(user=ada, provider="scripted", title="A chat")


@pytest.fixture
def answer(chat: Chat) -> Message:
    return made.answer_in(chat)


@pytest.fixture
def asked(answer: Message) -> OutputItem:
    return made.request_in(answer, {"command": "rm <b>\u202e\u0007</b>"})


def signed_in(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client
