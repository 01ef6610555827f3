from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any

import pytest

from agentchat.events import Cause, ItemStatus, Via
from agentchat.models import Chat, Message, OutputItem, Resolution, clock
from agentchat.services import approvals
from tests import made
from tests.api.conftest import Caller


def decide(api: Caller, item: OutputItem, action: str = "approve", headers: Any = None, **more: Any) -> Any:
    body = {"action": action, "digest": item.digest, **more}
    return api.post(f"/approvals/{item.pk}/decision/", body, **(headers or {}))


def test_approve_is_recorded_with_who_and_how(api: Caller, asked: OutputItem) -> None:
    answer = decide(api, asked, displayed_at="2026-01-02T03:04:05Z")
    assert answer.status_code == 200
    said = answer.json()["resolution"]
    assert (said["action"], said["cause"], said["decided_by"]) == ("approve", "person", "ada")
    assert said["displayed_at"] == "2026-01-02T03:04:05.000000Z"
    row = Resolution.objects.get()
    key = api.client.session.session_key or ""
    assert row.proof == f"session:{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    assert row.decided_via == Via.API


def test_our_page_decides_via_browser(api: Caller, asked: OutputItem) -> None:
    decide(api, asked, headers={"X_Requested_With": "agentchat-page"})
    assert Resolution.objects.get().decided_via == Via.BROWSER


@pytest.mark.parametrize(
    ("reason", "kept"),
    [
        ("", ""),
        ("   ", ""),
        (None, ""),
        ("no", "no"),
        ("\"quoted\"\nand 'more'\n\\n ☃", "\"quoted\"\nand 'more'\n\\n ☃"),
        ("x" * 10_000, "x" * 10_000),
    ],
)
def test_reject_with_any_reason(api: Caller, asked: OutputItem, reason: Any, kept: str) -> None:
    answer = decide(api, asked, "reject", reason=reason)
    assert answer.status_code == 200
    assert answer.json()["resolution"]["reason"] == Resolution.objects.get().reason == kept


def test_reject_without_a_reason(api: Caller, asked: OutputItem) -> None:
    assert decide(api, asked, "reject").json()["resolution"]["reason"] == ""


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"digest": None},
        {"digest": ""},
        {"action": "maybe"},
        {"action": "answer", "answers": {"a": "b"}},
        {"reason": 5},
        {"reason": "x" * 10_001},
        {"answers": {"a": 1}},
        {"scope": "always"},
        {"scope": "never"},
        {"displayed_at": "yesterday"},
        {"displayed_at": "0001-01-01T00:00:00+14:00"},
        {"arguments": {"n": 2**60}},
        {"arguments": "[" * 100_000},
        {"arguments": '{"command": "ls"'},
        {"extra": 1},
    ],
)
def test_nonsense_decides_nothing(api: Caller, asked: OutputItem, body: Any) -> None:
    whole = {"action": "approve", "digest": asked.digest} | body if body else {"action": "approve"}
    answer = api.post(f"/approvals/{asked.pk}/decision/", whole)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert not Resolution.objects.exists()


def test_the_same_again_gives_the_stored_one(api: Caller, asked: OutputItem) -> None:
    first, second = decide(api, asked), decide(api, asked)
    assert (first.status_code, second.status_code) == (200, 200)
    assert first.json() == second.json()
    assert Resolution.objects.count() == 1


def test_too_late_names_the_winner(api: Caller, asked: OutputItem) -> None:
    decide(api, asked, "reject", reason="no")
    late = decide(api, asked)
    assert (late.status_code, late.json()["code"]) == (409, "already_resolved")
    assert late.json()["resolution"]["action"] == "reject"
    assert late.json()["resolution"]["decided_by"] == "ada"


def test_other_arguments_are_stale(api: Caller, asked: OutputItem) -> None:
    answer = api.post(f"/approvals/{asked.pk}/decision/", {"action": "approve", "digest": "0" * 64})
    assert (answer.status_code, answer.json()["code"]) == (409, "stale")
    assert not Resolution.objects.exists()


def test_expired(api: Caller, answer: Message) -> None:
    item = made.request_in(answer, expires_at=clock.now() - timedelta(seconds=1))
    late = decide(api, item, headers={"Idempotency_Key": "k"})
    assert (late.status_code, late.json()["code"]) == (410, "expired")
    assert late.json()["resolution"]["cause"] == "timeout"
    assert Resolution.objects.get().cause == Cause.TIMEOUT


@pytest.mark.parametrize(("cause", "code"), [(Cause.STOPPED, "stopped"), (Cause.AGENT_GONE, "agent_gone")])
def test_nobody_waits_any_more(api: Caller, asked: OutputItem, cause: Cause, code: str) -> None:
    approvals.close(asked.pk, cause)
    late = decide(api, asked)
    assert (late.status_code, late.json()["code"]) == (410, code)
    assert late.json()["resolution"]["cause"] == cause


def test_what_asks_nothing_cannot_be_decided(api: Caller, answer: Message) -> None:
    item = made.item_in(answer, text="Hello")
    assert api.post(f"/approvals/{item.pk}/decision/", {"action": "approve", "digest": "0"}).status_code == 404
    assert api.get(f"/approvals/{item.pk}/").status_code == 404


def test_edited_arguments(api: Caller, asked: OutputItem) -> None:
    said = decide(api, asked, arguments={"command": "ls"}).json()["resolution"]
    assert said["arguments"] == '{"command": "ls"}'
    assert said["digest"] == asked.digest != said["final_digest"]


def test_question_is_answered(api: Caller, answer: Message) -> None:
    item = made.question_in(answer)
    assert api.get(f"/approvals/{item.pk}/").json()["options"]["actions"] == ["answer", "reject"]
    assert decide(api, item, "answer", answers={"colour": ["green"]}).status_code == 422
    said = decide(api, item, "answer", answers={"colour": ["red"]}).json()["resolution"]
    assert said["answers"] == {"colour": {"choices": ["red"], "text": ""}}


def test_free_answer_that_cannot_be_sealed_is_refused(api: Caller, answer: Message) -> None:
    item = made.request_in(answer, name="ask_user", request={"kind": "question"})
    assert decide(api, item, "answer", answers={"n": 2**60}).status_code == 422
    assert decide(api, item, "answer", answers={"n": "many"}).status_code == 200


def test_detail(api: Caller, asked: OutputItem) -> None:
    found = api.get(f"/approvals/{asked.pk}/").json()
    assert found["digest"] == asked.digest
    assert found["item"]["arguments"] == asked.arguments
    assert found["request"]["risk"]["level"] == "high"
    assert found["options"] == {"actions": ["approve", "reject"], "scopes": ["once"]}
    assert (found["resolution"], found["delivery"]) == (None, None)
    decide(api, asked)
    found = api.get(f"/approvals/{asked.pk}/?wait=30").json()
    assert found["resolution"]["action"] == "approve"
    assert found["options"]["actions"] == []


def test_list_and_its_filters(api: Caller, answer: Message, chat: Chat) -> None:
    low = made.request_in(answer, name="edit", request={"kind": "edit", "risk": {"level": "low"}})
    high = made.request_in(answer)
    done = made.request_in(answer)
    decide(api, done, "reject")

    def found(query: str) -> list[str]:
        return [row["id"] for row in api.get(f"/approvals/?{query}").json()["results"]]

    assert found("") == [str(done.pk), str(high.pk), str(low.pk)]
    assert found("state=pending") == [str(high.pk), str(low.pk)]
    assert found("state=decided") == [str(done.pk)]
    assert found("tool=edit") == [str(low.pk)]
    assert found("state=pending&risk=high") == [str(high.pk)]
    assert len(found(f"chat={chat.pk}")) == 3
    assert found("chat=00000000-0000-0000-0000-000000000000") == []
    assert api.get("/approvals/?state=maybe").status_code == 422
    assert api.get("/approvals/?chat=x").status_code == 422
    row = api.get("/approvals/?state=decided").json()["results"][0]
    assert (row["chat"]["id"], row["resolution"]["action"]) == (str(chat.pk), "reject")


@pytest.mark.parametrize("state", ["pending", "decided", ""])
def test_list_has_pages(api: Caller, answer: Message, state: str) -> None:
    items = [made.request_in(answer) for _ in range(5)]
    if state == "decided":
        for item in items:
            decide(api, item)
    query = f"limit=2&state={state}" if state else "limit=2"
    found, url = [], f"/api/v1/approvals/?{query}"
    while url:
        page = api.client.get(url).json()
        found += [row["id"] for row in page["results"]]
        url = page["next"]
    assert found == [str(item.pk) for item in reversed(items)]


def test_request_of_a_dead_agent_is_no_longer_open(api: Caller, asked: OutputItem) -> None:
    OutputItem.objects.filter(pk=asked.pk).update(status=ItemStatus.INTERRUPTED)
    assert api.get(f"/approvals/{asked.pk}/?wait=30").json()["options"]["actions"] == []
    assert decide(api, asked).status_code == 410


def test_audit_and_its_filters(api: Caller, answer: Message, chat: Chat) -> None:
    first, second = made.request_in(answer), made.request_in(answer, name="edit")
    decide(api, first, "reject", reason="no")
    between = clock.now().isoformat().replace("+00:00", "Z")
    decide(api, second)

    def found(query: str) -> list[str]:
        return [row["item"] for row in api.get(f"/resolutions/?{query}").json()["results"]]

    assert found("") == [str(second.pk), str(first.pk)]
    assert found("action=reject") == found("tool=shell") == found(f"to={between}") == [str(first.pk)]
    assert found(f"from={between}") == [str(second.pk)]
    assert len(found("cause=person&decided_by=ada")) == 2
    assert found("decided_by=bob") == []
    assert len(found(f"chat={chat.pk}")) == 2
    assert api.get("/resolutions/?from=soon").status_code == 422
    rows = api.get("/resolutions/").json()["results"]
    assert rows[0]["prev_hash"] == rows[1]["hash"]
    page = api.get("/resolutions/?limit=1").json()
    assert api.client.get(page["next"]).json()["results"][0]["item"] == str(first.pk)
