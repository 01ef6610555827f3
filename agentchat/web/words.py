"""What a call does, in a word, an icon and an argument that fits on a line."""

from __future__ import annotations

import json
from typing import Any

from agentchat.providers import registry

Wire = dict[str, Any]

KINDS: dict[str, tuple[str, str]] = {
    "command": ("Run", "shell"),
    "edit": ("Edit", "edit"),
    "read": ("Read", "read"),
    "search": ("Search", "search"),
    "plan": ("Plan", "plan"),
    "question": ("Ask", "question"),
}
"""Kind of a call -> the verb and the icon of its row."""

NAMES = {
    "command": ("bash", "shell", "exec", "exec_command", "run", "run_command", "command", "terminal", "execute"),
    "edit": ("edit", "write", "multiedit", "apply_patch", "patch", "file_change", "write_file", "edit_file"),
    "read": ("read", "read_file", "view", "cat", "open", "fetch"),
    "search": ("grep", "glob", "search", "find", "ls", "list", "websearch", "web_search"),
    "plan": ("plan", "exitplanmode", "todowrite", "update_plan"),
    "question": ("ask_user", "askuserquestion", "question", "ask"),
}
_BY_NAME = {name: kind for kind, names in NAMES.items() for name in names}
ARGUMENT_KEYS = ("command", "file_path", "path", "pattern", "query", "url", "description", "prompt")


def kind_of(item: Wire) -> str:
    request = item.get("request") or {}
    return str(request.get("kind") or _BY_NAME.get(str(item.get("name", "")).lower(), "tool"))


def verb(item: Wire) -> tuple[str, str]:
    """The verb and the icon; an unknown tool goes by its own name."""
    return KINDS.get(kind_of(item)) or (str(item.get("name") or "Tool"), "gear")


def arguments(item: Wire) -> Any:
    """The parsed arguments; None if they are not JSON (or were cut on the wire)."""
    try:
        return json.loads(item.get("arguments") or "null")
    except ValueError:
        return None


def command(item: Wire) -> str | None:
    parsed = arguments(item)
    value = parsed.get("command") if isinstance(parsed, dict) else None
    return value if isinstance(value, str) else None


def argument(item: Wire) -> str:
    """The one argument that says most, on one line."""
    parsed = arguments(item)
    if isinstance(parsed, dict):
        for key in ARGUMENT_KEYS:
            if isinstance(parsed.get(key), str) and parsed[key]:
                return " ".join(str(parsed[key]).split())[:300]
        if not parsed:
            return ""
    return str(item.get("arguments") or "")[:300]


def pretty(item: Wire) -> str:
    """All arguments as text that can be read; the exact bytes if they are not JSON."""
    parsed = arguments(item)
    if parsed is None:
        return str(item.get("arguments") or "")
    if isinstance(parsed, dict) and list(parsed) == ["plan"] and isinstance(parsed["plan"], str):
        return parsed["plan"]
    return json.dumps(parsed, indent=2, ensure_ascii=False)


def agent(chat: Wire) -> str:
    """The name of the agent, as its maker writes it."""
    if label := chat.get("provider_label"):
        return str(label)
    labels = {row["key"]: row["label"] for row in registry.describe()}
    key = str(chat.get("provider") or "agent")
    return str(labels.get(key, key))
