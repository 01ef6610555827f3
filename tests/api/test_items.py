from __future__ import annotations

import json
from typing import Any

import pytest

from agentchat.events import ItemType
from agentchat.models import Message
from tests import made
from tests.api.conftest import Caller

TEXT = "0123456789<b>é</b>"
BYTES = TEXT.encode()


@pytest.fixture
def path(answer: Message) -> str:
    return f"/items/{made.item_in(answer, ItemType.OUTPUT, text=TEXT).pk}/text/"


def test_item_has_all_its_arguments(api: Caller, answer: Message) -> None:
    item = made.request_in(answer, {"text": "x" * 100_000})
    assert api.get(f"/items/{item.pk}/").json()["arguments"] == item.arguments
    assert json.loads(api.get(f"/approvals/{item.pk}/").json()["item"]["arguments"]) == {"text": "x" * 100_000}


def test_text_is_plain(api: Caller, path: str) -> None:
    answer = api.get(path, Accept="text/plain")
    assert (answer.status_code, answer.content) == (200, BYTES)
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Content-Disposition"] == "inline"
    assert answer["Accept-Ranges"] == "bytes"


def test_long_text_is_whole(api: Caller, answer: Message) -> None:
    text = "line\n" * 200_000
    item = made.item_in(answer, ItemType.OUTPUT, text=text)
    assert api.get(f"/items/{item.pk}/").json()["cut"]["omitted"] > 0
    assert api.get(f"/items/{item.pk}/text/").content.decode() == text


@pytest.mark.parametrize(
    ("wanted", "first", "last"),
    [
        ("bytes=0-3", 0, 3),
        ("bytes=4-", 4, len(BYTES) - 1),
        ("bytes=-5", len(BYTES) - 5, len(BYTES) - 1),
        ("bytes=-5000", 0, len(BYTES) - 1),
        ("bytes=2-999999", 2, len(BYTES) - 1),
        ("bytes=14-14", 14, 14),
    ],
)
def test_range(api: Caller, path: str, wanted: str, first: int, last: int) -> None:
    answer = api.get(path, Range=wanted)
    assert answer.status_code == 206
    assert answer.content == BYTES[first : last + 1]
    assert answer["Content-Range"] == f"bytes {first}-{last}/{len(BYTES)}"
    assert answer["Content-Length"] == str(last - first + 1)


@pytest.mark.parametrize("wanted", [f"bytes={len(BYTES)}-", "bytes=500-600", "bytes=-0"])
def test_range_that_is_not_there(api: Caller, path: str, wanted: str) -> None:
    answer = api.get(path, Range=wanted)
    assert (answer.status_code, answer.json()["code"]) == (416, "range_not_satisfiable")
    assert answer["Content-Range"] == f"bytes */{len(BYTES)}"


@pytest.mark.parametrize("wanted", ["lines=0-3", "bytes=3-1", "bytes=-", "bytes=0-1,3-4", "bytes=" + "9" * 5000 + "-"])
def test_range_that_is_not_read_gives_all(api: Caller, path: str, wanted: str) -> None:
    answer: Any = api.get(path, Range=wanted)
    assert (answer.status_code, answer.content) == (200, BYTES)


def test_range_of_another_version_gives_all(api: Caller, path: str) -> None:
    assert api.get(path, Range="bytes=0-3", If_Range='"x"').status_code == 200
