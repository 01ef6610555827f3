"""The rows of a change."""

from __future__ import annotations

import re
from html import unescape

from hypothesis import given, settings
from hypothesis import strategies as st

from agentchat.rendering import diff
from agentchat.rendering.diff import Row

BEFORE = "".join(f"line {number}\n" for number in range(1, 21))


def shown(rows: list[Row]) -> list[tuple[str, int, str]]:
    return [(row.kind, row.number, row.text) for row in rows]


def test_a_changed_line_with_its_surroundings() -> None:
    after = BEFORE.replace("line 10\n", "line ten\n")
    rows = diff.unified(BEFORE, after, "a.py", context=1)
    assert shown(rows) == [
        ("c", 9, "line 9"),
        ("d", 10, "line 10"),
        ("a", 10, "line ten"),
        ("c", 11, "line 11"),
    ]
    assert len(diff.unified(BEFORE, after, "a.py")) == 8


def test_changed_words_are_marked() -> None:
    html = diff.html(diff.unified("return one + two\n", "return one - two\n", "a.py"))
    assert '<tr class="d"><td>1</td><td>return one <mark>+</mark> two</td></tr>' in html
    assert '<tr class="a"><td>1</td><td>return one <mark>-</mark> two</td></tr>' in html


def test_lines_without_anything_in_common_are_not_marked() -> None:
    assert "<mark>" not in diff.html(diff.unified("alpha beta gamma\n", "1 2 3 4 5 6 7 8\n", "a"))


def test_new_gone_and_equal_files() -> None:
    assert shown(diff.unified("", "a\nb", "x")) == [("a", 1, "a"), ("a", 2, "b")]
    assert shown(diff.unified("a\nb\n", "", "x")) == [("d", 1, "a"), ("d", 2, "b")]
    assert diff.unified(BEFORE, BEFORE, "x") == []
    assert diff.html([]) == ""


def test_context_is_not_coloured() -> None:
    html = diff.html(diff.unified("a\nb\n", "a\nc\n", "x"))
    assert "<tr><td>1</td><td>a</td></tr>" in html


def test_everything_is_escaped_and_nothing_hides() -> None:
    html = diff.html(diff.unified("<b>\n", "<script>\u202e\r\n", '"><script>'))
    assert "<script" not in html and "<b>" not in html
    assert "U+202E" in html and "U+000D" in html


def test_very_long_files_are_not_compared() -> None:
    many = "x\n" * diff.MOST_LINES
    assert len(diff.unified(many, many + "y\n", "x")) == 2 * diff.MOST_LINES + 1


def test_more_than_one_changed_word() -> None:
    [was, now] = diff.unified("a b c d e f", "a b X d Y f", "x")
    assert was.spans == (("a b ", False), ("c d e", True), (" f", False))
    assert now.spans == (("a b ", False), ("X d Y", True), (" f", False))
    [was, now] = diff.unified("a b", "a b b", "x")
    assert (was.text, now.spans) == ("a b", (("a b", False), (" b", True)))


lines = st.lists(st.sampled_from(["a", "b b", "b c", "", " ", "<", "\u202e", "x = 1"]), max_size=12).map(
    lambda some: "".join(f"{line}\n" for line in some)
)


@settings(max_examples=200, deadline=None)
@given(lines, lines)
def test_rows_are_both_files(before: str, after: str) -> None:
    rows = diff.unified(before, after, "x", context=100)
    if before == after:
        assert rows == []
        return
    assert "".join(f"{row.text}\n" for row in rows if row.kind != "a") == before
    assert "".join(f"{row.text}\n" for row in rows if row.kind != "d") == after
    assert [row.number for row in rows if row.kind != "d"] == list(range(1, after.count("\n") + 1))
    cells = re.findall(r"<td>\d+</td><td>(.*?)</td>", diff.html(rows))
    texts = (unescape(re.sub(r"</?mark>|<span[^>]*>|</span>", "", cell)) for cell in cells)
    plain = [text.replace("U+202E", "\u202e") for text in texts]
    assert plain == [row.text for row in rows]
