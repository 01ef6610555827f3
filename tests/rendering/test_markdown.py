"""Markdown as people meet it: hostile text that comes in pieces, and streams that break off and go on elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentchat.rendering import markup
from agentchat.rendering.markdown import BUDGET, Block, MarkdownStream, render
from tests.rendering.test_markdown_html import ATTACKS, assert_harmless
from tests.rendering.test_markdown_stream import FRAGMENTS, GROWING, NASTY

pieces = st.lists(st.sampled_from([*FRAGMENTS, *ATTACKS]), max_size=30)
sources = st.one_of(
    pieces.map("".join),
    st.sampled_from(sorted(NASTY.values())),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=80),
)


def split(text: str, sizes: list[int]) -> list[str]:
    """In pieces of these sizes, over and over; empty ones too."""
    found, start, turn = [], 0, 0
    while start < len(text):
        size = sizes[turn % len(sizes)] if sizes else len(text)
        turn += 1
        if size == 0 and turn > 3 * len(text):
            size = 1
        found.append(text[start : start + size])
        start += size
    return found


def fed(chunks: list[str]) -> list[Block]:
    made = MarkdownStream()
    return [block for chunk in chunks for block in made.feed(chunk)] + made.finish()


def html(blocks: list[Block]) -> str:
    return "".join(block.html for block in blocks)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(sources, st.lists(st.integers(0, 9), max_size=6))
def test_pieces_give_what_the_whole_gives(text: str, sizes: list[int]) -> None:
    blocks = fed(split(text, sizes))
    assert html(blocks) == render(text)
    ends = [block.end for block in blocks]
    assert all(before < after for before, after in pairwise([0, *ends])), "each block covers more, and comes once"
    assert not ends or ends[-1] <= len(text)
    assert all(block.html for block in blocks)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(sources, st.lists(st.integers(0, 9), max_size=6))
def test_every_block_on_its_own_is_what_its_piece_of_the_source_gives(text: str, sizes: list[int]) -> None:
    """So a block may be cached, sent and put in its place without its neighbours."""
    start = 0
    for block in fed(split(text, sizes)):
        assert render(text[start : block.end]) == block.html
        start = block.end


@settings(max_examples=150, deadline=None, derandomize=True)
@given(sources, st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_a_stream_that_breaks_off_after_every_piece_goes_on_without_a_seam(text: str, sizes: list[int]) -> None:
    """As after a crash: only the blocks and their end are known, and the source from there is read again."""
    blocks: list[Block] = []
    came = 0
    for piece in split(text, sizes):
        came += len(piece)
        done = blocks[-1].end if blocks else 0
        blocks += MarkdownStream(done).feed(text[done:came])
    done = blocks[-1].end if blocks else 0
    last = MarkdownStream(done)
    blocks += last.feed(text[done:]) + last.finish()
    assert html(blocks) == render(text)
    assert all(before.end < after.end for before, after in pairwise(blocks))


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_in_single_characters_is_harmless(attack: str) -> None:
    for text in (attack, f"- a\n\n{attack}\n\n# b\n", f"> {attack}\n\n```\n{attack}"):
        blocks = fed(list(text))
        assert_harmless(html(blocks))
        for block in blocks:
            assert_harmless(block.html)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(pieces.map("".join), st.lists(st.integers(1, 9), max_size=6))
def test_hostile_pieces_are_harmless_block_by_block(text: str, sizes: list[int]) -> None:
    for block in fed(split(text, sizes)):
        assert_harmless(block.html)


VECTORS = {
    "script": ["<script>x</script>", "<ScRiPt src=//e.example>", "<scr<script>ipt>x", "</p><script>x</script>"],
    "javascript:": ["[a](javascript:x)", "[a](\tjavascript:x)", "[a](javascript&colon;x)", "<javascript:x>"],
    "data:": ["[a](data:text/html;base64,PHNjcmlwdD4=)", "![a](data:image/svg+xml,<svg onload=x>)"],
    "onerror": ["<img src=q onerror=x>", "<img src=q ONERROR=x>", '[a](https://a.b "onerror=x")', "<img/onerror=x>"],
    "svg": ["<svg onload=x>", "<svg><script>x</script></svg>", "<svg><a xlink:href=javascript:x>", "<math><svg>"],
    "style": ["<p style='background:url(//e)'>", "<style>@import '//e'</style>", '<b style="x">', "*a*{style=x}"],
}


@pytest.mark.parametrize("kind", VECTORS)
@pytest.mark.parametrize(
    "frame", ["{}", "| {} |\n|---|\n| {} |", "1. {}\n   {}", "**{}** `{}`", "# {}", "```\n{}\n```", "``` {}\nx"]
)
def test_vectors_are_text(kind: str, frame: str) -> None:
    for vector in VECTORS[kind]:
        made = render(frame.replace("{}", vector))
        assert_harmless(made)
        tags = re.findall(r"<[^>]*>", made)
        assert not re.search(
            r"<(script|svg|style|img|iframe|math)\b|\son\w+=|\sstyle=|=\"(javascript|data):", "".join(tags), re.I
        )


def counting(counted: list[int], parse: Callable[..., Any]) -> Callable[..., Any]:
    def called(text: str, *arguments: Any) -> Any:
        counted.append(len(text))
        return parse(text, *arguments)

    return called


@pytest.mark.parametrize("size", [1, 7, 100, 5_000])
@pytest.mark.parametrize("kind", GROWING)
def test_the_parser_reads_each_character_a_bounded_number_of_times(
    kind: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice the text costs twice the work, however it is cut."""
    text = GROWING[kind][:16_000]
    work = []
    for part in (text[: len(text) // 2], text):
        counted: list[int] = []
        with monkeypatch.context() as patched:
            patched.setattr(markup, "blocks", counting(counted, markup.blocks))
            fed(split(part, [size]))
        assert len(part) <= sum(counted) <= (BUDGET + 4) * len(part)
        work.append(sum(counted))
    assert work[1] <= 3 * work[0] + 4 * len(text)
