from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connection

from agentchat.models import Chat, IdempotencyKey, Message, OutputItem, Resolution
from agentchat.services import chats
from tests.api.conftest import Caller


def test_repeat_gives_the_stored_answer(api: Caller, chat: Chat) -> None:
    path = f"/chats/{chat.pk}/messages/"
    first = api.post(path, {"text": "Hello"}, Idempotency_Key="one")
    second = api.post(path, {"text": "Hello"}, Idempotency_Key="one")
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()
    assert "Idempotent-Replay" not in first
    assert second["Idempotent-Replay"] == "true"
    assert Message.objects.filter(role="user").count() == 1


def test_without_a_key_or_with_another_it_acts_again(api: Caller, chat: Chat) -> None:
    path = f"/chats/{chat.pk}/messages/"
    for headers in ({}, {}, {"Idempotency_Key": "one"}, {"Idempotency_Key": "two"}):
        api.post(path, {"text": "Hello"}, **headers)
    assert Message.objects.filter(role="user").count() == 4


def test_key_of_another_body_or_path_is_refused(api: Caller, chat: Chat, ada: Any) -> None:
    another = chats.create(user=ada, provider="scripted")
    api.post(f"/chats/{chat.pk}/messages/", {"text": "Hello"}, Idempotency_Key="one")
    for path, body in ((chat.pk, {"text": "Bye"}), (another.pk, {"text": "Hello"})):
        answer = api.post(f"/chats/{path}/messages/", body, Idempotency_Key="one")
        assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_key_reused")
    assert Message.objects.filter(role="user").count() == 1


def test_keys_of_two_people_do_not_meet(api: Caller, other: Caller) -> None:
    for caller in (api, other):
        answer = caller.post("/chats/", {"provider": "scripted"}, Idempotency_Key="one")
        assert "Idempotent-Replay" not in answer
    assert Chat.objects.count() == 2


def test_refusal_is_not_kept(api: Caller, chat: Chat) -> None:
    path = f"/chats/{chat.pk}/messages/"
    assert api.post(path, {"text": ""}, Idempotency_Key="one").status_code == 422
    assert api.post(path, b"{", Idempotency_Key="one").status_code == 400
    assert not IdempotencyKey.objects.exists()
    assert api.post(path, {"text": "Hello"}, Idempotency_Key="one").status_code == 201


def test_too_long_a_key(api: Caller) -> None:
    assert api.post("/chats/", {"provider": "scripted"}, Idempotency_Key="k" * 201).status_code == 422
    assert api.post("/chats/", {"provider": "scripted"}, Idempotency_Key="k" * 200).status_code == 201


def test_decision_and_stop_take_a_key(api: Caller, asked: OutputItem) -> None:
    body = {"action": "reject", "digest": asked.digest}
    path = f"/approvals/{asked.pk}/decision/"
    assert [api.post(path, body, Idempotency_Key="d").get("Idempotent-Replay") for _ in "12"] == [None, "true"]
    path = f"/runs/{asked.message.run.pk}/stop/"
    assert [api.post(path, Idempotency_Key="s").get("Idempotent-Replay") for _ in "12"] == [None, "true"]
    assert Resolution.objects.count() == 1


def _together(callers: list[Caller], path: str, body: Any, **headers: str) -> list[Any]:
    start = threading.Barrier(len(callers))
    answers: list[Any] = []

    def send(caller: Caller) -> None:
        start.wait()
        try:
            answers.append(caller.post(path, body, **headers))
        finally:
            connection.close()

    threads = [threading.Thread(target=send, args=(caller,)) for caller in callers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


@pytest.mark.databases
@pytest.mark.django_db(transaction=True)
def test_at_once_it_acts_once(transactional_db: None, ada: Any, chat: Chat) -> None:
    for turn in range(5):
        answers = _together(
            [Caller(ada) for _ in range(4)],
            f"/chats/{chat.pk}/messages/",
            {"text": "Hello"},
            Idempotency_Key=f"k{turn}",
        )
        assert [answer.status_code for answer in answers] == [201] * 4
        assert len({answer.content for answer in answers}) == 1
        assert sum("Idempotent-Replay" in answer for answer in answers) == 3
        assert Message.objects.filter(role="user").count() == turn + 1


@pytest.mark.databases
@pytest.mark.django_db(transaction=True)
def test_at_once_without_a_key_it_acts_twice(transactional_db: None, ada: Any, chat: Chat) -> None:
    """Shows that the test above could fail."""
    _together([Caller(ada), Caller(ada)], f"/chats/{chat.pk}/messages/", {"text": "Hello"})
    assert Message.objects.filter(role="user").count() == 2
