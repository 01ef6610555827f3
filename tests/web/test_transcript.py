"""A chat as it stands on the page, and what its script reads there."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.web import literal
from tests.web.literal import Document, answer, ask, call, item, output, said, snapshot, talk, text

ENDS = {
    "completed": "Done in 12 s",
    "failed": "Ended with an error",
    "cancelled": "Stopped after 12 s",
    "interrupted": "Interrupted",
}


def test_a_chat_without_messages_is_drawn() -> None:
    shown = Document(literal.of_chat(snapshot()))
    assert "Flaky checkout test" in shown.text
    assert not shown.all("data-turn")


def test_the_page_tells_its_script_where_it_is() -> None:
    whole = talk(text("Hello"))
    body = Document(literal.of_chat(whole)).one("data-chat")
    assert (body["data-chat"], body["data-cursor"], body["data-agent"]) == (literal.CHAT, "41", "Claude Code")


def test_a_turn_has_what_was_said_and_what_came_of_it() -> None:
    shown = Document(literal.of_chat(talk(text("Hello", "<p>Hello</p>", 5), words="Push\nit")))
    assert "You" in shown.text and "Push it" in shown.text and "Hello" in shown.text


def test_a_finished_text_is_its_blocks_and_nothing_is_open() -> None:
    shown = Document(literal.of_piece(text("Hello *you*", "<p>Hello <em>you</em></p>", 11)))
    assert shown.text == "Hello you"
    assert not shown.all("data-open")


def test_a_text_that_grows_shows_what_its_blocks_do_not_cover() -> None:
    said_so_far = "One.\n\nTwo 🙂 thr"
    shown = Document(literal.of_piece(text(said_so_far, "<p>One.</p>", 6, status="in_progress")))
    assert shown.text == "One. Two 🙂 thr"
    piece = shown.one("data-item")
    assert piece["data-length"] == str(len(said_so_far)), "code points, not UTF-16 units"
    assert (piece["data-blocks"], piece["data-html-end"], piece["data-seq"]) == ("1", "6", "41")


def test_reasoning_is_folded_and_says_how_long_it_took() -> None:
    shown = Document(literal.of_piece(text("Hm.", "<p>Hm.</p>", 3, type="reasoning")))
    assert "Thought for 12 s" in shown.text
    [fold] = [attrs for tag, attrs in shown.elements if tag == "details"]
    assert "open" not in fold


def test_a_plan_counts_what_is_done() -> None:
    steps = [
        {"step": "Find", "state": "done"},
        {"step": "Fix", "state": "active"},
        {"step": "Push", "state": "pending"},
    ]
    shown = Document(literal.of_piece(item("plan", meta={"steps": steps})))
    assert "Plan, 1 of 3 done" in shown.text
    assert [row["data-step"] for row in shown.all("data-step")] == ["done", "now", "pending"]


def test_the_latest_plan_stands_beside_the_transcript() -> None:
    plans = [item("plan", meta={"steps": [{"step": step, "state": "done"}]}) for step in ("step one", "step two")]
    beside = Document(literal.of_chat(talk(*plans), "parts/beside"))
    assert "Plan, 1 of 1 done" in beside.text and "step two" in beside.text and "step one" not in beside.text
    assert "hidden" in Document(literal.of_chat(snapshot(), "parts/beside")).one("data-plan")


@pytest.mark.parametrize(("level", "alerts"), [("info", 0), ("warn", 1), ("bad", 1), (None, 0)])
def test_a_notice_is_as_loud_as_its_level(level: str | None, alerts: int) -> None:
    shown = Document(literal.of_piece(item("notice", text="Shortened.", meta={"level": level} if level else {})))
    assert "Shortened." in shown.text
    assert len(shown.classed("alert")) == alerts


def test_a_call_is_a_row_with_its_output_time_and_exit_code() -> None:
    made = call({"command": "make"})
    shown = Document(literal.of_piece(made, output(made, "\x1b[31mred\x1b[0m\n", meta={"exit_code": 2, "seconds": 48})))
    assert "Run make 48 s exit 2" in shown.text
    assert "red" in shown.text and "\x1b" not in shown.text
    [row] = [attrs for tag, attrs in shown.elements if tag == "details"]
    assert "open" in row, "what failed is open"


def test_what_ran_well_is_folded() -> None:
    made = call({"command": "make"})
    shown = Document(literal.of_piece(made, output(made, "ok\n", meta={"exit_code": 0})))
    [row] = [attrs for tag, attrs in shown.elements if tag == "details"]
    assert "open" not in row


def test_output_that_grows_keeps_its_last_line_open_for_the_script() -> None:
    made = call({"command": "make"}, status="in_progress")
    live = output(made, "one\n\r50 %\r60", status="in_progress")
    shown = Document(literal.of_piece(made, live))
    assert shown.one("data-term")["data-length"] == str(len("one\n\r50 %\r60"))
    assert shown.one("data-line")["data-raw"] == "\r50 %\r60", "returns of the carriage are kept"
    assert shown.one("data-item")["data-output"] == live["id"]
    assert "60 %" in shown.text


def test_output_that_was_cut_says_how_much_is_missing_and_leads_to_all_of_it() -> None:
    made = call({"command": "make"})
    cut = output(made, "headtail", cut={"head": 4, "omitted": 5000}, bytes=5008)
    shown = Document(literal.of_piece(made, cut))
    assert "5000 characters not shown" in shown.text.replace(",", "")
    assert shown.all("href", f"/api/v1/items/{cut['id']}/text/")


def test_a_call_with_two_outputs_names_both() -> None:
    made = call({"command": "make"})
    outputs = [output(made, "one\n"), output(made, "two\n")]
    shown = Document(literal.of_piece(made, *outputs))
    assert shown.one("data-item")["data-output"].split() == [row["id"] for row in outputs]
    assert shown.repeated == []


def test_a_tool_that_nobody_knows_goes_by_its_name_and_shows_all_arguments() -> None:
    shown = Document(literal.of_piece(call({"a": "x", "b": 2}, name="weather")))
    assert "weather" in shown.text and '"b": 2' in shown.text


@pytest.mark.parametrize("status", ENDS)
def test_the_run_bar_says_how_it_ended(status: str) -> None:
    assert ENDS[status] in Document(literal.of_chat(talk(text("x"), status=status))).text


def test_the_run_bar_says_what_the_agent_is_at_and_stops_it() -> None:
    whole = talk(call({"command": "make"}, status="in_progress"), status="running")
    shown = Document(literal.of_chat(whole))
    assert "Claude Code works : Run make" in shown.text
    assert shown.one("data-stop")["data-stop"] == whole["messages"][1]["run"]["id"]
    assert shown.one("data-dock")["data-active"] == "1"


def test_the_run_bar_leads_to_what_waits_and_counts_the_rest() -> None:
    first = ask(arguments={"command": "git push"})
    shown = Document(literal.of_chat(talk(first, ask(), ask(), status="waiting")))
    assert "git push and 2 more" in shown.text
    assert shown.one("data-show-card")["href"] == f"#item-{first['id']}"


def test_what_goes_on_says_since_when_and_the_script_counts_on() -> None:
    begun = (timezone.now() - timedelta(seconds=102)).isoformat()
    whole = talk(call({"command": "make"}, status="in_progress", created_at=begun), status="running")
    whole["messages"][1]["run"]["started_at"] = begun
    shown = Document(literal.of_chat(whole))
    assert [row["data-clock"] for row in shown.all("data-clock")] == ["102", "102"]
    assert shown.text.count("1:42") == 2


def test_stopping_cannot_be_pressed_again() -> None:
    whole = talk(text("x"), status="running")
    whole["messages"][1]["run"]["stopping"] = True
    shown = Document(literal.of_chat(whole))
    assert "Stopping" in shown.text and not shown.all("data-stop")


def test_a_queued_message_stands_in_the_dock_and_can_be_taken_back() -> None:
    first, second = said("First", 0), said("Second", 2)
    whole = snapshot(first, answer(first, status="running"), second, answer(second, status="queued"))
    shown = Document(literal.of_chat(whole))
    assert "Next: Second" in shown.text
    assert len(shown.all("data-turn")) == 1
    assert shown.one("data-removes")["data-stop"] == whole["messages"][3]["run"]["id"]


def test_an_error_is_told_in_the_turn() -> None:
    whole = talk(text("x"), status="failed", error="The model was too busy.")
    assert "The run ended with an error. The model was too busy." in Document(literal.of_chat(whole)).text


def test_older_turns_are_offered() -> None:
    first = said("x", position=8)
    shown = Document(literal.of_chat(snapshot(first, answer(first), more=True)))
    assert shown.one("data-before")["data-before"] == "8"


def test_an_answer_whose_question_is_on_an_older_page_is_a_turn() -> None:
    lonely = answer(None, text("Hello", "<p>Hello</p>", 5)) | {"parent": literal.new_id()}
    shown = Document(literal.of_chat(snapshot(lonely)))
    assert "Hello" in shown.text and len(shown.all("data-turn")) == 1


def test_tokens_are_told_when_the_turn_is_over() -> None:
    usage = {"input_tokens": 20412, "output_tokens": 2388}
    assert "20412 in" in Document(literal.of_chat(talk(text("x"), usage=usage))).text.replace(",", "")
    assert "20412 in" not in Document(literal.of_chat(talk(text("x"), status="running", usage=usage))).text


def test_another_person_is_named() -> None:
    first = said("Hi", author="kestrel")
    assert "kestrel" in Document(literal.of_chat(snapshot(first, answer(first)))).text


def test_fragments_are_the_same_pieces_as_the_page() -> None:
    whole = talk(text("Hello", "<p>Hello</p>", 5), ask(), status="waiting")
    page = literal.of_chat(whole)
    for part in ("parts/turns", "parts/dock"):
        assert literal.of_chat(whole, part).strip() in page


def test_an_interrupted_answer_can_be_asked_for_again() -> None:
    shown = Document(literal.of_chat(talk(text("Hello"), words="Push <it>", status="interrupted")))
    assert shown.one("data-again")["data-again"] == "Push <it>"
    assert not Document(literal.of_chat(talk(text("Hello"), status="completed"))).all("data-again")


def test_a_run_that_was_decided_on_and_waits_for_a_worker_is_no_queued_message() -> None:
    first = said("First", 0)
    begun = answer(first, status="queued")
    begun["run"]["started_at"] = literal.AT
    shown = Document(literal.of_chat(snapshot(first, begun)))
    assert "goes on as soon as a worker is free" in shown.text and "Next:" not in shown.text
    assert shown.one("data-stop")
