"""Who gets in: every route, signed out, without a token, and for what is somebody else's."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.test import Client

from agentchat.models import Chat, OutputItem, Resolution, Run
from tests.api.conftest import Caller

NOBODY = uuid.UUID(int=0)
COMMON = ["/chats/", "/approvals/", "/resolutions/", "/providers/", "/schema/"]
OF_CHAT = ["/chats/{chat}/", "/chats/{chat}/messages/", "/chats/{chat}/snapshot/", "/chats/{chat}/events/"]
OF_ITEM = ["/items/{item}/", "/items/{item}/text/", "/approvals/{item}/"]
CHANGES: list[tuple[str, str, Any]] = [
    ("POST", "/chats/", {"provider": "scripted"}),
    ("PATCH", "/chats/{chat}/", {"title": "Mine now"}),
    ("DELETE", "/chats/{chat}/", None),
    ("POST", "/chats/{chat}/messages/", {"text": "Hello"}),
    ("POST", "/runs/{run}/stop/", None),
    ("POST", "/approvals/{item}/decision/", {"action": "approve", "digest": "0" * 64}),
]


def at(path: str, item: Any, chat: Any, run: Any) -> str:
    return path.format(item=item, chat=chat, run=run)


def ids(asked: OutputItem) -> tuple[Any, Any, Any]:
    run = Run.objects.get()
    return asked.pk, run.chat_id, run.pk


@pytest.mark.parametrize("path", COMMON + OF_CHAT + OF_ITEM)
def test_signed_out_reads_nothing(asked: OutputItem, path: str) -> None:
    answer = Caller().get(at(path, *ids(asked)))
    assert (answer.status_code, answer.json()["code"]) == (401, "not_signed_in")


@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
def test_signed_out_changes_nothing(asked: OutputItem, method: str, path: str, body: Any) -> None:
    answer = Caller()(method, at(path, *ids(asked)), body)
    assert (answer.status_code, answer.json()["code"]) == (401, "not_signed_in")
    assert Chat.objects.alive().count() == 1
    assert not Resolution.objects.exists()


@pytest.mark.parametrize("path", COMMON + OF_CHAT + OF_ITEM)
def test_owner_reads(api: Caller, asked: OutputItem, path: str) -> None:
    assert api.get(at(path, *ids(asked))).status_code == 200


@pytest.mark.parametrize("path", OF_CHAT + OF_ITEM)
def test_what_is_not_yours_is_not_there(other: Caller, asked: OutputItem, path: str) -> None:
    foreign = other.get(at(path, *ids(asked)))
    unknown = other.get(at(path, NOBODY, NOBODY, NOBODY))
    assert (foreign.status_code, foreign.json()["code"]) == (404, "not_found")
    assert foreign.json() == unknown.json()


@pytest.mark.parametrize(("method", "path", "body"), CHANGES[1:])
def test_what_is_not_yours_is_not_changed(other: Caller, asked: OutputItem, method: str, path: str, body: Any) -> None:
    answer = other(method, at(path, *ids(asked)), body)
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert other(method, at(path, NOBODY, NOBODY, NOBODY), body).status_code == 404
    assert Chat.objects.alive().get().title == "A chat"
    assert not Resolution.objects.exists()


@pytest.mark.parametrize("path", ["/approvals/", "/resolutions/", "/chats/"])
def test_lists_hold_only_your_own(other: Caller, asked: OutputItem, path: str) -> None:
    assert other.get(path).json()["results"] == []


@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
def test_changes_need_the_csrf_token(ada: Any, asked: OutputItem, method: str, path: str, body: Any) -> None:
    caller = Caller(ada)
    caller.client = Client(enforce_csrf_checks=True)
    caller.client.force_login(ada)
    answer = caller(method, at(path, *ids(asked)), body)
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert Chat.objects.alive().count() == 1
    assert not Resolution.objects.exists()


def test_the_csrf_token_opens(ada: Any) -> None:
    caller = Caller(ada)
    caller.client = Client(enforce_csrf_checks=True)
    caller.client.force_login(ada)
    caller.client.cookies["agentchat_csrf"] = token = "a" * 32
    assert caller.post("/chats/", {"provider": "scripted"}, X_CSRFToken=token).status_code == 201


def test_nothing_is_cached(api: Caller) -> None:
    assert api.get("/chats/")["Cache-Control"] == "no-store"


def test_providers(api: Caller) -> None:
    assert {"shell", "scripted"} <= {row["key"] for row in api.get("/providers/").json()}
