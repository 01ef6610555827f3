"""What hides in a text is shown, and nothing else changes."""

from __future__ import annotations

import re
from html import unescape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentchat.rendering import visible
from agentchat.rendering.visible import Suspect

CHIP = re.compile(r'<span class="uchip" title="U\+([0-9A-F]{4,6}) [^"<>]+">U\+\1</span>')


@pytest.mark.parametrize(
    ("char", "name"),
    [
        ("\u202e", "RIGHT-TO-LEFT OVERRIDE"),
        ("\u2066", "LEFT-TO-RIGHT ISOLATE"),
        ("\u200f", "RIGHT-TO-LEFT MARK"),
        ("\u061c", "ARABIC LETTER MARK"),
        ("\u200b", "ZERO WIDTH SPACE"),
        ("\u200d", "ZERO WIDTH JOINER"),
        ("\u2060", "WORD JOINER"),
        ("\ufeff", "ZERO WIDTH NO-BREAK SPACE"),
        ("\u00ad", "SOFT HYPHEN"),
        ("\u00a0", "NO-BREAK SPACE"),
        ("\u2028", "LINE SEPARATOR"),
        ("\u3164", "HANGUL FILLER"),
        ("\ufe0f", "VARIATION SELECTOR-16"),
        ("\U000e0041", "TAG LATIN CAPITAL LETTER A"),
        ("\U000e0101", "VARIATION SELECTOR-18"),
        ("\r", "CARRIAGE RETURN"),
        ("\x1b", "ESCAPE"),
        ("\x01", "CONTROL"),
        ("\x7f", "DELETE"),
        ("\x85", "NEXT LINE"),
        ("\ue000", "PRIVATE USE"),
        ("\u0378", "UNASSIGNED"),
        ("\ud800", "SURROGATE"),
    ],
)
def test_what_hides_is_a_chip(char: str, name: str) -> None:
    code = f"U+{ord(char):04X}"
    chip = f'<span class="uchip" title="{code} {name}">{code}</span>'
    assert visible.mark(f"a{char}b") == f"a{chip}b"
    assert visible.command(f"a{char}b c") == f'<span class="w">a{chip}b</span> <span class="w">c</span>'
    assert visible.suspects(f"{char}a{char}") == [Suspect(char, code, name, 2)]


@pytest.mark.parametrize(
    "text",
    ["", "rm -rf ./build", "a\tb\nc", "naïve café Ünïcödé", "привет мир", "Ελλάδα", "שלום", "日本語、です",
     "→ ✓ “x” – …", "echo=Привет", "/home/Иван/file.py", "snake_имя", "😀", "e\u0301", "½ ² µm"],
)  # fmt: skip
def test_ordinary_text_stays(text: str) -> None:
    assert visible.mark(text) == text
    assert visible.suspects(text) == []


@pytest.mark.parametrize(
    ("text", "odd"),
    [
        ("p\u0430ypal", "\u0430"),
        ("\u0440\u0430ypal.com", "\u0440\u0430"),
        ("\u03bfpen", "\u03bf"),
        ("\uff52m", "\uff52"),
        ("\U0001d5eb2a", "\U0001d5eb"),
        ("curl http://g\u043eogle.com/x", "\u043e"),
    ],
)
def test_letters_that_imitate_among_plain_ones(text: str, odd: str) -> None:
    assert "".join(one.char for one in visible.suspects(text)) == odd
    assert [int(code, 16) for code in CHIP.findall(visible.mark(text))] == [ord(char) for char in odd]


def test_suspects_come_once_in_their_order() -> None:
    found = visible.suspects("\u200b\u202e p\u0430y \u200b")
    assert [(one.code, one.count) for one in found] == [("U+200B", 2), ("U+202E", 1), ("U+0430", 1)]
    assert found[2].name == "CYRILLIC SMALL LETTER A"


def test_the_rest_is_escaped() -> None:
    assert visible.mark("<b>&\"'") == "&lt;b&gt;&amp;\"'"
    assert visible.command("a <b>") == '<span class="w">a</span> <span class="w">&lt;b&gt;</span>'


def test_words_are_those_of_a_shell() -> None:
    """A no-break space does not end a word, and white space stays as it is."""
    html = visible.command("  ls\u00a0-l \t-a\n\n")
    assert html.count('<span class="w">') == 2
    assert html.startswith('  <span class="w">ls<span')
    assert html.endswith('-l</span> \t<span class="w">-a</span>\n\n')


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=60), st.text(alphabet="a <>&\"'\n\t\r\u202e\u200b\u0430é", max_size=60)))
def test_the_text_is_kept_but_for_the_chips(text: str) -> None:
    marked = visible.mark(text)
    chips = CHIP.findall(marked)
    assert "<" not in CHIP.sub("", marked)
    assert len(chips) == sum(one.count for one in visible.suspects(text))
    plain = CHIP.sub(lambda match: "\0" + match[1] + "\0", marked)
    assert re.sub("\0([0-9A-F]+)\0", lambda match: chr(int(match[1], 16)), unescape(plain)) == text
    assert re.sub(r'<span class="w">(.*?)</span>(?=[ \t\n]|\Z)', r"\1", visible.command(text)) == marked


def test_digests_are_read_in_fours() -> None:
    assert visible.digest_words("0123456789ab") == "0123 4567 89ab"
    assert visible.digest_words("01234") == "0123 4"
    assert visible.digest_words("") == ""
