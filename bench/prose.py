"""What an agent says: Markdown with prose, lists, tables and code, in tokens of 4 characters. It is this project's own
documentation, over and over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
TEXT = "\n\n".join(file.read_text() for file in sorted(DOCS.rglob("*.md")))
CHARS = 4
"""A token, on average."""


def tokens(count: int) -> Iterator[str]:
    for n in range(count):
        start = n * CHARS % (len(TEXT) - CHARS)
        yield TEXT[start : start + CHARS]


def size(count: int) -> int:
    """Bytes of so many tokens."""
    return sum(len(token.encode()) for token in tokens(count))
