from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from agentchat.events import Cause, Via
from agentchat.models import Message, OutputItem, Resolution, clock
from agentchat.services import approvals
from agentchat.services.approvals import Decision
from tests import made
from tests.admin.conftest import signed_in

LIST = "/admin/agentchat/pendingapproval/"


def at(item: OutputItem) -> str:
    return f"{LIST}{item.pk}/change/"


def send(client: Client, item: OutputItem, action: str, **more: Any) -> Any:
    return client.post(at(item), {"action": action, "digest": item.digest, "reason": "", **more}, follow=True)


def said(answer: Any) -> str:
    return " ".join(str(message) for message in answer.context["messages"])


def test_list_holds_what_waits_for_me(asked: OutputItem, ada: Any, bob: Any, root: Any) -> None:
    assert str(asked.pk) in signed_in(ada).get(LIST).content.decode()
    for other in (bob, root):
        assert str(asked.pk) not in signed_in(other).get(LIST).content.decode()


def test_page_shows_the_exact_request(asked: OutputItem, ada: Any) -> None:
    answer = signed_in(ada).get(at(asked))
    text = answer.content.decode()
    for shown in (asked.digest, "rm &lt;b&gt;", "U+202E", "Approve", "Reject", "Reason"):
        assert shown in text, shown
    assert "<b>" not in text


def test_page_works_under_the_policy(asked: OutputItem, ada: Any) -> None:
    answer = signed_in(ada).get(at(asked))
    assert "unsafe-inline" not in answer["Content-Security-Policy"]
    text = answer.content.decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)(?![^>]*json)|<style|\sstyle=|\son\w+=", text)


def test_approve(asked: OutputItem, ada: Any) -> None:
    answer = send(signed_in(ada), asked, "approve")
    assert "Recorded: approve" in said(answer)
    row = Resolution.objects.get()
    assert (row.action, row.decided_by, row.decided_via) == ("approve", ada, Via.ADMIN)
    assert re.fullmatch(r"session:[0-9a-f]{16}", row.proof)
    assert str(asked.pk) not in answer.content.decode()


def test_page_sends_what_it_shows(asked: OutputItem, ada: Any) -> None:
    """The form as a browser sends it."""
    client = signed_in(ada)
    text = client.get(at(asked)).content.decode()
    hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', text))
    client.post(at(asked), {**hidden, "reason": "", "action": "approve"})
    row = Resolution.objects.get()
    assert row.digest == asked.digest
    assert row.displayed_at is not None


def test_reject_with_a_reason(asked: OutputItem, ada: Any) -> None:
    send(signed_in(ada), asked, "reject", reason='not "this"\nbut that')
    row = Resolution.objects.get()
    assert (row.action, row.reason.replace("\r\n", "\n")) == ("reject", 'not "this"\nbut that')


def test_too_late_names_the_winner(asked: OutputItem, ada: Any) -> None:
    approvals.decide(ada, asked.pk, Decision("reject", asked.digest), via=Via.API, proof="session:x")
    answer = send(signed_in(ada), asked, "approve")
    assert "What stands: reject by ada" in said(answer)
    assert Resolution.objects.get().action == "reject"


def test_expired_and_stopped_name_the_cause(answer: Message, ada: Any) -> None:
    late = made.request_in(answer, expires_at=clock.now() - timedelta(seconds=1))
    assert "nobody (timeout)" in said(send(signed_in(ada), late, "approve"))
    stopped = made.request_in(answer)
    approvals.close(stopped.pk, Cause.STOPPED)
    assert "nobody (stopped)" in said(send(signed_in(ada), stopped, "approve"))


def test_other_digest_is_stale(asked: OutputItem, ada: Any) -> None:
    answer = send(signed_in(ada), asked, "approve", digest="0" * 64)
    assert "not the one that you saw" in said(answer)
    assert f'name="digest" value="{asked.digest}"' in answer.content.decode()
    assert not Resolution.objects.exists()


@pytest.mark.parametrize("wrong", [{"action": "maybe"}, {"digest": ""}, {"reason": "x" * 10_001}, {"action": "answer"}])
def test_nonsense_decides_nothing(asked: OutputItem, ada: Any, wrong: dict[str, str]) -> None:
    answer = signed_in(ada).post(at(asked), {"action": "approve", "digest": asked.digest} | wrong)
    assert answer.status_code == 200
    assert said(answer)
    assert not Resolution.objects.exists()


def test_question_is_answered(answer: Message, ada: Any) -> None:
    item = made.question_in(answer)
    client = signed_in(ada)
    assert "Which colour?" in client.get(at(item)).content.decode()
    assert "open" in said(send(client, item, "answer"))
    send(client, item, "answer", choices_0=["red"])
    assert Resolution.objects.get().answers == {"colour": {"choices": ["red"], "text": ""}}


def test_nobody_decides_for_others(asked: OutputItem, bob: Any, root: Any) -> None:
    for other in (bob, root):
        assert signed_in(other).get(at(asked)).status_code == 302
        assert send(signed_in(other), asked, "approve").status_code == 404
    assert not Resolution.objects.exists()


def test_only_staff_comes_in(asked: OutputItem, ada: Any) -> None:
    ada.is_staff = False
    ada.save()
    assert signed_in(ada).get(at(asked)).status_code == 302
    signed_in(ada).post(at(asked), {"action": "approve", "digest": asked.digest})
    assert not Resolution.objects.exists()


def test_the_csrf_token_is_needed(asked: OutputItem, ada: Any) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(ada)
    assert client.post(at(asked), {"action": "approve", "digest": asked.digest}).status_code == 403
    assert not Resolution.objects.exists()


def test_nothing_is_added_or_deleted(asked: OutputItem, root: Any, ada: Any) -> None:
    for user in (root, ada):
        client = signed_in(user)
        assert client.post(f"{LIST}add/", {}).status_code == 403
        assert client.post(f"{LIST}{asked.pk}/delete/", {"post": "yes"}).status_code in (302, 403)
    assert OutputItem.objects.filter(pk=asked.pk).exists()
