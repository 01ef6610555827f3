"""Characters that hide what a text says, made visible: controls, reading directions, no width, look-alikes."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from html import escape

_SHELL_WORD = re.compile(r"[^ \t\n]+")
_LETTERS = re.compile(r"[^\W_]+")
_HIDING_CATEGORIES = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"}
_EMPTY = {
    "\u034f", "\u115f", "\u1160", "\u17b4", "\u17b5", "\u180b", "\u180c", "\u180d", "\u180f", "\u2800", "\u3164",
    "\uffa0",
}  # fmt: skip
"""Letters and marks that show nothing."""
_IMITATING = ("CYRILLIC ", "GREEK ", "ARMENIAN ", "CHEROKEE ", "COPTIC ", "FULLWIDTH ", "MATHEMATICAL ")
_NAMES = {
    "\x00": "NULL",
    "\x07": "BELL",
    "\b": "BACKSPACE",
    "\x0b": "LINE TABULATION",
    "\x0c": "FORM FEED",
    "\r": "CARRIAGE RETURN",
    "\x1b": "ESCAPE",
    "\x7f": "DELETE",
    "\x85": "NEXT LINE",
    "\x9b": "CONTROL SEQUENCE INTRODUCER",
}
_NAMELESS = {"Cc": "CONTROL", "Co": "PRIVATE USE", "Cs": "SURROGATE"}


@dataclass(frozen=True, slots=True)
class Suspect:
    """A kind of character that hides or imitates, and how often it occurs."""

    char: str
    code: str
    name: str
    count: int


def mark(text: str) -> str:
    """Safe HTML of the same text, each such character as a chip that names its code."""
    return _marked(text, 0, len(text), _odd(text))


def command(text: str) -> str:
    """The same, each word in a span, so that a line breaks between words and never inside one."""
    odd = _odd(text)
    parts, start = [], 0
    for word in _SHELL_WORD.finditer(text):
        parts.append(text[start : word.start()])
        parts.append(f'<span class="w">{_marked(text, word.start(), word.end(), odd)}</span>')
        start = word.end()
    return "".join([*parts, text[start:]])


def suspects(text: str) -> list[Suspect]:
    """Each kind of such character once, in the order of appearance."""
    counted = Counter(text[at] for at in _odd(text))
    return [Suspect(char, _code(char), _name(char), count) for char, count in counted.items()]


def digest_words(digest: str) -> str:
    """A digest in groups of four, so that people can compare it."""
    return " ".join(digest[start : start + 4] for start in range(0, len(digest), 4))


def _marked(text: str, start: int, end: int, odd: dict[int, None]) -> str:
    shown = (_chip(text[at]) if at in odd else escape(text[at], quote=False) for at in range(start, end))
    return "".join(shown)


def _odd(text: str) -> dict[int, None]:
    """The places of such characters, in order."""
    if text.isascii() and text.isprintable():
        return {}
    found = [at for at, char in enumerate(text) if _hides(char)]
    if not text.isascii():
        found += [at for word in _LETTERS.finditer(text) for at in _look_alikes(word)]
    return dict.fromkeys(sorted(found))


def _hides(char: str) -> bool:
    if " " <= char <= "~" or char in "\n\t":
        return False
    category = unicodedata.category(char)
    odd_space = category == "Zs"  # a shell takes only the plain one for a space
    varies = "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"
    return category in _HIDING_CATEGORIES or odd_space or varies or char in _EMPTY


def _look_alikes(word: re.Match[str]) -> list[int]:
    """Letters of Greek, Cyrillic and the like in a word that also has letters of ASCII."""
    text = word[0]
    if text.isascii() or not re.search("[A-Za-z]", text):
        return []
    return [word.start() + at for at, char in enumerate(text) if _imitates(char)]


def _imitates(char: str) -> bool:
    return char.isalpha() and not char.isascii() and unicodedata.name(char, "").startswith(_IMITATING)


def _chip(char: str) -> str:
    code = _code(char)
    return f'<span class="uchip" title="{code} {escape(_name(char))}">{code}</span>'


def _code(char: str) -> str:
    return f"U+{ord(char):04X}"


def _name(char: str) -> str:
    nameless = _NAMELESS.get(unicodedata.category(char), "UNASSIGNED")
    return _NAMES.get(char, unicodedata.name(char, nameless))
