"""Reads settings from the environment; a bad value stops the start with a sentence."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

YES = {"1", "true", "yes", "on"}
NO = {"0", "false", "no", "off", ""}


def flag(name: str, default: bool) -> bool:
    value = os.environ.get(name, "1" if default else "0").strip().lower()
    if value not in YES | NO:
        raise ImproperlyConfigured(f"{name} is {value!r}, but it must be 1 or 0. Set it to one of these.")
    return value in YES


def number(name: str, default: float, *, least: float) -> float:
    value = os.environ.get(name, "").strip() or str(default)
    try:
        parsed = float(value)
    except ValueError:
        raise ImproperlyConfigured(f"{name} is {value!r}, but it must be a number.") from None
    if parsed < least:
        raise ImproperlyConfigured(f"{name} is {value}, but it must be at least {least:g}.")
    return parsed


def words(name: str, default: str = "") -> list[str]:
    return [word.strip() for word in os.environ.get(name, default).split(",") if word.strip()]


def choice(name: str, default: str, allowed: tuple[str, ...]) -> str:
    value = os.environ.get(name, "").strip() or default
    if value not in allowed:
        raise ImproperlyConfigured(f"{name} is {value!r}, but it must be one of: {', '.join(allowed)}.")
    return value


def folders(name: str, default: Path) -> list[Path]:
    """Folders separated by the system's path separator; the default is made, others must exist."""
    given = [Path(part).expanduser() for part in os.environ.get(name, "").split(os.pathsep) if part.strip()]
    if not given:
        default.mkdir(parents=True, exist_ok=True)
        return [default.resolve()]
    for folder in given:
        if not folder.is_dir():
            raise ImproperlyConfigured(f"{name} names {folder}, but there is no such folder. Make it, or name another.")
    return [folder.resolve() for folder in given]


def secret(name: str, kept_in: Path, *, may_make: bool) -> str:
    """The secret from the environment; in the embedded default one is made once and kept in a private file."""
    if value := os.environ.get(name, "").strip():
        if len(value) < 32:
            raise ImproperlyConfigured(f"{name} has {len(value)} characters, but it needs at least 32.")
        return value
    if not may_make:
        raise ImproperlyConfigured(f"{name} is not set. Outside the embedded default it must be given.")
    if not kept_in.exists():
        kept_in.parent.mkdir(parents=True, exist_ok=True)
        _write_once(kept_in, secrets.token_urlsafe(48))
    return kept_in.read_text().strip()


def _write_once(path: Path, text: str) -> None:
    """Two processes may start at once: the link is the lock, so that both read the same secret."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    try:
        os.link(draft, path)
    except FileExistsError:
        return
    finally:
        draft.unlink()
