"""Rows or lines of a trace that were tampered with do not pass `agentack check`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from agentchat.events import ItemStatus
from agentchat.models import Chat, Message, OutputItem, Receipt, Resolution, Run, clock, triggers
from agentchat.services import canonical, trace
from tests import made
from tests.traces import FAIL, INCOMPLETE, PASS, check, decided, exported, finished, lines, records, result_of, unasked

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.databases]

SECOND = timedelta(seconds=1)


@pytest.fixture
def message(chat: Chat) -> Message:
    return made.answer_in(chat)


@pytest.fixture
def story(message: Message) -> dict[str, OutputItem]:
    """A run that passes; its triggers are away."""
    items = {
        "yes": decided(message),
        "no": decided(message, "reject", "rm -rf /"),
        "edited": decided(message, command="make all", arguments={"command": "make test"}),
        "answer": decided(message, "answer", answers={"colour": {"choices": ["red"], "text": ""}}),
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
    found = lines(trace.records(rows))
    ended, rules = check(found)
    assert (ended, rule in rules) == (code, True), rules


def test_a_second_receipt_or_decision_is_seen(story: dict[str, OutputItem], message: Message) -> None:
    """The indexes of the database refuse them, so they are put between the database and the trace."""
    rows, first = trace.read(message.run.pk), resolution(story["yes"]).get()
    rows.receipts[first.pk] *= 2
    assert check(lines(trace.records(rows))) == (FAIL, {"ACK004"})
    rows = trace.read(message.run.pk)
    rows.resolutions[story["yes"].pk].append(Resolution(**{**_columns(first), "action": "reject"}))
    code, rules = check(lines(trace.records(rows)))
    assert code == FAIL and {"ACK006", "ACK009"} <= rules


def _columns(row: Resolution) -> dict[str, Any]:
    return {field.attname: getattr(row, field.attname) for field in Resolution._meta.concrete_fields}


# Lines that were tampered with


def test_no_line_can_be_taken_out_or_repeated(story: dict[str, OutputItem], message: Message) -> None:
    """But for a tool that does not ask: it may run as often as it likes."""
    found = exported(message).splitlines()
    assert len(found) == 23
    for nth, line in enumerate(found):
        assert check("\n".join(found[:nth] + found[nth + 1 :]))[0] in (FAIL, INCOMPLETE), f"without {line}"
        if "executed" not in line or "approval_id" in line:
            assert check("\n".join([*found[: nth + 1], *found[nth:]]))[0] in (FAIL, INCOMPLETE), f"twice {line}"


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
    found = exported(message).splitlines()
    asked = [nth for nth, line in enumerate(found) if "executed" in line and "approval_id" in line]
    for nth in asked:
        moved = [found[nth], *found[:nth], *found[nth + 1 :]]
        assert "ACK006" in check("\n".join(moved))[1]


def _with(found: list[Any], nth: int, record: Any) -> str:
    return lines([*found[:nth], record, *found[nth + 1 :]])
