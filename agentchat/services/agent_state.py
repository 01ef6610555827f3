"""`message.meta.agent`: what a provider wants to find again in the next turn, signed for one user and one chat."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
from django.conf import settings

ALGORITHM = "HS256"
PURPOSE = "agent-state"
KEEP = timedelta(days=90)
log = logging.getLogger(__name__)


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
    return jwt.encode(claims, settings.SECRET_KEY, ALGORITHM, headers={"kid": "1"})


def read(token: str, *, user_id: Any, chat_id: Any) -> dict[str, Any]:
    """The state, or `{}` (and a line in the log) if the token is forged, foreign or expired."""
    try:
        claims = jwt.decode(
            token, settings.SECRET_KEY, [ALGORITHM], options={"require": ["exp", "purpose", "user", "chat"]}
        )
    except jwt.InvalidTokenError as error:
        log.warning("The state of the agent in chat %s is not used: %s.", chat_id, error)
        return {}
    if (claims["purpose"], claims["user"], claims["chat"]) != (PURPOSE, str(user_id), str(chat_id)):
        log.warning("The state of the agent in chat %s is not used: it was signed for something else.", chat_id)
        return {}
    return dict(claims.get("state") or {})
