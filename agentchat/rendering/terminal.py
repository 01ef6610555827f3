"""What a terminal would show: carriage returns and backspaces overwrite, escape sequences go (colours may stay)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from itertools import groupby

_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)(?P<parameters>[0-?]*)[ -/]*(?:(?P<final>[@-~])|\Z)"
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|\Z)"  # titles, links and other strings
    r"|\x1b[ -/]*(?:[0-~]|\Z)"
    r"|(?P<move>[\r\b])"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)
_COLOURS = {str(code) for code in (*range(30, 38), *range(90, 98))}
_ALIASES = {31: "r", 91: "r", 32: "g", 92: "g", 33: "y", 93: "y", 90: "d"}
"""Colours that the page has -> its own class."""
_SKIPPED = {"5": 2, "2": 4}
"""How many parameters a colour of the palette (5) or of red, green and blue (2) takes."""

Style = tuple[bool, int]
"""Bold, and the code of the colour (0 is none)."""
Cell = tuple[str, Style]

PLAIN: Style = (False, 0)


def plain(text: str) -> str:
    """The text that stays on the screen."""
    return "\n".join("".join(char for char, _ in line) for line in _lines(text))


def html(text: str) -> str:
    """The same as safe HTML for a `pre`, with classes for the colours."""
    return "\n".join(_spans(line) for line in _lines(text))


def _lines(text: str) -> Iterator[list[Cell]]:
    style = PLAIN
    for raw in text.split("\n"):
        line = _Line(style)
        line.write(raw)
        style = line.style
        yield line.cells


class _Line:
    """A line as its last frame leaves it. Costs what the raw line is long."""

    def __init__(self, style: Style) -> None:
        self.cells: list[Cell] = []
        self.column = 0
        self.style = style

    def write(self, raw: str) -> None:
        start = 0
        for match in _SEQUENCE.finditer(raw):
            self._put(raw[start : match.start()])
            self._obey(match)
            start = match.end()
        self._put(raw[start:])

    def _put(self, text: str) -> None:
        end = self.column + len(text)
        self.cells[self.column : end] = [(char, self.style) for char in text]
        self.column = end

    def _obey(self, match: re.Match[str]) -> None:
        if match["move"]:
            self.column = 0 if match["move"] == "\r" else max(0, self.column - 1)
        elif match["final"] == "m":
            self.style = _style(match["parameters"], self.style)
        elif match["final"] == "K":
            self._erase(match["parameters"])

    def _erase(self, parameters: str) -> None:
        """To the end of the line, or all of it; what erases its beginning is left out."""
        if parameters == "2":
            self.column = 0
        if parameters in ("", "0", "2"):
            del self.cells[self.column :]


def _style(parameters: str, style: Style) -> Style:
    codes = iter(re.split("[;:]", parameters))
    for code in codes:
        if code in ("38", "48", "58"):
            _skip(codes)
        else:
            style = _changed(style, code)
    return style


def _skip(codes: Iterator[str]) -> None:
    for _ in range(_SKIPPED.get(next(codes, ""), 1) - 1):
        next(codes, None)


def _changed(style: Style, code: str) -> Style:
    bold, colour = style
    if code.strip("0") == "":
        return PLAIN
    if code in ("1", "22"):
        return code == "1", colour
    if code in _COLOURS:
        return bold, int(code)
    return (bold, 0) if code == "39" else style


def _spans(cells: list[Cell]) -> str:
    runs = groupby(cells, key=lambda cell: cell[1])
    return "".join(_span(style, "".join(char for char, _ in run)) for style, run in runs)


def _span(style: Style, text: str) -> str:
    bold, colour = style
    names = ["sgr-1"] * bold + [f"sgr-{colour}"] * bool(colour)
    if colour in _ALIASES:
        names.append(_ALIASES[colour])
    text = escape(text, quote=False)
    return f'<span class="{" ".join(names)}">{text}</span>' if names else text
