"""Reading a script: JSON Lines, one step a line, checked as a whole before anything is played."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

REPEATS = 100_000
LONGEST = 33_554_432
DEPTH = 20
Step = dict[str, Any]
Check = Callable[[Any], str]
"""Says what a value must be, or nothing if it is that."""


class ScriptError(Exception):
    """The script cannot be played, or says that it ends with an error."""


def _of(types: type | tuple[type, ...], words: str) -> Check:
    def check(value: Any) -> str:
        right = isinstance(value, types) and (types is bool or not isinstance(value, bool))
        return "" if right else words

    return check


def _between(least: float, most: float, whole: bool = False) -> Check:
    def check(value: Any) -> str:
        right = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
        words = f"{'a whole number' if whole else 'a number'} from {least:g} to {most:,.0f}"
        return "" if right and least <= value <= most else words

    return check


def _anything(value: Any) -> str:
    return ""


def _true(value: Any) -> str:
    return "" if value is True else "true"


def _file(value: Any) -> str:
    right = isinstance(value, str) and value not in ("", ".", "..") and not set(value) & {"/", "\0"}
    return "" if right else "the name of a file, without a folder"


def _objects(*needed: str) -> Check:
    def check(value: Any) -> str:
        right = isinstance(value, list) and value and all(isinstance(entry, dict) for entry in value)
        if right and all(set(needed) <= set(entry) for entry in value):
            return ""
        return f"a list of one or more objects with {', '.join(needed)}"

    return check


TEXT, FLAG = _of(str, "a text"), _of(bool, "true or false")
OBJECT, SECONDS = _of(dict, "an object"), _between(0, 86_400)
STREAMED = {"chunk": _between(1, LONGEST, whole=True), "every": SECONDS}


@dataclass(frozen=True, slots=True)
class Shape:
    """What a kind of step looks like. `fields` are those of its value; with `?` they may be left out."""

    check: Check
    fields: dict[str, Check] = field(default_factory=dict)
    options: dict[str, Check] = field(default_factory=dict)
    steps: tuple[str, ...] = ()
    """Options that hold steps."""


CALL = {"id": TEXT, "name": TEXT, "arguments?": _anything, "result?": _anything, "native?": _anything}
SHAPES: dict[str, Shape] = {
    "text": Shape(TEXT, options=STREAMED),
    "reasoning": Shape(TEXT, options=STREAMED),
    "tool": Shape(OBJECT, {**CALL, "done?": FLAG, "failed?": FLAG, "meta?": OBJECT, "parent?": TEXT}),
    "output": Shape(OBJECT, {"id": TEXT, "text": TEXT}, STREAMED),
    "approve": Shape(
        OBJECT,
        {"id?": TEXT, "name": TEXT, "arguments": _anything, "request?": OBJECT, "timeout?": SECONDS},
        steps=("then", "else"),
    ),
    "ask": Shape(OBJECT, {"id?": TEXT, "questions": _objects("id", "question"), "timeout?": SECONDS}),
    "parallel": Shape(_of(list, "a list of lists of steps")),
    "delay": Shape(SECONDS),
    "notice": Shape(TEXT, options={"level": TEXT}),
    "plan": Shape(_objects("step", "state")),
    "usage": Shape(OBJECT),
    "error": Shape(TEXT),
    "counter": Shape(_file),
    "repeat": Shape(_between(0, REPEATS, whole=True), steps=("steps",)),
    "state": Shape(OBJECT),
    "bytes": Shape(OBJECT, {"id": TEXT, "name": TEXT, "count": _between(0, LONGEST, whole=True)}),
    "hang": Shape(_true),
    "unresumable": Shape(_true),
    "flush": Shape(OBJECT, {"done?": FLAG, "force?": FLAG, "persist?": FLAG}),
}


def parse(text: str) -> list[Step]:
    """All steps of a script. Raises ScriptError, which names the line."""
    found: list[Step] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            found.append(_checked(_read(line, number), f"Line {number}", 0))
    return found


def kind(step: Step) -> str:
    return next(key for key in step if key in SHAPES)


def _read(line: str, number: int) -> Any:
    try:
        return json.loads(line)
    except RecursionError:
        raise ScriptError(f"Line {number} is nested too deeply. Nest at most {DEPTH} steps.") from None
    except ValueError as error:
        raise ScriptError(f"Line {number} is not JSON: {error}. Write one object on each line.") from None


def _checked(step: Any, where: str, depth: int) -> Step:
    if not isinstance(step, dict):
        raise ScriptError(f'{where} is not an object. Write a step, such as {{"text": "Hello"}}.')
    if depth > DEPTH:
        raise ScriptError(f"{where} is nested too deeply. Nest at most {DEPTH} steps.")
    kinds = [key for key in step if key in SHAPES]
    if len(kinds) != 1:
        found = ", ".join(kinds or step) or "nothing"
        many = f"has {len(kinds)} of them: {found}" if kinds else f"has none, only {found}"
        allowed = ", ".join(SHAPES)
        raise ScriptError(f"{where} must have exactly one step, but {many}. The steps are: {allowed}.")
    _value(step, kinds[0], where)
    _nested(step, kinds[0], where, depth)
    return step


def _value(step: Step, name: str, where: str) -> None:
    shape, value = SHAPES[name], step[name]
    _must(shape.check(value), f'{where}: "{name}"')
    if shape.fields:
        _fields(value, shape.fields, f'{where}: "{name}"')
    options = {f"{key}?": check for key, check in shape.options.items()}
    options |= dict.fromkeys((f"{key}?" for key in shape.steps), _of(list, "a list of steps"))
    _fields({key: step[key] for key in step if key != name}, options, f'{where}: a step "{name}"')


def _fields(values: dict[str, Any], known: dict[str, Check], where: str) -> None:
    checks = {name.removesuffix("?"): check for name, check in known.items()}
    for key, value in values.items():
        if key not in checks:
            allowed = f"It may have: {', '.join(checks)}." if checks else "It has no options."
            raise ScriptError(f'{where} has an unknown "{key}". {allowed}')
        _must(checks[key](value), f'{where}: "{key}"')
    for name in known:
        if not name.endswith("?") and name not in values:
            raise ScriptError(f'{where} lacks "{name}". Add it.')


def _must(wrong: str, where: str) -> None:
    if wrong:
        raise ScriptError(f"{where} must be {wrong}.")


def _nested(step: Step, name: str, where: str, depth: int) -> None:
    """Check the steps within a step."""
    if name == "repeat" and "steps" not in step:
        raise ScriptError(f'{where}: a step "repeat" lacks "steps". Add a list of steps.')
    lists = [(key, step[key]) for key in SHAPES[name].steps if key in step]
    if name == "parallel":
        lists = [(f"branch {number}", branch) for number, branch in enumerate(step[name], 1)]
    for label, inner in lists:
        if not isinstance(inner, list):
            raise ScriptError(f"{where}: {label} must be a list of steps.")
        for number, entry in enumerate(inner, 1):
            _checked(entry, f"{where}, {label}, step {number}", depth + 1)
