"""The vocabulary: event kinds, item types, and the words that the database stores. Imports nothing of ours."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """What an event says. The payload of each stands in docs/protocol.md."""

    MESSAGE_ADDED = "message.added"
    MESSAGE_CHANGED = "message.changed"
    ITEM_ADDED = "item.added"
    ITEM_DELTA = "item.delta"
    ITEM_BLOCK = "item.block"
    ITEM_CHANGED = "item.changed"
    APPROVAL_REQUESTED = "approval.requested"
    APPROVAL_RESOLVED = "approval.resolved"
    APPROVAL_DELIVERED = "approval.delivered"
    RUN_CHANGED = "run.changed"
    CHAT_CHANGED = "chat.changed"
    CHAT_DELETED = "chat.deleted"


PROGRESS = (Kind.ITEM_DELTA, Kind.ITEM_BLOCK)
"""Events that grow an item; they may be dropped once the item's row holds what they say."""


class ItemType(StrEnum):
    """Types of the OpenAI Responses API, and `plan` and `notice` of our own."""

    MESSAGE = "message"
    REASONING = "reasoning"
    CALL = "function_call"
    OUTPUT = "function_call_output"
    PLAN = "plan"
    NOTICE = "notice"


class ItemStatus(StrEnum):
    IN_PROGRESS = "in_progress"
    PENDING = "pending"
    COMPLETED = "completed"
    REJECTED = "rejected"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


class Action(StrEnum):
    APPROVE = "approve"
    REJECT = "reject"
    ANSWER = "answer"


class Cause(StrEnum):
    """Why a request was decided. Only `person`, `rule` and `mode` can approve."""

    PERSON = "person"
    RULE = "rule"
    MODE = "mode"
    TIMEOUT = "timeout"
    STOPPED = "stopped"
    AGENT_GONE = "agent_gone"


class Scope(StrEnum):
    ONCE = "once"
    CHAT = "chat"
    ALWAYS = "always"


class Via(StrEnum):
    """The door through which a decision came."""

    BROWSER = "browser"
    API = "api"
    ADMIN = "admin"
    LINK = "link"
    RULE = "rule"
    SYSTEM = "system"


class Mode(StrEnum):
    ASK = "ask"
    AUTO_EDIT = "auto-edit"
    FULL = "full"


class RunStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"


ACTIVE = (RunStatus.RUNNING, RunStatus.WAITING)
ENDED = (RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.INTERRUPTED)
