"""The trace of a run: what each row becomes, and that rows or lines that were tampered with do not pass `agentack check`."""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from agentchat.events import Cause, ItemStatus, ItemType, RunStatus, Via
from agentchat.models import Chat, Message, OutputItem, Receipt, Resolution, Run, clock, triggers
from agentchat.services import approvals, canonical, closing, runs, trace
from agentchat.services.approvals import Decision
from tests import made
from tests.traces import FAIL, INCOMPLETE, PASS, check, kinds, records

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.databases]

SECOND = timedelta(seconds=1)


@pytest.fixture
def message(chat: Chat) -> Message:
    return made.answer_in(chat)


@pytest.fixture
def decide(owner: Any, message: Message) -> Callable[..., OutputItem]:
    """A request that is decided and taken; a yes has a result too."""

    def run(action: str = "approve", command: str = "make", **more: Any) -> OutputItem:
        item = made.question_in(message) if action == "answer" else made.request_in(message, {"command": command})
        row = approvals.decide(owner, item.pk, Decision(action, item.digest, **more), via=Via.API, proof="test")
        take(row)
        if action == "approve":
            result_of(item)
        return item

    return run


def take(row: Resolution) -> Receipt:
    run = row.item.message.run
    return Receipt.objects.create(resolution=row, run=run, worker="test", delivered_at=clock.now())


def result_of(item: OutputItem, text: str = "done") -> OutputItem:
    return made.item_in(item.message, ItemType.OUTPUT, output_of=item, call_id=item.call_id, name=item.name, text=text)


def unasked(message: Message, name: str = "read", arguments: str = '{"path":"README.md"}') -> OutputItem:
    digest = canonical.digest(arguments)
    return made.item_in(message, ItemType.CALL, name=name, call_id="u", arguments=arguments, digest=digest)


def exported(message: Message) -> str:
    out = io.StringIO()
    call_command("export_trace", str(message.run.pk), stdout=out, stderr=out)
    return out.getvalue()


def finished(message: Message) -> str:
    runs.finish(message.run.pk, RunStatus.COMPLETED)
    return exported(message)


# What rows become


def test_a_yes_is_a_request_a_decision_and_an_act_after_the_receipt(message: Message, decide: Any) -> None:
    item = decide()
    found = finished(message)
    assert kinds(found) == ["proposed", "requested", "allow", "executed", "end"]
    [proposed, requested, allowed, executed, end] = records(found)
    assert {record["session_id"] for record in records(found)} == {str(message.run.pk)}
    assert proposed["action"] == {"tool": "shell", "operation": "command", "parameters": {"sha256": item.digest}}
    assert proposed["action"] == requested["action"] == executed["action"]
    assert requested["approval_id"] == allowed["approval_id"] == executed["approval_id"] == str(item.pk)
    assert executed["timestamp"] == trace.time(Receipt.objects.get().delivered_at)
    assert end["reason"] == "completed; decided by: person 1"
    assert check(found) == (PASS, set())


def test_a_no_is_blocked(message: Message, decide: Any) -> None:
    decide("reject")
    found = finished(message)
    assert kinds(found) == ["proposed", "requested", "deny", "blocked", "end"]
    assert records(found)[3]["reason"] == "person"
    assert check(found) == (PASS, set())


def test_an_edit_stops_the_first_version_and_allows_the_second(message: Message, decide: Any) -> None:
    item = decide(arguments={"command": "ls"})
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


def test_an_answer_is_handed_over(message: Message, decide: Any) -> None:
    decide("answer", answers={"colour": {"choices": ["red"], "text": ""}})
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


def test_the_mode_decides_too(message: Message) -> None:
    item = made.request_in(message, status=ItemStatus.IN_PROGRESS)
    take(approvals.allow_by_mode(item.pk))
    found = finished(message)
    assert kinds(found) == ["proposed", "requested", "allow", "executed", "end"]
    assert records(found)[-1]["reason"].endswith("decided by: mode 1")
    assert check(found) == (PASS, set())


def test_a_yes_that_no_run_took_is_blocked(message: Message, owner: Any) -> None:
    """The process died between the decision and the receipt."""
    item = made.request_in(message)
    approvals.decide(owner, item.pk, Decision("approve", item.digest), via=Via.API, proof="test")
    runs.finish(message.run.pk, RunStatus.INTERRUPTED)
    assert OutputItem.objects.filter(text=closing.INTERRUPTED[Cause.AGENT_GONE]).exists()
    found = exported(message)
    assert kinds(found) == ["proposed", "requested", "allow", "blocked", "end"]
    assert records(found)[3]["reason"] == "the decision was not taken"
    assert check(found) == (PASS, set())


def test_a_yes_that_was_taken_may_have_run(message: Message, owner: Any) -> None:
    """There is no result, but nothing says that it did not begin."""
    item = made.request_in(message)
    take(approvals.decide(owner, item.pk, Decision("approve", item.digest), via=Via.API, proof="test"))
    assert kinds(finished(message)) == ["proposed", "requested", "allow", "executed", "end"]


def test_a_run_that_goes_on_is_incomplete_and_says_so(message: Message, decide: Any) -> None:
    decide()
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


def test_a_request_comes_before_its_decision_whatever_the_clocks_say(message: Message, decide: Any) -> None:
    """An item has the server's time, a decision the database's."""
    item = decide()
    OutputItem.objects.filter(pk=item.pk).update(created_at=clock.now())
    found = finished(message)
    assert kinds(found) == ["proposed", "requested", "allow", "executed", "end"]


@pytest.mark.parametrize("wrong", ["7", str(uuid.uuid4())])
def test_an_unknown_run_is_said_in_a_sentence(db: None, wrong: str) -> None:
    with pytest.raises(CommandError, match=r"(not the id of a run|no run with the id).*/messages/"):
        call_command("export_trace", wrong)


# Rows that were tampered with


@pytest.fixture
def story(message: Message, decide: Any) -> dict[str, OutputItem]:
    """A run that passes; its triggers are away."""
    items = {
        "yes": decide(),
        "no": decide("reject", "rm -rf /"),
        "edited": decide(command="make all", arguments={"command": "make test"}),
        "answer": decide("answer", answers={"colour": {"choices": ["red"], "text": ""}}),
        "read": unasked(message),
    }
    assert check(finished(message)) == (PASS, set())
    triggers.remove()
    return items


def change(rows: Any, **columns: Any) -> None:
    assert rows.update(**columns) == 1


def resolution(item: OutputItem) -> Any:
    return Resolution.objects.filter(item=item)


def receipt(item: OutputItem) -> Any:
    return Receipt.objects.filter(resolution__item=item)


def the(item: OutputItem) -> Any:
    return OutputItem.objects.filter(pk=item.pk)


def remove_decision(story: Any) -> None:
    receipt(story["yes"]).delete()
    resolution(story["yes"]).delete()


def change_arguments(story: Any) -> None:
    change(the(story["yes"]), arguments='{"command":"curl evil"}')


def change_arguments_and_digest(story: Any) -> None:
    text = '{"command":"curl evil"}'
    change(the(story["yes"]), arguments=text, digest=canonical.digest(text))


def change_edited_arguments(story: Any) -> None:
    change(resolution(story["edited"]), arguments='{"command":"curl evil"}')


def change_final_digest(story: Any) -> None:
    change(resolution(story["yes"]), final_digest="0" * 64)


def rename_tool(story: Any) -> None:
    change(the(story["yes"]), name="deploy")


def remove_receipt(story: Any) -> None:
    receipt(story["yes"]).delete()


def take_before_the_decision(story: Any) -> None:
    change(receipt(story["yes"]), delivered_at=resolution(story["yes"]).get().decided_at - SECOND)


def result_before_the_decision(story: Any) -> None:
    early = resolution(story["yes"]).get().decided_at - SECOND
    change(OutputItem.objects.filter(output_of=story["yes"]), created_at=early)


def turn_into_a_no(story: Any) -> None:
    change(resolution(story["yes"]), action="reject")


def run_in_spite_of_the_no(story: Any) -> None:
    result_of(story["no"], "gone")


def repeat_the_result(story: Any) -> None:
    result_of(story["yes"], "again")


def hide_that_it_asked(story: Any) -> None:
    change(the(story["yes"]), request=None, status=ItemStatus.COMPLETED)


def take_much_later(story: Any) -> None:
    change(receipt(story["yes"]), delivered_at=clock.now() + 600 * SECOND)


def expire_before_the_decision(story: Any) -> None:
    change(the(story["yes"]), expires_at=resolution(story["yes"]).get().decided_at - SECOND)


def stop_before_the_act(story: Any) -> None:
    change(Run.objects.all(), stop_requested_at=story["yes"].created_at)


def go_around_the_no(story: Any) -> None:
    call = unasked(story["no"].message, "shell", story["no"].arguments)
    change(the(call), created_at=receipt(story["no"]).get().delivered_at)


def end_before_the_act(story: Any) -> None:
    change(Run.objects.all(), ended_at=story["yes"].created_at)


def take_the_end_away(story: Any) -> None:
    change(Run.objects.all(), ended_at=None)


@pytest.mark.parametrize(
    ("tamper", "code", "rule"),
    [
        (hide_that_it_asked, FAIL, "ACK001"),
        (turn_into_a_no, FAIL, "ACK002"),
        (run_in_spite_of_the_no, FAIL, "ACK002"),
        (change_arguments, FAIL, "ACK003"),
        (change_arguments_and_digest, FAIL, "ACK003"),
        (change_edited_arguments, FAIL, "ACK003"),
        (change_final_digest, FAIL, "ACK003"),
        (rename_tool, FAIL, "ACK003"),
        (repeat_the_result, FAIL, "ACK004"),
        (take_much_later, FAIL, "ACK005"),
        (expire_before_the_decision, FAIL, "ACK005"),
        (remove_receipt, FAIL, "ACK006"),
        (take_before_the_decision, FAIL, "ACK006"),
        (result_before_the_decision, FAIL, "ACK006"),
        (end_before_the_act, FAIL, "ACK006"),
        (go_around_the_no, FAIL, "ACK007"),
        (stop_before_the_act, FAIL, "ACK008"),
        (remove_decision, INCOMPLETE, "ACK009"),
        (take_the_end_away, INCOMPLETE, "ACK009"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_rows_that_were_tampered_with_do_not_pass(
    story: dict[str, OutputItem], message: Message, tamper: Any, code: int, rule: str
) -> None:
    tamper(story)
    rows = trace.read(message.run.pk)
    found = "\n".join(map(json.dumps, trace.records(rows)))
    ended, rules = check(found)
    assert (ended, rule in rules) == (code, True), rules


def test_a_second_receipt_or_decision_is_seen(story: dict[str, OutputItem], message: Message) -> None:
    """The indexes of the database refuse them, so they are put between the database and the trace."""
    rows, first = trace.read(message.run.pk), resolution(story["yes"]).get()
    rows.receipts[first.pk] *= 2
    assert check("\n".join(map(json.dumps, trace.records(rows)))) == (FAIL, {"ACK004"})
    rows = trace.read(message.run.pk)
    rows.resolutions[story["yes"].pk].append(Resolution(**{**_columns(first), "action": "reject"}))
    code, rules = check("\n".join(map(json.dumps, trace.records(rows))))
    assert code == FAIL and {"ACK006", "ACK009"} <= rules


def _columns(row: Resolution) -> dict[str, Any]:
    return {field.attname: getattr(row, field.attname) for field in Resolution._meta.concrete_fields}


# Lines that were tampered with


def test_no_line_can_be_taken_out_or_repeated(story: dict[str, OutputItem], message: Message) -> None:
    """But for a tool that does not ask: it may run as often as it likes."""
    lines = exported(message).splitlines()
    assert len(lines) == 23
    for nth, line in enumerate(lines):
        assert check("\n".join(lines[:nth] + lines[nth + 1 :]))[0] in (FAIL, INCOMPLETE), f"without {line}"
        if "executed" not in line or "approval_id" in line:
            assert check("\n".join([*lines[: nth + 1], *lines[nth:]]))[0] in (FAIL, INCOMPLETE), f"twice {line}"


def test_no_digest_and_no_decision_can_be_changed(story: dict[str, OutputItem], message: Message) -> None:
    """Of a no, only the other way round would be a breach: what is allowed need not run."""
    found = records(exported(message))
    for nth, record in enumerate(found):
        if "approval_id" in record and "action" in record:
            other = {**record, "action": record["action"] | {"parameters": {"sha256": "0" * 64}}}
            assert check(_with(found, nth, other))[0] == FAIL, record
        if record.get("decision") == "allow":
            assert "ACK002" in check(_with(found, nth, record | {"decision": "deny"}))[1]


def test_an_act_cannot_be_moved_before_its_decision(story: dict[str, OutputItem], message: Message) -> None:
    lines = exported(message).splitlines()
    asked = [nth for nth, line in enumerate(lines) if "executed" in line and "approval_id" in line]
    for nth in asked:
        moved = [lines[nth], *lines[:nth], *lines[nth + 1 :]]
        assert "ACK006" in check("\n".join(moved))[1]


def _with(found: list[Any], nth: int, record: Any) -> str:
    return "\n".join(map(json.dumps, [*found[:nth], record, *found[nth + 1 :]]))
