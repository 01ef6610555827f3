"""Plays a script instead of asking a model: for demonstrations, tests and measurements."""

from __future__ import annotations

from agentchat.providers.scripted.provider import Scripted
from agentchat.providers.scripted.script import ScriptError

__all__ = ["ScriptError", "Scripted"]
