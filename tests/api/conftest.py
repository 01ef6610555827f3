from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from agentchat.models import Chat, Message, OutputItem
from agentchat.services import chats
from tests import made


class Caller:
    """A program that is signed in: sends JSON, reads JSON."""

    def __init__(self, user: Any = None) -> None:
        self.client = Client()
        if user:
            self.client.force_login(user)

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        data = json.dumps(body) if body is not None and not isinstance(body, bytes) else body or b""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.generic(method, f"/api/v1{path}", data, "application/json", headers=named)

    def get(self, path: str, **headers: str) -> Any:
        return self("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self("POST", path, body, **headers)


@pytest.fixture
def ada(db: None) -> Any:
    return get_user_model().objects.create_user("ada", password="x")


@pytest.fixture
def mallory(db: None) -> Any:
    return get_user_model().objects.create_user("mallory", password="x")


@pytest.fixture
def api(ada: Any) -> Caller:
    return Caller(ada)


@pytest.fixture
def other(mallory: Any) -> Caller:
    return Caller(mallory)


@pytest.fixture
def chat(ada: Any) -> Chat:
    return chats.create(user=ada, provider="scripted", title="A chat")


@pytest.fixture
def answer(chat: Chat) -> Message:
    return made.answer_in(chat)


@pytest.fixture
def asked(answer: Message) -> OutputItem:
    return made.request_in(answer)
