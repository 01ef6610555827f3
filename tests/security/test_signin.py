"""The sign-in link: once, for a day, from this machine only, and looking at it uses nothing up."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core import signing
from django.db import connection
from django.test import Client, RequestFactory

from agentchat.exceptions import NotFound
from agentchat.services import signin

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.databases]


def press(user: Any, token: str = "", **meta: Any) -> tuple[int, bool]:
    """The status of the answer, and whether it signed in."""
    client = Client()
    answer = client.post(f"/accounts/link/{token or signin.token(user)}/", **meta)
    return answer.status_code, "_auth_user_id" in client.session


def test_it_works_once(owner: Any) -> None:
    token = signin.token(owner)
    assert press(owner, token) == (302, True)
    assert press(owner, token) == (404, False)


@pytest.mark.parametrize("method", ["get", "head"])
def test_looking_uses_nothing_up_and_signs_nobody_in(owner: Any, method: str) -> None:
    token, client = signin.token(owner), Client()
    for _ in range(3):
        assert getattr(client, method)(f"/accounts/link/{token}/").status_code == 200
    owner.refresh_from_db()
    assert owner.last_login is None
    assert "_auth_user_id" not in client.session
    assert press(owner, token) == (302, True)


@pytest.mark.parametrize("method", ["put", "patch", "delete", "options"])
def test_no_other_method_signs_in(owner: Any, method: str) -> None:
    client = Client()
    assert getattr(client, method)(f"/accounts/link/{signin.token(owner)}/").status_code == 405
    assert "_auth_user_id" not in client.session


@pytest.mark.parametrize(
    "meta",
    [
        {"REMOTE_ADDR": "203.0.113.9"},
        {"REMOTE_ADDR": "192.168.0.7"},
        {"REMOTE_ADDR": "2001:db8::1"},
        {"REMOTE_ADDR": ""},
        {"REMOTE_ADDR": "localhost"},
        {"REMOTE_ADDR": "127.0.0.1", "HTTP_X_FORWARDED_FOR": "203.0.113.9"},
        {"REMOTE_ADDR": "127.0.0.1", "HTTP_X_FORWARDED_FOR": "127.0.0.1"},
        {"REMOTE_ADDR": "127.0.0.1", "HTTP_FORWARDED": "for=203.0.113.9"},
    ],
    ids=str,
)
def test_from_elsewhere_it_does_not_work_and_is_not_used_up(owner: Any, meta: dict[str, str]) -> None:
    token = signin.token(owner)
    assert press(owner, token, **meta) == (404, False)
    assert press(owner, token, REMOTE_ADDR="::1") == (302, True)


@pytest.mark.parametrize(("seconds", "status"), [(signin.MAX_AGE - 60, 302), (signin.MAX_AGE + 1, 404)])
def test_it_ends_after_a_day(owner: Any, monkeypatch: pytest.MonkeyPatch, seconds: int, status: int) -> None:
    token = signin.token(owner)
    later = (datetime.now(UTC) + timedelta(seconds=seconds)).timestamp()
    with monkeypatch.context() as moved:
        moved.setattr("django.core.signing.time.time", lambda: later)
        with_session = press(owner, token)
    assert with_session[0] == status


def test_another_sign_in_makes_it_useless(owner: Any) -> None:
    token = signin.token(owner)
    assert Client().post("/accounts/login/", {"username": "ada", "password": "x"}).status_code == 302
    assert press(owner, token) == (404, False)


def test_of_a_person_who_was_shut_out_it_does_not_work(owner: Any) -> None:
    token = signin.token(owner)
    owner.is_active = False
    owner.save()
    assert press(owner, token) == (404, False)


@pytest.mark.parametrize("salt", ["", "django.contrib.auth", "agentchat.other"])
def test_what_was_signed_for_something_else_is_no_link(owner: Any, salt: str) -> None:
    assert press(owner, signing.dumps([owner.pk, ""], salt=salt)) == (404, False)


@pytest.mark.parametrize("before", ["never signed in", "signed in before"])
def test_of_many_at_once_one_gets_in(owner: Any, before: str) -> None:
    if before == "signed in before":
        assert press(owner) == (302, True)
        owner.refresh_from_db()
    for _ in range(5):
        assert sorted(_at_once(signin.token(owner), 4)) == ["in", "refused", "refused", "refused"]
        owner.refresh_from_db()


def _at_once(token: str, many: int) -> list[str]:
    barrier, found = threading.Barrier(many), []

    def redeem() -> None:
        request = RequestFactory().post("/", REMOTE_ADDR="127.0.0.1")
        connection.ensure_connection()
        barrier.wait(10)
        try:
            signin.redeem(token, request)
            found.append("in")
        except NotFound:
            found.append("refused")
        finally:
            connection.close()

    threads = [threading.Thread(target=redeem) for _ in range(many)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return found
