"""Identifiers that leave the server."""

from __future__ import annotations

import uuid

from uuid_utils.compat import uuid7


def ordered() -> uuid.UUID:
    """A UUID of version 7: sorts by time, for chats and messages."""
    return uuid7()


def random() -> uuid.UUID:
    """A UUID of version 4: tells nothing, for items, since an approval request is one."""
    return uuid.uuid4()
