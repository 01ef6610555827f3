"""However the text comes in, the same blocks come out, each once, and parsing stays cheap."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it.token import Token

from agentchat.rendering import markup
from agentchat.rendering.markdown import BUDGET, Block, MarkdownStream, render

FRAGMENTS = [
    "word", "two words", " ", "  ", "    ", "\t", "\n", "\n", "\n\n", "\n\n\n", "\r", "\r\n", "\r\r\n", "- ", "-",
    "* item", "+ ", "1. one", "2. two", "2) ", "10. ", "> ", ">", "> > quote", "# ", "## head", "###### deep #",
    "---", "***", "===", "=", "- - -", "```", "```python\n", "````", "~~~", "~~~ sh\n", "`code`", "`", "``",
    "| a | b |", "|---|---|", "|--|:-:|-:|\n", "a | b\n", "|", "    code\n", "\tcode\n", "   - three", "     five",
    "*em*", "**", "_", "~~gone~~", "[x](http://a.b)", "[x]", "[x]: http://a.b\n", "![p](https://a.b/c.png)", "<b>",
    "<!-- ", "-->", "<script>", "&amp;", "&#x202e;", "\\", "\\\n", "  \n", "é", "\u202e", "\u2028", "\x0c", "\x0b",
    "\x85", "\ufeff", "𝒳", "- a\n", "- a\n\n", "  b\n", "1. a\n\n", "> a\n", "lazy\n",
]  # fmt: skip
NASTY = {
    "tight list made loose later": "- a\n- b\n\n- c\n\ntext",
    "list going on after empty lines": "1. a\n\n\n2. b\n\n\n   more\n3. c\nend",
    "another kind of list": "- a\n- b\n* c\n1. d\n2) e",
    "nested list": "- a\n  - b\n\n    c\n\n  d\n- e\n\n      code\n\nf",
    "empty items": "-\n-\n\n  a\n- b\n\n\n-\n",
    "setext after many lines": "a\nb\nc\n===\nd\n---\ne\n\n===\n",
    "lazy continuation": "> a\nb\nc\n> d\n\ne\n> f\n---\n",
    "quotes with an empty line between": "> a\n\n> b\n>\n> c\n",
    "table begun late": "text\na | b\n--|--\n1 | 2\nno pipe\n\n3 | 4\n",
    "table that is a heading": "a | b\n---\nc",
    "fence never closed": "text\n\n```py\nx = 1\n\n\ny",
    "fence closed by a longer one": "~~~~\na\n~~~\nb\n~~~~~\nc\n",
    "fence in a list": "- ```\n  a\n\n  b\n  ```\n- c\n\n```\nd\n",
    "fence with empty lines at the end": "```\na\n\n\n",
    "indented code with empty lines": "    a\n\n\n    b\n  \n\tc\n\nd\n",
    "indented code after a list": "- a\n\n    b\n\n\n    c\nd\n\n        e\n",
    "definition at the end": "[x]\n\ntext\n\n[x]: http://a.b\n",
    "carriage returns": "a\r\rb\r\n\r\nc\n\r\nd\r",
    "carriage returns after finished blocks": "# a\r\n***\r\n```\r\nb\r\n```\r\nc\r\n\r\nd",
    "only empty": "\n \n\t\n\r\n",
    "too deep list": "- a\n\ntext\n\n" + "- " * 30 + "deep\n\nmore\n\n# and more\n",
    "too deep quote": ">" * 60 + " deep\n\n\n\nmore\n",
    "front of empty lines": "\n\n\n    a\n",
    "html is text": "<div>\n\n*a*\n\n</div>\n<!-- a\n\nb -->\n",
    "ends in a space": "- a\n   ",
}


def stream(chunks: Iterable[str], done: int = 0) -> list[Block]:
    made = MarkdownStream(done)
    return [block for chunk in chunks for block in made.feed(chunk)] + made.finish()


def cuts(text: str, places: Iterable[int]) -> list[str]:
    edges = [0, *sorted({place % (len(text) + 1) for place in places}), len(text)]
    return [text[start:end] for start, end in pairwise(edges)]


def joined(blocks: Iterable[Block]) -> str:
    return "".join(block.html for block in blocks)


def check(text: str, chunks: list[str]) -> None:
    assert "".join(chunks) == text
    blocks = stream(chunks)
    assert joined(blocks) == render(text)
    ends = [block.end for block in blocks]
    assert ends == sorted(set(ends))
    assert all(0 < end <= len(text) and text[end - 1 : end + 1] != "\r\n" for end in ends)
    assert not text[ends[-1] if ends else 0 :].strip(" \t\r\n"), "what is not covered shows nothing"


texts = st.one_of(
    st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join),
    st.text(alphabet="ab \n\t\r-*>`~#|=1.[]()<!&\\_:", max_size=80),
    st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=60),
)


@settings(max_examples=300, deadline=None)
@given(texts, st.lists(st.integers(0, 500), max_size=20))
@example("a\r\n\r\nb", [2, 4])
@example("- a\n\n  b", [3, 4, 5])
def test_any_chunking_gives_the_same_as_one_shot(text: str, places: list[int]) -> None:
    check(text, cuts(text, places))
    check(text, list(text))


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY.keys())
def test_nasty_texts_in_every_two_and_in_single_characters(text: str) -> None:
    check(text, list(text))
    check(text, re.findall(r"[^\n]*\n|[^\n]+", text))
    for place in range(len(text)):
        check(text, [text[:place], text[place:]])


def whole(text: str) -> list[str]:
    """The HTML of the top-level blocks of all the text, parsed once."""
    blocks: list[list[Token]] = []
    for token in markup.blocks(text if text.endswith(("\n", "\r")) else f"{text}\n"):
        if token.level == 0 and token.nesting >= 0:
            blocks.append([])
        blocks[-1].append(token)
    return [markup.html(tokens, "") for tokens in blocks]


@settings(max_examples=300, deadline=None)
@given(texts)
def test_blocks_are_those_of_the_parser(text: str) -> None:
    """One shot is itself a stream, so it must agree with somebody who is not."""
    made = MarkdownStream()
    assert [block.html for block in made.feed(text) + made.finish()] == whole(text)
    assert [block.html for block in stream(text)] == whole(text)


@settings(max_examples=150, deadline=None)
@given(texts, st.integers(0, 200))
def test_a_new_stream_goes_on_where_another_stopped(text: str, place: int) -> None:
    place %= len(text) + 1
    first = MarkdownStream()
    before = first.feed(text[:place])
    done = before[-1].end if before else 0
    after = stream(text[done:], done)
    assert joined(before + after) == render(text)
    assert [block.end for block in before + after] == sorted({block.end for block in before + after})


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("para\n\n", "<p>para</p>\n"),
        ("# head\n", "<h3>head</h3>\n"),
        ("head\n---\n", "<h3>head</h3>\n"),
        ("***\n", "<hr>\n"),
        ("```\na\n```\n", '<figure class="code">'),
        ("~~~~ sh\n~~~\n  ~~~~~ \n", '<figure class="code">'),
        ("| a |\n|---|\n| b |\n\n", '<div class="table"'),
        ("> a\n\n", "<blockquote>"),
        ("- a\n\ntext\n", "<ul>"),
    ],
)
def test_a_finished_block_does_not_wait(text: str, shown: str) -> None:
    made = MarkdownStream()
    assert joined(block for char in text for block in made.feed(char)).startswith(shown)


def test_a_long_block_does_not_wait_either() -> None:
    code = "```py\n" + "x = 1\n\n" * 5_000
    for text in (code + "```\n\n", "- item\n" * 5_000 + "\ntext\n", "word " * 20_000 + "\n\n"):
        made = MarkdownStream()
        assert sum(len(made.feed(line)) for line in text.splitlines(keepends=True)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "- a\n\n",
        "    code\n\n",
        "```\na\n\n",
        "```\n    ```\n",
        "````\n```\n",
        "```\n",
        "1. a\n\n   b\n",
        "para\n",
        "> a\n",
    ],
)
def test_what_may_still_change_waits(text: str) -> None:
    assert MarkdownStream().feed(text) == []


GROWING = {
    "one paragraph": "word word\n" * 4_000,
    "one list": "- item\n" * 3_000,
    "loose list": "- item\n\n" * 2_000,
    "list that seems to end": ("- item\n\n" + "1. item\n\n") * 1_000,
    "open fence": "```\n" + "text\n\n" * 6_000,
    "fence full of other fences": "````\n" + "```\n" * 10_000,
    "fence in a list that seems to close": "- ````\n" + "\n```\n" * 8_000,
    "code": "    a\n\n" * 6_000,
    "quote": "> a\n>\n" * 2_500,
    "table": "|a|\n|-|\n" + "|b|\n" * 4_000,
    "short lines": "a\n" * 8_000,
    "paragraphs": "a paragraph of some length\n\n" * 1_500,
    "short lines in short paragraphs": ("a\n" * 900 + "\n") * 8,
    "one long line": "word " * 8_000,
}


def noting(noted: list[str], call: Callable[..., Any], at: int = 0) -> Callable[..., Any]:
    """The same function; one of its arguments is noted."""

    def called(*arguments: Any) -> Any:
        noted.append(arguments[at])
        return call(*arguments)

    return called


@pytest.mark.parametrize("text", GROWING.values(), ids=GROWING.keys())
def test_parsing_is_near_linear(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    monkeypatch.setattr(markup, "blocks", noting(parsed, markup.blocks))
    stream(text[at : at + 3] for at in range(0, len(text), 3))
    assert len(text) <= sum(map(len, parsed)) <= (BUDGET + 4) * len(text)


def test_one_shot_parses_at_most_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    monkeypatch.setattr(markup, "blocks", noting(parsed, markup.blocks))
    text = "a\n\n" * 1_000 + "```\nopen\n" * 3
    render(text)
    assert len(text) <= sum(map(len, parsed)) <= 2 * len(text) + 2


def test_each_block_is_rendered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sources: list[str] = []
    monkeypatch.setattr(markup, "html", noting(sources, markup.html, at=1))
    stream("one\n\n- two\n- two\n\nthree\n\n```\nfour\n```\n")
    assert [source.split()[0] for source in sources] == ["one", "-", "three", "```"]
