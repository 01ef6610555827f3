"""Characters that hide what a text says, made visible: controls, reading directions, no width, look-alikes."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from html import escape

_WORD = re.compile(r"\S+")
_SPACES = {
    "\u00a0", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006", "\u2007", "\u2008", "\u2009",
    "\u200a", "\u202f", "\u205f", "\u3000", "\u2028", "\u2029", "\u1680", "\u115f", "\u1160", "\u3164", "\uffa0",
    "\u2800", "\u034f", "\u17b4", "\u17b5",
}  # fmt: skip
_PLAIN = {"\n", "\t"}
_NAMES = {"\r": "CARRIAGE RETURN", "\x1b": "ESCAPE", "\x07": "BELL", "\b": "BACKSPACE", "\x7f": "DELETE"}


@dataclass(frozen=True, slots=True)
class Suspect:
    char: str
    code: str
    name: str
    count: int


def mark(text: str) -> str:
    """Safe HTML of the same text, each such character as a chip that names its code."""
    odd = _odd(text)
    return "".join(_chip(char) if at in odd else escape(char, quote=False) for at, char in enumerate(text))


def command(text: str) -> str:
    """The same, each word in a span, so that a line breaks between words and never inside one."""
    odd = _odd(text)
    parts, start = [], 0
    for word in _WORD.finditer(text):
        parts.append(_marked(text, start, word.start(), odd))
        parts.append(f'<span class="w">{_marked(text, word.start(), word.end(), odd)}</span>')
        start = word.end()
    return "".join([*parts, _marked(text, start, len(text), odd)])


def suspects(text: str) -> list[Suspect]:
    """Each kind of such character once, in the order of appearance."""
    counted = Counter(text[at] for at in sorted(_odd(text)))
    return [Suspect(char, _code(char), _name(char), count) for char, count in counted.items()]


def digest_words(digest: str) -> str:
    return " ".join(digest[start : start + 4] for start in range(0, len(digest), 4))


def _marked(text: str, start: int, end: int, odd: set[int]) -> str:
    return "".join(
        _chip(text[at]) if at in odd else escape(text[at], quote=False) for at in range(start, end)
    )


def _odd(text: str) -> set[int]:
    if text.isascii() and text.isprintable():
        return set()
    hidden = {at for at, char in enumerate(text) if _hides(char)}
    return hidden | {at for word in _WORD.finditer(text) for at in _look_alikes(word)}


def _hides(char: str) -> bool:
    if char in _PLAIN or " " <= char <= "~":
        return False
    category = unicodedata.category(char)
    variation = "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"
    return category in ("Cc", "Cf", "Co", "Cn", "Cs", "Zl", "Zp") or char in _SPACES or variation


def _look_alikes(word: re.Match[str]) -> list[int]:
    """Letters of Greek or Cyrillic in a word that also has Latin ones; and letters of full width."""
    text = word[0]
    if text.isascii():
        return []
    latin = any("a" <= char.lower() <= "z" for char in text)
    return [word.start() + at for at, char in enumerate(text) if _imitates(char, latin)]


def _imitates(char: str, latin: bool) -> bool:
    if char.isascii():
        return False
    name = unicodedata.name(char, "")
    foreign = name.startswith(("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC"))
    return (latin and foreign) or name.startswith(("FULLWIDTH", "MATHEMATICAL"))


def _chip(char: str) -> str:
    return f'<span class="uchip" title="{escape(_code(char) + " " + _name(char))}">{_code(char)}</span>'


def _code(char: str) -> str:
    return f"U+{ord(char):04X}"


def _name(char: str) -> str:
    return _NAMES.get(char) or unicodedata.name(char, "CONTROL")
