"""Long text is shown as a head and a tail. Lengths in code points."""

from __future__ import annotations

HEAD = TAIL = 8_000
SLACK = 1_000


def cut(text: str) -> tuple[str, int]:
    """The text as it is shown, and how many code points of its middle are left out."""
    if len(text) <= HEAD + TAIL + SLACK:
        return text, 0
    return text[:HEAD] + text[-TAIL:], len(text) - HEAD - TAIL
