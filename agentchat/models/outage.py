"""What the database's own errors mean for people: it is away, or there is no room left. Both pass."""

from __future__ import annotations

from django.db import InterfaceError, OperationalError

from agentchat.exceptions import DatabaseAway, DatabaseFull

ERRORS = (OperationalError, InterfaceError)
"""Those that are nobody's mistake, so that the same may be tried again."""
_NO_ROOM = {"SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_FSYNC", "53100"}
"""SQLite's names, and PostgreSQL's SQLSTATE `disk_full`. A write beyond a quota is an input/output error to SQLite."""


def of(error: BaseException | None) -> DatabaseAway | None:
    """The outage that an error tells of; None if it is no outage."""
    if not isinstance(error, ERRORS):
        return None
    cause = error.__cause__
    name = getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None)
    return DatabaseFull() if name in _NO_ROOM else DatabaseAway()
