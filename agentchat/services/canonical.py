"""The digest that binds a decision to the exact bytes: SHA-256 of the canonical JSON of RFC 8785."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import rfc8785

from agentchat.exceptions import Invalid


def digest(arguments: str) -> str:
    """Of a JSON text. Two texts have the same digest if they mean the same.

    Raises Invalid if RFC 8785 cannot express it (an integer beyond 2^53, a number that is no double).
    """
    return hashlib.sha256(canonical(parse(arguments))).hexdigest()


def canonical(value: Any) -> bytes:
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, RecursionError) as error:
        raise Invalid(f"These arguments have no canonical form: {error}. Send large numbers as texts.") from error


def parse(arguments: str) -> Any:
    """Raises Invalid for what is not JSON, and for an object that names a key twice: readers differ on which one counts."""
    try:
        return json.loads(arguments, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise Invalid(f"The arguments are not JSON: {error}.") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("an object names the same key twice")
    return made
