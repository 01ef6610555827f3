"""The trace of a run: what its rows become."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.management import CommandError, call_command

from agentchat import wire
from agentchat.events import Cause, ItemStatus, RunStatus
from agentchat.models import Chat, Message, OutputItem, Receipt, Resolution, clock
from agentchat.services import approvals, closing, runs
from tests import made
from tests.traces import INCOMPLETE, PASS, answered, check, decided, exported, finished, kinds, records, taken, unasked

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.databases]


@pytest.fixture
def message(chat: Chat) -> Message:
    return made.answer_in(chat)


def test_a_yes_is_a_request_a_decision_and_an_act_after_the_receipt(message: Message) -> None:
    item = decided(message)
    found = finished(message)
    assert kinds(found) == ["proposed", "requested", "allow", "executed", "end"]
    [proposed, requested, allowed, executed, end] = records(found)
    assert {record["session_id"] for record in records(found)} == {str(message.run.pk)}
    assert proposed["action"] == {"tool": "shell", "operation": "command", "parameters": {"sha256": item.digest}}
    assert proposed["action"] == requested["action"] == executed["action"]
    assert requested["approval_id"] == allowed["approval_id"] == executed["approval_id"] == str(item.pk)
    assert executed["timestamp"] == wire.time(Receipt.objects.get().delivered_at)
    assert end["reason"] == "completed; decided by: person 1"
    assert check(found) == (PASS, set())


def test_a_no_is_blocked(message: Message) -> None:
    decided(message, "reject")
    found = finished(message)
    assert kinds(found) == ["proposed", "requested", "deny", "blocked", "end"]
    assert records(found)[3]["reason"] == "person"
    assert check(found) == (PASS, set())


def test_an_edit_stops_the_first_version_and_allows_the_second(message: Message) -> None:
    item = decided(message, arguments={"command": "ls"})
    found = finished(message)
    by_action: dict[str, list[Any]] = {}
    for record in records(found)[:-1]:
        by_action.setdefault(record["action_id"], []).append(record)
    first, second = by_action[str(item.pk)], by_action[f"{item.pk}:edited"]
    assert [one.get("decision", one["type"]) for one in first] == [
        "action_proposed", "approval_requested", "deny", "action_blocked",
    ]  # fmt: skip
    assert [one.get("decision", one["type"]) for one in second] == [
        "action_proposed", "approval_requested", "allow", "action_executed",
    ]  # fmt: skip
    assert second[-1]["action"]["parameters"]["sha256"] == Resolution.objects.get().final_digest
    assert first[0]["action"]["parameters"]["sha256"] == item.digest
    assert check(found) == (PASS, set())


def test_an_answer_is_handed_over(message: Message) -> None:
    decided(message, "answer", answers={"colour": {"choices": ["red"], "text": ""}})
    found = finished(message)
    assert kinds(found) == ["proposed", "requested", "allow", "executed", "end"]
    assert records(found)[0]["action"]["operation"] == "question"
    assert check(found) == (PASS, set())


@pytest.mark.parametrize("cause", [Cause.STOPPED, Cause.AGENT_GONE])
def test_what_nobody_decided_has_not_run(message: Message, cause: Cause) -> None:
    item = made.request_in(message)
    approvals.close(item.pk, cause)
    found = finished(message)
    assert kinds(found) == ["proposed", "requested", "deny", "blocked", "end"]
    assert records(found)[3]["reason"] == cause
    assert check(found) == (PASS, set())


def test_what_the_end_closes_comes_before_the_end(message: Message) -> None:
    made.request_in(message)
    found = finished(message)
    assert kinds(found) == ["proposed", "requested", "deny", "blocked", "end"]
    assert check(found) == (PASS, set())


def test_the_mode_decides_too(message: Message) -> None:
    item = made.request_in(message, status=ItemStatus.IN_PROGRESS)
    taken(approvals.allow_by_mode(item.pk))
    found = finished(message)
    assert kinds(found) == ["proposed", "requested", "allow", "executed", "end"]
    assert records(found)[-1]["reason"].endswith("decided by: mode 1")
    assert check(found) == (PASS, set())


def test_a_yes_that_no_run_took_is_blocked(message: Message) -> None:
    """The process died between the decision and the receipt."""
    item = made.request_in(message)
    answered(item)
    runs.finish(message.run.pk, RunStatus.INTERRUPTED)
    assert OutputItem.objects.filter(text=closing.INTERRUPTED[Cause.AGENT_GONE]).exists()
    found = exported(message)
    assert kinds(found) == ["proposed", "requested", "allow", "blocked", "end"]
    assert records(found)[3]["reason"] == "the decision was not taken"
    assert check(found) == (PASS, set())


def test_a_yes_that_was_taken_may_have_run(message: Message) -> None:
    """There is no result, but nothing says that it did not begin."""
    item = made.request_in(message)
    taken(answered(item))
    assert kinds(finished(message)) == ["proposed", "requested", "allow", "executed", "end"]


def test_a_run_that_goes_on_is_incomplete_and_says_so(message: Message) -> None:
    decided(message)
    made.request_in(message)
    said, found = exported(message).split("\n", 1)
    assert "has not ended" in said
    assert kinds(found) == ["proposed", "requested", "allow", "executed", "proposed", "requested"]
    assert check(found) == (INCOMPLETE, {"ACK009"})


def test_a_tool_that_does_not_ask_is_in_the_trace(message: Message) -> None:
    unasked(message)
    found = finished(message)
    assert kinds(found) == ["proposed", "executed", "end"]
    assert check(found) == (PASS, set())


def test_a_policy_that_covers_everything_finds_tools_that_do_not_ask_and_no_others(message: Message) -> None:
    everything = 'version = 1\n[approval]\nrequire_for = ["*"]\n'
    decided(message)
    decided(message, "reject", "rm -rf /")
    decided(message, command="make all", arguments={"command": "make test"})
    decided(message, "answer", answers={"colour": {"choices": ["red"], "text": ""}})
    assert check(finished(message), everything) == (PASS, set())
    unasked(message)
    assert check(exported(message), everything)[1] >= {"ACK001"}


def test_a_request_comes_before_its_decision_whatever_the_clocks_say(message: Message) -> None:
    """An item has the server's time, a decision the database's."""
    item = decided(message)
    OutputItem.objects.filter(pk=item.pk).update(created_at=clock.now())
    found = finished(message)
    assert kinds(found) == ["proposed", "requested", "allow", "executed", "end"]


@pytest.mark.parametrize("wrong", ["7", "00000000-0000-4000-8000-000000000000"])
def test_an_unknown_run_is_said_in_a_sentence(db: None, wrong: str) -> None:
    with pytest.raises(CommandError, match=r"(not the id of a run|no run with the id).*/messages/"):
        call_command("export_trace", wrong)
