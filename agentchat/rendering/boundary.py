"""Where the last top-level block of an open text surely ends, seen line by line without parsing anything."""

from __future__ import annotations

import re

from markdown_it.token import Token

_CLOSED_AT_ONCE = {"heading_open", "hr"}
_CLOSED_BY_EMPTY_LINE = {"paragraph_open", "table_open", "blockquote_open"}
_LISTS = {"bullet_list_open", "ordered_list_open"}
_MARKER = re.compile(r"(?:[-+*]|\d{1,9}[.)])(?:\s|\Z)")


def is_empty(line: str) -> bool:
    return not line.strip(" \t")


def is_final(tokens: list[Token], lines: list[str]) -> bool:
    """Whether the last block of these complete lines can no longer change.

    A list and indented code may go on after empty lines. All else is done when a line after it is not part of it.
    """
    first = tokens[0]
    start, end = first.map or [0, len(lines)]
    if first.type == "fence":
        return end - start > 1 and closes(lines[end - 1], first.markup)
    return first.type in _CLOSED_AT_ONCE or (first.type in _CLOSED_BY_EMPTY_LINE and end < len(lines))


def closes(line: str, fence: str) -> bool:
    """Whether a line ends the code that this fence began."""
    bare = line.rstrip(" \t")
    marks = bare.lstrip(" ")
    return len(bare) - len(marks) < 4 and len(marks) >= len(fence) and marks == fence[:1] * len(marks)


class Watch:
    """Tells from each new line whether parsing again is sure to find an end of the open block."""

    def __init__(self, first: Token | None = None) -> None:
        self._kind = first.type if first else "paragraph_open"
        self._markup = first.markup if first else ""
        self._after_empty = False

    def ends(self, line: str) -> bool:
        ended = self._is_end(line)
        self.after(line)
        return ended

    def after(self, line: str) -> None:
        """What was the last line before."""
        self._after_empty = is_empty(line)

    def _is_end(self, line: str) -> bool:
        if self._kind in _CLOSED_BY_EMPTY_LINE:
            return is_empty(line)
        if self._kind == "fence":
            return closes(line, self._markup)
        indented = is_empty(line) or line[0] in " \t"
        if self._kind in _LISTS:
            return self._after_empty and not indented and not _MARKER.match(line)
        return not indented
