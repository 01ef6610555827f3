"""The door for operators: Django's admin. It shows all and changes nothing, but for deciding a request."""

from __future__ import annotations

from agentchat.admin import audit, decide, tables

__all__ = ["audit", "decide", "tables"]
