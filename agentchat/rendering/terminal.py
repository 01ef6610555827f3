"""What a terminal would show: carriage returns and backspaces overwrite, escape sequences go (colours may stay)."""

from __future__ import annotations

import re
from html import escape

_SEQUENCE = re.compile(
    r"\x1b\[(?P<sgr>[0-9;:]*)m"  # colours
    r"|\x1b\[[0-?]*[ -/]*(?P<final>[@-~])"  # other control sequences
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|\Z)"  # titles, links and other strings
    r"|\x1b[ -/]*[0-~]|\x1b\Z"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_COLOURS = {1: "r", 2: "g", 3: "y"}
"""The last digit of a colour's code -> the class of the stylesheet."""

Cell = tuple[str, str]
"""A character and its class."""


def plain(text: str) -> str:
    return "\n".join("".join(char for char, _ in _cells(line)) for line in text.split("\n"))


def html(text: str) -> str:
    """Safe HTML for a `pre`."""
    shown, style = [], ""
    for line in text.split("\n"):
        cells = _cells(line, style)
        shown.append(_spans(cells))
        style = _last_style(line, style)
    return "\n".join(shown)


def _cells(line: str, style: str = "") -> list[Cell]:
    """A line as its last frame left it. Costs what the line is long."""
    cells: list[Cell] = []
    column = 0
    for piece, kind in _pieces(line):
        if kind is not None:
            style = _style(kind, style)
            continue
        for char in piece:
            if char == "\r":
                column = 0
            elif char == "\b":
                column = max(0, column - 1)
            elif not _CONTROL.match(char):
                cells[column : column + 1] = [(char, style)]
                column += 1
    return cells


def _pieces(line: str) -> list[tuple[str, str | None]]:
    """Text (with None), or a change of colour (its parameters); what else a sequence does is left out."""
    pieces: list[tuple[str, str | None]] = []
    start = 0
    for match in _SEQUENCE.finditer(line):
        pieces.append((line[start : match.start()], None))
        if match["sgr"] is not None:
            pieces.append(("", match["sgr"]))
        start = match.end()
    return [*pieces, (line[start:], None)]


def _style(parameters: str, style: str) -> str:
    for code in re.split("[;:]", parameters or "0"):
        number = int(code or 0) if len(code) < 4 else 0
        if number in (0, 39):
            style = ""
        elif number == 2 or number == 90:
            style = "d"
        elif number in range(30, 38) or number in range(90, 98):
            style = _COLOURS.get(number % 10, "")
        elif number in (38, 48):
            return style
    return style


def _last_style(line: str, style: str) -> str:
    for match in _SEQUENCE.finditer(line):
        if match["sgr"] is not None:
            style = _style(match["sgr"], style)
    return style


def _spans(cells: list[Cell]) -> str:
    parts: list[str] = []
    start = 0
    for end in range(1, len(cells) + 1):
        if end == len(cells) or cells[end][1] != cells[start][1]:
            text = escape("".join(char for char, _ in cells[start:end]), quote=False)
            parts.append(f'<span class="{cells[start][1]}">{text}</span>' if cells[start][1] else text)
            start = end
    return "".join(parts)
