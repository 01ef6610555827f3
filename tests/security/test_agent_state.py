"""What an agent kept is used only if we signed it, for this person and this chat, not too long ago."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest

from agentchat.models import clock
from agentchat.services import agent_state

STATE = {"session": "s1"}
WHOSE = {"user_id": 1, "chat_id": "c"}
pytestmark = pytest.mark.django_db


def changed(token: str, key: str | None = None, algorithm: str = "HS256", **claims: Any) -> str:
    """The token with other claims, signed anew."""
    from django.conf import settings

    made = jwt.decode(token, options={"verify_signature": False}) | claims
    header = jwt.get_unverified_header(token)
    return jwt.encode(made, settings.SECRET_KEY if key is None else key, algorithm, headers={"kid": header["kid"]})


def refused(token: Any, **whose: Any) -> str:
    with pytest.raises(agent_state.Refused) as refusal:
        agent_state.read(token, **(WHOSE | whose))
    return str(refusal.value)


def test_it_is_read_as_it_was_kept() -> None:
    assert agent_state.read(agent_state.sign(STATE, **WHOSE), **WHOSE) == STATE


def test_it_is_for_one_person_one_chat_and_one_purpose() -> None:
    token = agent_state.sign(STATE, **WHOSE)
    assert "something else" in refused(token, user_id=2)
    assert "something else" in refused(token, chat_id="d")
    assert "something else" in refused(changed(token, purpose="sign-in"))


@pytest.mark.parametrize("token", ["", "x", "a.b.c", None, 5, {}, "eyJhbGciOiJub25lIn0.e30."])
def test_what_is_no_token_is_refused(token: Any) -> None:
    assert refused(token)


def test_what_others_signed_is_refused() -> None:
    token = agent_state.sign(STATE, **WHOSE)
    assert "signature" in refused(changed(token, key="another-key-that-is-long-enough-for-it"))
    assert "signature" in refused(changed(token, key="", algorithm="none"))
    assert "signature" in refused(changed(token, algorithm="HS512"))
    assert "signature" in refused(token[:-4] + ("AAAA" if token[-4:] != "AAAA" else "BBBB"))


@pytest.mark.parametrize("claim", agent_state.CLAIMS)
def test_no_claim_may_be_missing(claim: str) -> None:
    from django.conf import settings

    token = agent_state.sign(STATE, **WHOSE)
    claims = jwt.decode(token, options={"verify_signature": False})
    del claims[claim]
    headers = {"kid": jwt.get_unverified_header(token)["kid"]}
    assert claim in refused(jwt.encode(claims, settings.SECRET_KEY, headers=headers))


def test_it_expires_by_the_clock_of_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose clock is wrong neither refuses what is good nor takes what is over."""
    token = agent_state.sign(STATE, **WHOSE)
    ahead = datetime.now(UTC) + timedelta(days=30)
    assert agent_state.read(changed(token, iat=ahead), **WHOSE) == STATE
    later = clock.now() + agent_state.KEEP + timedelta(seconds=1)
    monkeypatch.setattr(clock, "now", lambda: later)
    assert "expired" in refused(token)


def test_keys_are_changed_without_losing_what_was_kept(settings: Any) -> None:
    token = agent_state.sign(STATE, **WHOSE)
    old, settings.SECRET_KEY = settings.SECRET_KEY, "the-new-key-that-is-long-enough-for-it"
    assert "not known here" in refused(token)
    settings.SECRET_KEY_FALLBACKS = [old]
    assert agent_state.read(token, **WHOSE) == STATE
    new = agent_state.sign(STATE, **WHOSE)
    assert jwt.get_unverified_header(new)["kid"] != jwt.get_unverified_header(token)["kid"]
    settings.SECRET_KEY_FALLBACKS = []
    assert agent_state.read(new, **WHOSE) == STATE


def test_nothing_in_the_state_takes_the_place_of_a_claim() -> None:
    token = agent_state.sign({"user": "2", "exp": 0, "purpose": "x", "kid": "y"}, **WHOSE)
    assert agent_state.read(token, **WHOSE)["user"] == "2"
    assert "something else" in refused(token, user_id=2)
