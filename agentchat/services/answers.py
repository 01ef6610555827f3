"""Answers to an agent's questions, checked against what was asked."""

from __future__ import annotations

from typing import Any

from agentchat import conf
from agentchat.exceptions import Invalid
from agentchat.services import canonical, clean

Answers = dict[str, Any]


def checked(answers: Any, questions: list[dict[str, Any]]) -> Answers:
    """`{question id: {"choices": [labels], "text": free text}}`; a text or a list of labels stands for itself.

    Raises Invalid if a question is left open or a choice was not offered.
    """
    if not isinstance(answers, dict) or not answers:
        raise Invalid("An answer needs `answers`: an object with the id of each question.")
    if not questions:
        given = dict(clean.jsonable(answers))
        canonical.canonical(given)  # or it could not be sealed
        return given
    known = {str(question.get("id", number)): question for number, question in enumerate(questions)}
    if unknown := sorted(set(answers) - set(known)):
        raise Invalid(f"There is no question {unknown[0]!r} here. The questions are: {', '.join(known)}.")
    return {id: _one(answers.get(id), question) for id, question in known.items()}


def _one(given: Any, question: dict[str, Any]) -> Answers:
    if isinstance(given, str):
        given = {"text": given}
    elif isinstance(given, list):
        given = {"choices": given}
    if not isinstance(given, dict):
        raise Invalid(f"Answer every question; {question.get('question', 'one')!r} is open.")
    choices, text = given.get("choices") or [], given.get("text") or ""
    if not isinstance(choices, list) or not isinstance(text, str):
        raise Invalid("An answer is an object with `choices` (a list of labels) and `text`.")
    if not choices and not text.strip():
        raise Invalid(f"Answer every question; {question.get('question', 'one')!r} is open.")
    _offered(choices, question)
    if len(text) > conf.REASON_CHARS:
        raise Invalid(f"An answer has at most {conf.REASON_CHARS:,} characters.")
    return {"choices": choices, "text": clean.text(text)}


def _offered(choices: list[Any], question: dict[str, Any]) -> None:
    labels = [option.get("label") if isinstance(option, dict) else option for option in question.get("options") or []]
    for choice in choices:
        if choice not in labels:
            raise Invalid(f"{choice!r} was not offered. Choose one of: {', '.join(map(str, labels))}.")
    if len(choices) > 1 and not question.get("multiple"):
        raise Invalid(f"{question.get('question', 'This question')!r} takes one choice.")


def in_words(answers: Answers | None) -> str:
    """For the agent: one line per question."""
    lines = []
    for id, given in (answers or {}).items():
        if isinstance(given, dict):
            said = [*map(str, given.get("choices") or []), *filter(None, [given.get("text")])]
            lines.append(f"{id}: {', '.join(said)}")
        else:
            lines.append(f"{id}: {given}")
    return "\n".join(lines)
