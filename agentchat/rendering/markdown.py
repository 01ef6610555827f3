"""Markdown as safe HTML, block by block: each top-level block is rendered once, when nothing later can change it.

What makes any chunking give the same HTML as one shot: carriage returns are normalised, raw HTML and reference
definitions are off (a definition at the end would change a link at the beginning), only complete lines of the open
tail are parsed, and its last top-level block is given out only if it is of a kind that an empty line ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from markdown_it.token import Token

from agentchat.rendering import boundary, markup

BUDGET = 16
"""How many characters may be parsed for each that came; beyond, a tail is parsed when it has grown by half."""
_LINE = re.compile(r"\r\n|\r(?!\Z)|\n")


@dataclass(frozen=True, slots=True)
class Block:
    """A finished block. `end` is how many code points of the source it and all before it cover.

    Empty lines at the very end of a text need not be covered: nothing is shown of them.
    """

    html: str
    end: int


class MarkdownStream:
    """Takes text as it comes. `done` code points of the source were given out as blocks before."""

    def __init__(self, done: int = 0) -> None:
        self._done = done
        self._tail: list[str] = []
        self._line: list[str] = []
        """What came since the last complete line."""
        self._chars = self._failed_at = 0
        self._came = self._parsed = 0
        self._watch = boundary.Watch()

    def feed(self, text: str) -> list[Block]:
        """The blocks that this text finished."""
        self._tail.append(text)
        self._line.append(text)
        self._chars += len(text)
        self._came += len(text)
        if "\n" not in text and "\r" not in text:
            return []
        return self._emit(last=False) if self._is_worth_parsing(self._sees_an_end()) else []

    def finish(self) -> list[Block]:
        """The rest."""
        return self._emit(last=True)

    def _sees_an_end(self) -> bool:
        lines, _, rest = _lines("".join(self._line), last=False)
        self._line = [rest]
        seen = [self._watch.ends(line) for line in lines]
        return any(seen)

    def _is_worth_parsing(self, ended: bool) -> bool:
        """Parsing a long tail at every line would be quadratic."""
        if self._chars * 2 >= self._failed_at * 3:
            return True
        return ended and self._parsed + self._chars <= BUDGET * self._came

    def _emit(self, last: bool) -> list[Block]:
        tail = "".join(self._tail)
        lines, ends, _ = _lines(tail, last)
        groups = list(_groups(markup.blocks("".join(f"{line}\n" for line in lines))))
        blocks = list(_blocks(groups, lines, ends, last))
        used = blocks[-1].end if blocks else 0
        self._keep(tail[used:], groups, lines)
        self._parsed += len(tail)
        finished = [Block(block.html, self._done + block.end) for block in blocks]
        self._done += used
        return finished

    def _keep(self, tail: str, groups: list[Group], lines: list[str]) -> None:
        """Remember the open block, to know when parsing again is worth it."""
        self._tail, self._chars, self._failed_at = [tail], len(tail), len(tail)
        is_open = groups and not boundary.is_final(groups[-1][1], lines)
        self._watch = boundary.Watch(groups[-1][1][0] if is_open else None)
        if lines and is_open:
            self._watch.after(lines[-1])


def render(text: str) -> str:
    stream = MarkdownStream()
    return "".join(block.html for block in [*stream.feed(text), *stream.finish()])


Group = tuple[int, list[Token]]
"""The first line and the tokens of a top-level block."""


def _lines(text: str, last: bool) -> tuple[list[str], list[int], str]:
    """The complete lines (all, if nothing follows), where each ends in the source, and the rest."""
    lines, ends, start = [], [], 0
    for match in _LINE.finditer(text):
        lines.append(text[start : match.start()])
        start = match.end()
        ends.append(start)
    if last and start < len(text):
        lines.append(text[start:].removesuffix("\r"))
        ends.append(len(text))
    return lines, ends, text[start:]


def _blocks(groups: list[Group], lines: list[str], ends: list[int], last: bool) -> Iterator[Block]:
    """Top-level blocks, each up to where the next begins; the last only if it is finished."""
    starts = [start for start, _ in groups[1:]] + [len(lines)]
    for (start, tokens), end in zip(groups, starts, strict=False):
        if end < len(lines) or last or boundary.is_final(tokens, lines):
            yield Block(markup.html(tokens, "\n".join(lines[start:end])), ends[end - 1])


def _groups(tokens: Iterable[Token]) -> Iterator[Group]:
    group: list[Token] = []
    depth = 0
    for token in tokens:
        group.append(token)
        depth += token.nesting
        if depth == 0:
            yield (group[0].map or [0])[0], group
            group = []
