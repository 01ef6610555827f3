"""Texts of agents and people, fit for a page: escaped, and with characters that hide themselves marked."""

from __future__ import annotations

import json
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString

from agentchat.rendering import visible

SHORT = 90
NOTHING = "–"


def block(text: str) -> SafeString:
    return format_html("<pre>{}</pre>", _marked(text)) if text else SafeString(NOTHING)


def pretty(value: Any) -> SafeString:
    """JSON for people: a text that holds JSON, or what it means."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return block(value)
    return block(json.dumps(value, indent=2, ensure_ascii=False))


def short(text: str) -> SafeString:
    line = " ".join(text.split())
    return _marked(line if len(line) <= SHORT else f"{line[:SHORT]}…")


def _marked(text: str) -> SafeString:
    """`visible.mark` escapes."""
    return SafeString(visible.mark(text))
