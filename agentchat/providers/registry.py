"""Which providers there are, and where they live. Nothing is imported until it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from agentchat.providers.base import Availability, Provider

PROVIDERS: dict[str, str] = {
    "shell": "agentchat.providers.shell.Shell",
    "scripted": "agentchat.providers.scripted.Scripted",
}
"""Key -> dotted path of the class."""


class UnknownProvider(ValueError):
    """There is no provider of this name."""


def load(key: str) -> type[Provider]:
    """The class of a provider. An import that fails is raised as it is."""
    try:
        module, _, name = PROVIDERS[key].rpartition(".")
    except KeyError:
        known = ", ".join(sorted(PROVIDERS))
        raise UnknownProvider(f"There is no provider named {key!r}. Choose one of these: {known}.") from None
    found: type[Provider] = getattr(import_module(module), name)
    return found


def resumable(key: str) -> bool:
    """Whether another process can go on where a run of this provider asked; not if there is no such provider here."""
    return key in PROVIDERS and load(key).resumable


def describe() -> list[dict[str, Any]]:
    """Every provider as a row for people; one that cannot be imported is not ready, and says why."""
    return [_row(key) for key in PROVIDERS]


def _row(key: str) -> dict[str, Any]:
    try:
        provider = load(key)
        ready = provider.availability()
    except Exception as error:  # one broken provider must not hide the others
        reason = f"This provider cannot be loaded: {type(error).__name__}: {error}. Repair or remove it."
        return _fields(key, key, "", Availability(False, reason), False)
    return _fields(key, provider.label, provider.about, ready, provider.resumable)


def _fields(key: str, label: str, about: str, ready: Availability, resumable: bool) -> dict[str, Any]:
    return {
        "key": key,
        "label": label,
        "about": about,
        "ready": ready.ready,
        "detail": ready.detail,
        "resumable": resumable,
        "version": "",
    }
