from __future__ import annotations

from agentchat.models.chat import Chat
from agentchat.models.event import Event
from agentchat.models.idempotency import IdempotencyKey
from agentchat.models.item import OutputItem, PendingApproval
from agentchat.models.message import Message
from agentchat.models.resolution import Receipt, Resolution
from agentchat.models.run import Run

__all__ = [
    "Chat",
    "Event",
    "IdempotencyKey",
    "Message",
    "OutputItem",
    "PendingApproval",
    "Receipt",
    "Resolution",
    "Run",
]
