"""A change of a file, line by line, with the words that changed marked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile, zip_longest
from typing import Literal

from agentchat.rendering import visible

Kind = Literal["a", "d", "c"]
"""Added, deleted, or context: the classes of the stylesheet."""
Span = tuple[str, bool]
"""Text, and whether it is what changed in its line."""

MOST_LINES = 6_000
"""Longer files (both together) are shown as one replaced by the other."""
_WORD = re.compile(r"\w+|\s+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Row:
    """A line; `number` is its number in the new file, or in the old one if it was deleted."""

    path: str
    kind: Kind
    number: int
    spans: tuple[Span, ...]

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.spans)


def unified(before: str, after: str, path: str, context: int = 3) -> list[Row]:
    """The changed lines, and a few around them."""
    old, new = _lines(before), _lines(after)
    rows: list[Row] = []
    for tag, old_start, old_end, new_start, new_end in _opcodes(old, new, context):
        if tag == "equal":
            same = enumerate(new[new_start:new_end], new_start + 1)
            rows += [Row(path, "c", number, ((line, False),)) for number, line in same]
            continue
        pairs = _compared(old[old_start:old_end], new[new_start:new_end])
        deleted, added = _column(pairs, 0), _column(pairs, 1)
        rows += [Row(path, "d", number, spans) for number, spans in enumerate(deleted, old_start + 1)]
        rows += [Row(path, "a", number, spans) for number, spans in enumerate(added, new_start + 1)]
    return rows


def html(rows: list[Row]) -> str:
    """Safe HTML, a table for the `diff` of the stylesheet; hidden characters are shown as chips."""
    lines = "".join(map(_line, rows))
    if not rows:
        return ""
    name = f'<div class="diff-name"><span class="mono">{visible.mark(rows[0].path)}</span></div>'
    table = f"<table>\n{lines}</table>"
    return f'<div class="diff">{name}<div class="diff-scroll" tabindex="0">{table}</div></div>'


def _lines(text: str) -> list[str]:
    """As editors count them; a missing end of the last line is not shown."""
    return text.removesuffix("\n").split("\n") if text else []


Opcode = tuple[str, int, int, int, int]


def _opcodes(old: list[str], new: list[str], context: int) -> Iterator[Opcode]:
    if len(old) + len(new) > MOST_LINES:
        yield "replace", 0, len(old), 0, len(new)
        return
    for group in SequenceMatcher(None, old, new).get_grouped_opcodes(context):
        yield from group


Pair = tuple[tuple[Span, ...] | None, tuple[Span, ...] | None]


def _compared(old: list[str], new: list[str]) -> list[Pair]:
    return [_pair(was, now) for was, now in zip_longest(old, new)]


def _column(pairs: list[Pair], side: int) -> list[tuple[Span, ...]]:
    return [spans for pair in pairs if (spans := pair[side]) is not None]


def _pair(was: str | None, now: str | None) -> Pair:
    """Both lines, with what is between their common first and last words marked, if they have enough in common."""
    if was is None or now is None:
        return _unmarked(was), _unmarked(now)
    old, new = _WORD.findall(was), _WORD.findall(now)
    head = _in_common(old, new)
    tail = _in_common(old[head:][::-1], new[head:][::-1])
    if (head + tail) * 5 < max(len(old), len(new)) * 2:
        return _unmarked(was), _unmarked(now)
    return _marked(old, head, tail), _marked(new, head, tail)


def _in_common(old: list[str], new: list[str]) -> int:
    """How many words at the front are the same. (To compare all words would be quadratic.)"""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))


def _marked(words: list[str], head: int, tail: int) -> tuple[Span, ...]:
    end = len(words) - tail
    parts = ((words[:head], False), (words[head:end], True), (words[end:], False))
    return tuple(("".join(some), changed) for some, changed in parts if some)


def _unmarked(line: str | None) -> tuple[Span, ...] | None:
    return None if line is None else ((line, False),)


def _line(row: Row) -> str:
    colour = "" if row.kind == "c" else f' class="{row.kind}"'
    return f"<tr{colour}><td>{row.number}</td><td>{''.join(map(_span, row.spans))}</td></tr>\n"


def _span(span: Span) -> str:
    text = visible.mark(span[0])
    return f"<mark>{text}</mark>" if span[1] else text
