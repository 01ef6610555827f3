"""`message.meta.agent`: what a provider wants to find again, signed for one person and one chat.

A JSON Web Token (RFC 7519) by HMAC-SHA-256, the only algorithm that is accepted. Its header names the key. Keys are
SECRET_KEY, by which new ones are signed, and SECRET_KEY_FALLBACKS, by which older ones are still read.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
from django.conf import settings

from agentchat.models import clock

ALGORITHM = "HS256"
PURPOSE = "agent-state"
KEEP = timedelta(days=90)
CLAIMS = ["exp", "iat", "purpose", "user", "chat"]


class Refused(Exception):
    """The state may not be used; the message says why, for people."""


def sign(state: dict[str, Any], *, user_id: Any, chat_id: Any) -> str:
    """A JWT. The state is nested, so that nothing in it can take the place of a claim."""
    now = datetime.now(UTC)
    claims = {
        "purpose": PURPOSE,
        "user": str(user_id),
        "chat": str(chat_id),
        "iat": now,
        "exp": now + KEEP,
        "state": state,
    }
    key = settings.SECRET_KEY
    return jwt.encode(claims, key, ALGORITHM, headers={"kid": _name(key)})


def read(token: Any, *, user_id: Any, chat_id: Any) -> dict[str, Any]:
    """The state. Raises Refused if the token is forged, foreign, expired by the database's clock, or none at all."""
    try:
        key = _keys().get(jwt.get_unverified_header(token).get("kid", ""))
        if key is None:
            raise Refused("it was signed by a key that is not known here (SECRET_KEY, SECRET_KEY_FALLBACKS)")
        # Times are compared with the database's clock below: this machine's may be wrong.
        claims = jwt.decode(
            token, key, [ALGORITHM], options={"require": CLAIMS, "verify_exp": False, "verify_iat": False}
        )
    except jwt.InvalidTokenError as error:
        raise Refused(f"its signature does not hold ({error})") from error
    if (claims["purpose"], claims["user"], claims["chat"]) != (PURPOSE, str(user_id), str(chat_id)):
        raise Refused("it was signed for something else")
    if _is_over(claims["exp"]):
        raise Refused("it has expired")
    state = claims.get("state")
    return state if isinstance(state, dict) else {}


def _is_over(expires: Any) -> bool:
    return not isinstance(expires, int | float) or expires <= clock.now().timestamp()


def _keys() -> dict[str, str]:
    return {_name(key): key for key in [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]}


def _name(key: str) -> str:
    """Tells keys apart and says nothing about them."""
    return hashlib.sha256(b"agentchat agent-state " + key.encode()).hexdigest()[:12]
