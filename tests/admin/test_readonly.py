from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.db import connection

from agentchat.events import ItemType, Via
from agentchat.models import (
    Chat,
    Event,
    IdempotencyKey,
    Message,
    OutputItem,
    Receipt,
    Resolution,
    Run,
    clock,
    triggers,
)
from agentchat.services import approvals
from agentchat.services.approvals import Decision
from tests import made
from tests.admin.conftest import signed_in

MODELS = ["chat", "message", "outputitem", "run", "receipt", "resolution"]


@pytest.fixture
def rows(asked: OutputItem, ada: Any) -> dict[str, Any]:
    """One row of each."""
    made.item_in(asked.message, ItemType.OUTPUT, text="<script>alert(1)</script>" + "x" * 30_000)
    decision = Decision("approve", asked.digest, reason="be <i>careful</i>", arguments={"command": "ls"})
    resolution = approvals.decide(ada, asked.pk, decision, via=Via.API, proof="session:0123")
    run = asked.message.run
    receipt = Receipt.objects.create(resolution=resolution, run=run, worker="w:1", delivered_at=clock.now())
    found = (asked.message.chat, asked.message, asked, run, receipt, resolution)
    return dict(zip(MODELS, found, strict=True))


def at(model: str, row: Any = None, page: str = "change") -> str:
    return f"/admin/agentchat/{model}/" + (f"{row.pk}/{page}/" if row is not None else "")


@pytest.mark.parametrize("model", MODELS)
def test_superuser_reads_list_and_detail(rows: dict[str, Any], root: Any, model: str) -> None:
    client = signed_in(root)
    listed, detail = client.get(at(model)), client.get(at(model, rows[model]))
    assert (listed.status_code, detail.status_code) == (200, 200)
    assert str(rows[model].pk) in listed.content.decode()
    text = detail.content.decode()
    assert 'name="_save"' not in text
    assert "deletelink" not in text


@pytest.mark.parametrize("model", MODELS)
def test_nothing_is_added_changed_or_deleted(rows: dict[str, Any], root: Any, model: str) -> None:
    client, row = signed_in(root), rows[model]
    before = {each: each.objects.count() for each in (Chat, Message, OutputItem, Run, Receipt, Resolution)}
    assert client.get(at(model) + "add/").status_code == 403
    assert client.post(at(model) + "add/", {"title": "x"}).status_code == 403
    assert client.post(at(model, row), {"title": "x", "reason": "x", "_save": "1"}).status_code == 403
    assert client.get(at(model, row, "delete")).status_code == 403
    assert client.post(at(model, row, "delete"), {"post": "yes"}).status_code == 403
    bulk = {"action": "delete_selected", "_selected_action": [str(row.pk)], "post": "yes"}
    assert client.post(at(model), bulk).status_code == 403
    assert {each: each.objects.count() for each in before} == before
    assert Chat.objects.get().title == "A chat"
    assert Resolution.objects.get().reason == "be <i>careful</i>"


@pytest.mark.parametrize("model", MODELS)
def test_there_are_no_bulk_actions(rows: dict[str, Any], root: Any, model: str) -> None:
    text = signed_in(root).get(at(model)).content.decode()
    assert "delete_selected" not in text
    assert "action-checkbox" not in text


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("query", ["q=shell", "q=<b>", "q=00000000-0000-0000-0000-000000000000"])
def test_search_finds_or_not_but_works(rows: dict[str, Any], root: Any, model: str, query: str) -> None:
    assert signed_in(root).get(f"{at(model)}?{query}").status_code == 200


@pytest.mark.parametrize("model", MODELS)
def test_staff_without_permission_is_refused(rows: dict[str, Any], ada: Any, model: str) -> None:
    assert signed_in(ada).get(at(model)).status_code == 403


@pytest.mark.parametrize("model", MODELS)
def test_staff_with_permission_sees_only_their_own(rows: dict[str, Any], ada: Any, bob: Any, model: str) -> None:
    for user in (ada, bob):
        user.user_permissions.add(Permission.objects.get(codename=f"view_{model}"))
    assert signed_in(ada).get(at(model, rows[model])).status_code == 200
    assert str(rows[model].pk) not in signed_in(bob).get(at(model)).context["cl"].result_list.values_list(
        "pk", flat=True
    )
    assert signed_in(bob).get(at(model)).context["cl"].result_count == 0
    assert signed_in(bob).get(at(model, rows[model])).status_code == 302


def test_what_is_not_for_people_is_not_registered() -> None:
    assert not admin.site.is_registered(Event)
    assert not admin.site.is_registered(IdempotencyKey)


def test_text_of_an_agent_is_escaped_and_cut(rows: dict[str, Any], root: Any) -> None:
    output = OutputItem.objects.get(type=ItemType.OUTPUT)
    text = signed_in(root).get(at("outputitem", output)).content.decode()
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text
    assert "more characters are not shown" in text


# The audit


def test_audit_shows_who_what_when_and_how(rows: dict[str, Any], root: Any) -> None:
    text = signed_in(root).get(at("resolution", rows["resolution"])).content.decode()
    row = rows["resolution"]
    for shown in (
        "ada", "approve", "person", "shell", "be &lt;i&gt;careful&lt;/i&gt;", "session:0123", "api",
        row.digest, row.final_digest, row.hash, "taken at", "w:1", "every row is as written", "U+202E",
        "&quot;ls&quot;", "rm &lt;b&gt;",
    ):  # fmt: skip
        assert shown in text.replace('"ls"', "&quot;ls&quot;"), shown
    assert "<b>" not in text.split("Arguments as shown")[1].split("Arguments as edited")[0]


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("", 1),
        ("action__exact=approve", 1),
        ("action__exact=reject", 0),
        ("cause__exact=person", 1),
        ("cause__exact=timeout", 0),
        ("tool=shell", 1),
        ("tool=edit", 0),
        ("decided_by_name=ada", 1),
        ("decided_by_name=bob", 0),
        ("decided_at__year=2001", 0),
        ("q=careful", 1),
        ("q=shell", 1),
        ("q=ada", 1),
        ("q=nothing-of-it", 0),
        ("q=rm", 1),
    ],
)
def test_audit_filters_and_search(rows: dict[str, Any], root: Any, query: str, count: int) -> None:
    answer = signed_in(root).get(f"{at('resolution')}?{query}")
    assert answer.status_code == 200
    assert answer.context["cl"].result_count == count


def test_audit_is_searched_by_id(rows: dict[str, Any], root: Any) -> None:
    client = signed_in(root)
    for id in (rows["outputitem"].pk, rows["chat"].pk):
        assert client.get(f"{at('resolution')}?q={id}").context["cl"].result_count == 1
    assert client.get(f"{at('resolution')}?q={rows['run'].pk}").context["cl"].result_count == 0


def test_broken_chain_is_shown(rows: dict[str, Any], root: Any) -> None:
    client = signed_in(root)
    second = made.request_in(rows["message"])
    approvals.decide(rows["chat"].owner, second.pk, Decision("reject", second.digest), via=Via.API, proof="s")
    assert client.get(at("resolution")).content.decode().count("✗ broken") == 0
    triggers.remove()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE agentchat_resolution SET reason = 'other' WHERE id = %s", [rows["resolution"].pk])
    triggers.install()
    text = client.get(at("resolution")).content.decode()
    assert (text.count("✗ broken"), text.count("✓")) == (1, 1)
    detail = client.get(at("resolution", rows["resolution"])).content.decode()
    assert "its content is not what was hashed" in detail
