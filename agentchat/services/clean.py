"""What agents say, made fit for every database and every wire, before anything changes."""

from __future__ import annotations

import json
import re
from typing import Any

from agentchat import conf
from agentchat.exceptions import Invalid

_LONE = re.compile("[\ud800-\udfff]")
_PAIR = re.compile("([\ud800-\udbff])([\udc00-\udfff])")


class Joiner:
    """Joins characters that a stream cuts in two: a surrogate pair split over two deltas becomes one code point."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        piece = self._held + piece
        self._held = piece[-1:] if piece and "\ud800" <= piece[-1] <= "\udbff" else ""
        return text(piece[: len(piece) - len(self._held)])

    def rest(self) -> str:
        held, self._held = self._held, ""
        return text(held)


def require_text(value: Any) -> None:
    if not isinstance(value, str):
        raise Invalid(f"A text is expected, but this is {type(value).__name__}. Send a str.")


def text(value: str) -> str:
    """NUL becomes its picture, surrogate pairs join, lone surrogates become U+FFFD."""
    require_text(value)
    value = value.replace("\0", "␀")
    if value.isascii() or not _LONE.search(value):
        return value
    joined = _PAIR.sub(lambda pair: (pair[1] + pair[2]).encode("utf-16", "surrogatepass").decode("utf-16"), value)
    return _LONE.sub("\ufffd", joined)


def call_id(value: str) -> str:
    """Raises Invalid if it is empty or longer than conf.CALL_ID_CHARS."""
    cleaned = text(value)
    if not cleaned or len(cleaned) > conf.CALL_ID_CHARS:
        raise Invalid(f"A call id has 1 to {conf.CALL_ID_CHARS} characters, but this has {len(cleaned)}.")
    return cleaned


def name(value: str) -> str:
    cleaned = text(value)
    return cleaned if len(cleaned) <= conf.NAME_CHARS else cleaned[: conf.NAME_CHARS - 1] + "…"


def arguments(value: Any) -> str:
    """The exact JSON text: a str that is JSON already stays byte for byte, everything else is encoded.

    Raises Invalid if the value is not JSON or is too long: what a person decides on is never converted silently.
    """
    if isinstance(value, str) and _is_json(value):
        encoded = value
    else:
        encoded = _encode_exactly(value)
    encoded = _LONE.sub("\ufffd", encoded).replace("\0", "\\u0000")
    if len(encoded.encode()) > conf.ARGUMENTS_BYTES:
        raise Invalid(f"The arguments are longer than {conf.ARGUMENTS_BYTES:,} bytes. Put long data into a file.")
    return encoded


def _encode_exactly(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"The arguments are not JSON: {error}. Send objects, lists, texts, numbers.") from error


def _is_json(value: str) -> bool:
    try:
        json.loads(value)
    except (ValueError, RecursionError):
        return False
    return True


def result(value: Any) -> str:
    """A result as text: a str as it is, everything else as its JSON; what is not JSON by its repr."""
    cleaned = text(value) if isinstance(value, str) else json.dumps(jsonable(value), ensure_ascii=False)
    if len(cleaned) <= conf.RESULT_CHARS:
        return cleaned
    cut = len(cleaned) - conf.RESULT_CHARS
    return f"{cleaned[: conf.RESULT_CHARS]}\n[{cut:,} more characters were cut: a result has at most {conf.RESULT_CHARS:,}]"


def jsonable(value: Any, depth: int = 0) -> Any:
    """The same value as JSON can hold it, on every database: foreign objects by their repr."""
    if depth > 50:
        return "…"
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if isinstance(value, str):
        return text(value)
    if isinstance(value, dict):
        return {text(str(key)): jsonable(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(inner, depth + 1) for inner in value]
    return text(repr(value))
