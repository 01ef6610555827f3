"""What the database's own errors mean for people: it is away, or there is no room left. Both pass."""

from __future__ import annotations

import errno
import logging
import sys

from django.db import InterfaceError, OperationalError

from agentchat.exceptions import AgentChatError, DatabaseAway, DatabaseFull

ERRORS = (OperationalError, InterfaceError)
"""Those that are nobody's mistake, so that the same may be tried again; but see `_MISTAKE`."""
_MISTAKE = "SQLITE_ERROR"
"""Wrong SQL, or a table that is missing, which to SQLite are operational errors too."""
_NO_ROOM = {"SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_FSYNC", "SQLITE_IOERR_SHMSIZE", "53100"}
"""SQLite's names, and PostgreSQL's SQLSTATE `disk_full`. A write beyond a quota is an input/output error to SQLite."""
_NO_ROOM_FOR_FILES = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def of(error: BaseException | None) -> DatabaseAway | None:
    """The outage that an error tells of; None if it is no outage."""
    if isinstance(error, OSError) and error.errno in _NO_ROOM_FOR_FILES:
        return DatabaseFull()
    if not isinstance(error, ERRORS):
        return None
    cause = error.__cause__
    name = getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None)
    if name == _MISTAKE:
        return None
    return DatabaseFull() if name in _NO_ROOM else DatabaseAway()


def report(log: logging.Logger, words: str, *arguments: object) -> None:
    """Log the error that is being handled: an outage, which comes again and again, in one line, anything else in full."""
    error = sys.exc_info()[1]
    if away := of(error):
        log.warning(f"{words} %s (%s)", *arguments, away.message, error)
    elif isinstance(error, AgentChatError):
        log.warning(f"{words} %s", *arguments, error.message)
    else:
        log.exception(words, *arguments)
