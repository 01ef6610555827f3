"""Long text keeps its head and its tail."""

from __future__ import annotations

import pytest

from agentchat.rendering.cut import HEAD, SLACK, TAIL, cut

WHOLE = HEAD + TAIL + SLACK


def test_sizes() -> None:
    assert (HEAD, TAIL, SLACK) == (8_000, 8_000, 1_000)


@pytest.mark.parametrize("length", [0, 1, HEAD + TAIL, WHOLE - 1, WHOLE])
def test_what_is_not_much_longer_stays_whole(length: int) -> None:
    assert cut("x" * length) == ("x" * length, 0)


@pytest.mark.parametrize("length", [WHOLE + 1, 100_000])
def test_the_middle_is_left_out_and_counted(length: int) -> None:
    text = "".join(chr(0x1F300 + number % 500) for number in range(length))
    shown, omitted = cut(text)
    assert shown == text[:HEAD] + text[-TAIL:]
    assert len(shown) + omitted == length
