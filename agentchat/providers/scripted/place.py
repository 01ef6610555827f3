"""Where a script stands: for each list of steps that is being played, which is next. Another process goes on there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_here: ContextVar[str] = ContextVar("_here", default="")
"""The path of the step that is being played; each branch has its own."""


class Place:
    def __init__(self, kept: Any = None) -> None:
        known = kept if isinstance(kept, dict) else {}
        self._next: dict[str, int] = dict(known.get("next") or {})
        self.approved: dict[str, Any] = dict(known.get("approved") or {})
        """By call, the arguments that may run, maybe edited."""

    def kept(self) -> dict[str, Any]:
        return {"next": dict(self._next), "approved": dict(self.approved)}

    @staticmethod
    def inner(name: str) -> str:
        """The path of a list of steps within the step that is being played."""
        return f"{_here.get()}.{name}"

    def next(self, path: str) -> int:
        return self._next.get(path, 0)

    def has_begun(self, name: str) -> bool:
        return self.inner(name) in self._next

    def reach(self, path: str, number: int) -> None:
        """Everything within the steps before it is over."""
        self._next[path] = number
        within = tuple(f"{path}/{before}." for before in (number - 1, number - 2))
        for other in [other for other in self._next if other.startswith(within)]:
            del self._next[other]

    @contextmanager
    def at(self, path: str, number: int) -> Iterator[None]:
        token = _here.set(f"{path}/{number}")
        try:
            yield
        finally:
            _here.reset(token)
