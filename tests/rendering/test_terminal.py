"""What a terminal would show of its raw text."""

from __future__ import annotations

import re
from html import unescape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentchat.rendering import terminal

raw = st.lists(
    st.sampled_from(
        ["a", "word", " ", "\n", "\r", "\r\n", "\b", "\t", "\x1b", "\x1b[", "\x1b[31m", "\x1b[1;92m", "\x1b[0m",
         "\x1b[K", "\x1b[2K", "\x1b]0;t\x07", "\x1b]8;;x\x1b\\",
         "\x9b1m", "38;5;1m", "<b>", "&", '"', "\x07", "é", "日"]
    ),
    max_size=40,
).map("".join)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("a\nb\n", "a\nb\n"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("long text\rshort", "shorttext"),
        ("long text\r\x1b[Kshort", "short"),
        ("long text\x1b[2K\rshort", "short"),
        ("long text\x1b[2Kshort", "short"),
        ("abc\b\bX", "aXc"),
        ("\b\b\ba", "a"),
        ("a\n\bb", "a\nb"),
        ("abc\r\x1b[0Kd\n\x1b[Ke", "d\ne"),
        ("abc\x1b[1Kd", "abcd"),
        ("\x1b[31mred\x1b[0m \x1b[1;38;5;208mx\x1b[m", "red x"),
        ("a\x1b[2J\x1b[H\x1b[?25lb\x1b[12;40Hc", "abc"),
        ("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\b", "alinkb"),
        ("a\x1b]0;never closed", "a"),
        ("a\x1b[3", "a"),
        ("a\x1b", "a"),
        ("a\x1b(Bb\x1b=c\x1b7d", "abcd"),
        ("\x1bPq#0;2~\x1b\\a\x1b_x\x1b\\b\x1b^y\x1b\\c", "abc"),
        ("\x9b31ma\x9b0m", "a"),
        ("a\x00\x07\x0b\x0c\x0e\x7f\x85b", "ab"),
        ("tab\there", "tab\there"),
        ("日本\r語", "語本"),
    ],
)
def test_plain(text: str, shown: str) -> None:
    assert terminal.plain(text) == shown


@pytest.mark.parametrize("ending", ["\r", "\r\n", "\n"])
def test_frames_of_progress_collapse_to_the_last(ending: str) -> None:
    frames = "\r".join(f"\x1b[32m{number:4} of 2000\x1b[0m" for number in range(1, 2_001))
    shown = terminal.plain(f"start\n{frames}{ending}")
    assert shown == "start\n2000 of 2000" + ("" if ending == "\r" else "\n")
    assert terminal.html(f"{frames}{ending}").count("of 2000") == 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", '<span class="sgr-31 r">red</span>'),
        ("\x1b[92mgreen\x1b[39m plain", '<span class="sgr-92 g">green</span> plain'),
        ("\x1b[34mblue", '<span class="sgr-34">blue</span>'),
        ("\x1b[1mbold\x1b[22m", '<span class="sgr-1">bold</span>'),
        ("\x1b[1;33mx\x1b[m y", '<span class="sgr-1 sgr-33 y">x</span> y'),
        ("\x1b[31ma\nb\x1b[0m\nc", '<span class="sgr-31 r">a</span>\n<span class="sgr-31 r">b</span>\nc'),
        ("\x1b[31ma\x1b[32mb", '<span class="sgr-31 r">a</span><span class="sgr-32 g">b</span>'),
        ("\x1b[31mab\r\x1b[0mc", 'c<span class="sgr-31 r">b</span>'),
        ("\x1b[38;5;1mpalette\x1b[48;2;1;31;1;31mthen", 'palette<span class="sgr-31 r">then</span>'),
        ("\x1b[3;4;7;41;999999999999999mdropped", "dropped"),
        ("\x1b[?31mno colour", "no colour"),
        ("\x1b[031m\x1b[;31mx\x1b[00my", '<span class="sgr-31 r">x</span>y'),
        ("<b>&\x1b[31m<script>", '&lt;b&gt;&amp;<span class="sgr-31 r">&lt;script&gt;</span>'),
    ],
)
def test_html(text: str, shown: str) -> None:
    assert terminal.html(text) == shown


@settings(max_examples=300, deadline=None)
@given(raw)
def test_html_and_plain_show_the_same(text: str) -> None:
    html = terminal.html(text)
    assert unescape(re.sub(r"</?span[^<>]*>", "", html)) == terminal.plain(text)
    assert set(re.findall(r"<[^>]*>", html)) <= {"</span>", *re.findall(r'<span class="[a-z0-9 -]+">', html)}


@settings(max_examples=300, deadline=None)
@given(st.one_of(raw, st.text(max_size=60)))
def test_nothing_of_a_terminals_language_is_left(text: str) -> None:
    shown = terminal.plain(text)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown)
    assert shown.count("\n") == text.count("\n")
    assert len(shown) <= len(text)
    assert terminal.plain(shown) == shown


class Steps(list[terminal.Cell]):
    """A line that counts the cells it is asked to move."""

    moved = 0

    def __setitem__(self, where: object, cells: object) -> None:
        assert isinstance(where, slice) and isinstance(cells, list)
        Steps.moved += len(cells) + len(self[where])
        super().__setitem__(where, cells)

    def __delitem__(self, where: object) -> None:
        assert isinstance(where, slice)
        Steps.moved += len(self[where])
        super().__delitem__(where)


@pytest.mark.parametrize(
    "text",
    [
        "frame 1\r" * 5_000,
        "x" * 9_000 + "\b" * 9_000,
        ("abc\x1b[2K" * 5_000),
        "a" * 9_000 + "\x1b[K\bz" * 5_000,
    ],
)
def test_the_work_is_linear(text: str) -> None:
    Steps.moved = 0
    line = terminal._Line(terminal.PLAIN)
    line.cells = Steps()
    line.write(text)
    assert 0 < Steps.moved <= 3 * len(text)
