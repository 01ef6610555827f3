"""The shell: each line of a message is a command that a person sees before it runs."""

from __future__ import annotations

from agentchat.providers.shell.provider import Shell

__all__ = ["Shell"]
