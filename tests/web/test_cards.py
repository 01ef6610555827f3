"""A request as a card: what is asked, what can be done, and what became of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web import literal
from tests.web.literal import ME, Document, Wire, ask, output, question, request, resolution


def decided(status: str = "completed", action: str = "approve", cause: str = "person", **given: Any) -> Wire:
    return ask(status=status, resolution=resolution(action, cause, **given))


STATES: dict[str, tuple[Wire, str]] = {
    "pending": (ask(), "Allow once"),
    "recorded": (decided("in_progress", delivered=False), "You allowed this once. On its way to Claude Code."),
    "delivered": (decided("in_progress"), "Claude Code has it and runs it now."),
    "ran": (decided(), "You allowed this once."),
    "failed": (decided("failed"), "You allowed this once."),
    "rejected": (
        decided("rejected", "reject", reason="Use a branch."),
        "You denied this. It did not run. “Use a branch.”",
    ),
    "expired": (decided("rejected", "reject", "timeout"), "Nobody answered in time."),
    "stopped": (decided("rejected", "reject", "stopped"), "The run was stopped before this was decided."),
    "gone": (decided("rejected", "reject", "agent_gone"), "Claude Code is gone. Nobody waits for an answer."),
}


@pytest.mark.parametrize("state", STATES)
def test_every_state_is_drawn(state: str) -> None:
    item, sentence = STATES[state]
    shown = Document(literal.of_piece(item))
    assert shown.one("data-card")["data-state"] == state
    assert sentence in shown.text


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", ["command", "edit", "plan", "question", "something new"])
def test_every_kind_is_drawn_in_every_state(state: str, kind: str) -> None:
    item, _ = STATES[state]
    asked = request(kind, questions=[question()] if kind == "question" else [])
    shown = Document(literal.of_piece(item | {"request": asked}))
    assert shown.one("data-card")["data-state"] == state


def test_only_a_pending_card_can_be_decided() -> None:
    for state, (item, _) in STATES.items():
        shown = Document(literal.of_piece(item))
        assert bool(shown.all("data-does")) == (state == "pending")
        assert bool(shown.all("data-digest")) == (state == "pending")


def test_a_card_shows_the_command_the_folder_the_reason_and_until_when() -> None:
    asked = request(cwd="/srv/orders/api", reason="CI needs it.")
    item = ask(request=asked, arguments={"command": "git push --force"}, expires_at="2026-03-04T06:00:00Z")
    shown = Document(literal.of_piece(item))
    for words in (
        "git push --force",
        "/srv/orders/api",
        "CI needs it.",
        "Open until",
        "digest 9f3c a1e0",
        "Medium risk",
    ):
        assert words in shown.text
    assert shown.one("data-card")["data-digest"] == literal.DIGEST
    assert shown.one("data-copy")["data-copy"] == "git push --force"


@pytest.mark.parametrize("level", ["high", "destructive"])
def test_what_is_risky_takes_a_second_step_and_no_key(level: str) -> None:
    shown = Document(literal.of_piece(ask(request=request(level=level))))
    assert shown.all("data-careful")
    [allow] = shown.all("data-does", "approve")
    assert allow["class"] == "btn danger"
    assert shown.one("data-step-name", "sure").keys() >= {"hidden"}
    assert "Allow once 1" not in shown.text


def test_hidden_characters_are_shown_named_and_take_a_second_step() -> None:
    shown = Document(literal.of_piece(ask(arguments={"command": "echo \u202egol.ppa\u202c"})))
    assert shown.all("data-careful")
    assert "U+202E" in shown.text and "\u202e" not in shown.text
    assert "right-to-left override" in shown.text
    assert shown.one("data-copy")["data-copy"] == "echo \u202egol.ppa\u202c", "what is copied is exact"


def test_a_long_command_keeps_head_and_tail_in_sight_and_counts_the_rest() -> None:
    command = "\n".join(f"echo line-{number}" for number in range(60))
    shown = Document(literal.of_piece(ask(arguments={"command": command})))
    assert "Show all 60 lines" in shown.text and "38 lines not shown" in shown.text
    assert "line-0" in shown.text and "line-59" in shown.text


def test_what_was_decided_is_shown_to_its_end() -> None:
    command = "\n".join(f"echo {'x' * 60} line-{number}" for number in range(60))
    item = ask(status="rejected", resolution=resolution("reject"), arguments={"command": command})
    shown = Document(literal.of_piece(item))
    assert "38 lines not shown" in shown.text
    assert "line-59" in shown.text


def test_arguments_that_were_cut_on_the_wire_cannot_be_allowed_in_one_step() -> None:
    shown = Document(literal.of_piece(ask(arguments_bytes=200_000)))
    assert shown.all("data-careful")
    assert "read the rest" in shown.text
    assert not shown.all("data-edited")


def test_an_edited_command_keeps_its_other_arguments() -> None:
    shown = Document(literal.of_piece(ask(arguments={"command": "a\rb", "timeout": 5})))
    assert shown.one("data-edited")["data-arguments"] == '{"command": "a\\rb", "timeout": 5}'


def test_the_persons_own_version_is_shown_beside_what_was_asked() -> None:
    shown = Document(literal.of_piece(decided(arguments='{"command": "git push --dry-run"}')))
    assert "You allowed your own version once." in shown.text
    assert "Your version: git push --dry-run" in shown.text


def test_a_question_has_its_options_and_a_field() -> None:
    questions = [question(), question(id="r", question="How often?", multiple=True)]
    shown = Document(literal.of_piece(ask("question", request=request("question", risk=None, questions=questions))))
    assert [row["data-question"] for row in shown.all("data-question")] == ["q", "r"]
    assert [row["value"] for row in shown.all("type", "radio")] == ["red", "blue"]
    assert [row["value"] for row in shown.all("type", "checkbox")] == ["red", "blue"]
    assert len(shown.all("data-own")) == 2
    assert shown.one("data-does")["data-does"] == "answer"


def test_questions_without_an_id_go_by_their_number() -> None:
    questions = [{"question": "First?", "options": []}, {"question": "Second?", "options": []}]
    shown = Document(literal.of_piece(ask("question", request=request("question", questions=questions))))
    assert [row["data-question"] for row in shown.all("data-question")] == ["0", "1"]


def test_an_answer_is_shown_after_it_was_given() -> None:
    answers = {"q": {"choices": ["blue"], "text": "dark"}}
    item = ask("question", request=request("question", questions=[question()]), status="completed")
    item["resolution"] = resolution("answer", answers=answers)
    shown = Document(literal.of_piece(item))
    assert "You answered." in shown.text and "blue, dark" in shown.text


def test_somebody_elses_decision_names_them() -> None:
    shown = Document(literal.of_piece(decided(decided_by="kestrel")))
    assert "kestrel allowed this once." in shown.text


def test_who_came_second_is_told_so_and_who_repeats_is_not() -> None:
    late = literal.of_piece(decided(decided_by="kestrel"), tried="reject")
    assert "Your no came later and was not used." in late
    assert "came later" not in literal.of_piece(decided(), tried="approve")


def test_a_request_that_changed_meanwhile_says_so() -> None:
    assert "This changed while you looked." in literal.of_piece(ask(), stale=True)


def test_the_track_says_what_was_recorded_delivered_and_run() -> None:
    item = decided()
    shown = Document(literal.of_piece(item, output(item, "done\n", meta={"exit_code": 0, "seconds": 2.1})))
    assert "no. 8f21, recorded" in shown.text
    assert "ran, exit 0, 2.1 s" in shown.text
    assert [row["data-on"] for row in shown.all("data-on")] == ["1", "1", "ok"]


def test_what_the_mode_allowed_is_a_row_with_its_reason_and_no_card() -> None:
    shown = Document(literal.of_piece(decided(cause="mode")))
    assert not shown.all("data-card")
    assert "Allowed by the mode of this chat" in shown.text


def test_a_card_alone_links_to_its_chat() -> None:
    item = ask()
    shown = Document(literal.of_piece(item, alone=True))
    assert shown.all("href", f"/chats/{literal.CHAT}/#item-{item['id']}")


@pytest.mark.parametrize("count", [0, 1, 3])
def test_the_inbox_lists_what_waits_and_opens_the_longest_waiting(count: int) -> None:
    items = [ask(arguments={"command": f"echo {number}"}) for number in range(count)]
    shown = Document(literal.of_inbox(*items))
    assert len(shown.all("data-open-card")) == count
    assert [row["data-card"] for row in shown.all("data-card")] == [item["id"] for item in items[:1]]
    assert ("Nothing waits for you" in shown.text) == (count == 0)


def test_the_inbox_shows_what_was_settled_under_what_waits() -> None:
    waits, done = ask(), decided()
    shown = Document(literal.of_inbox(waits, decided=(done,), opened=done))
    assert shown.one("data-card")["data-card"] == done["id"]
    assert "You allowed this once." in shown.text
    assert len(shown.all("data-settled")) == 1


def test_the_page_of_one_person_calls_only_their_decision_theirs() -> None:
    first = literal.said()
    whole = literal.snapshot(first, literal.answer(first, decided(decided_by=ME)))
    assert "You allowed this once." in literal.of_chat(whole)
    assert f"{ME} allowed this once." in literal.of_chat(whole, me="kestrel")
