"""Whether a person must be asked. What is not understood asks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentchat.events import Mode


def is_question(name: str, request: Mapping[str, Any] | None) -> bool:
    return name == "ask_user" or bool(request and request.get("kind") == "question")


def requires_approval(mode: str, name: str, request: Mapping[str, Any] | None, workspace: str) -> bool:
    """Questions always ask; `full` lets everything else through; `auto-edit` only edits inside the workspace."""
    if is_question(name, request):
        return True
    if mode == Mode.FULL:
        return False
    return not (mode == Mode.AUTO_EDIT and _is_edit_inside(request or {}, workspace))


def _is_edit_inside(request: Mapping[str, Any], workspace: str) -> bool:
    paths = request.get("paths")
    if request.get("kind") != "edit" or not isinstance(paths, list) or not paths:
        return False
    root = Path(workspace).resolve()
    return all(isinstance(path, str) and _resolved(root, path).is_relative_to(root) for path in paths)


def _resolved(root: Path, path: str) -> Path:
    """Where the path leads, symbolic links followed."""
    try:
        return (root / path).resolve()
    except (OSError, ValueError, RuntimeError):
        return Path("/")
