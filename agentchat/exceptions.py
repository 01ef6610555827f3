"""Every error that agentchat raises on purpose. The docstring is the default message; `code` is stable, for programs."""

from __future__ import annotations

from typing import Any


class AgentChatError(Exception):
    """Something went wrong."""

    code = "error"

    def __init__(self, message: str | None = None, **context: Any) -> None:
        self.message = message or (type(self).__doc__ or "").strip()
        self.context = context
        super().__init__(self.message)


class Invalid(AgentChatError, ValueError):
    """The request does not make sense."""

    code = "invalid"


class NotFound(AgentChatError):
    """There is nothing here for you."""

    code = "not_found"


class Gone(AgentChatError, ValueError):
    """The chat or message was deleted."""

    code = "gone"


class MessageEnded(AgentChatError):
    """The message has ended, so nothing can be added to it."""

    code = "message_ended"


class CursorTooOld(AgentChatError):
    """These events are no longer kept. Take the snapshot."""

    code = "cursor_too_old"


class ChatBusy(AgentChatError):
    """Too many messages wait in this chat. Remove one, or wait until the agent is done."""

    code = "too_many_queued"


class Undecidable(AgentChatError):
    """This request can no longer be decided. `context["resolution"]` says what became of it."""

    code = "undecidable"


class AlreadyResolved(Undecidable):
    """Somebody was first. Their decision stands; yours was not used."""

    code = "already_resolved"


class Expired(Undecidable):
    """Nobody answered in time. Nothing ran, and nothing runs now."""

    code = "expired"


class Stopped(Undecidable):
    """The run was stopped before this was decided. Nothing ran."""

    code = "stopped"


class AgentGone(Undecidable):
    """The agent that asked is gone. Nobody waits for this answer, and nothing ran."""

    code = "agent_gone"


class Stale(AgentChatError):
    """The request is not the one that you saw. Look at it again before you decide."""

    code = "stale"


class AlreadyDelivered(AgentChatError):
    """This decision was used before. A decision is used once."""

    code = "already_delivered"


class DatabaseAway(AgentChatError):
    """The database cannot be reached right now. Try again in a moment; what was decided before is kept."""

    code = "database_away"


class DatabaseFull(DatabaseAway):
    """The disk of the database is full, so nothing new can be stored. Make room, then try again; what is stored is kept."""

    code = "disk_full"


class JournalClosed(AgentChatError):
    """The journal does not run in this process, so nothing can be written through it."""

    code = "journal_closed"


class Backlog(AgentChatError):
    """The database has not kept up for too long. What was not written is lost; the run ends."""

    code = "backlog"
