"""The admin: what was decided can be read, found and filtered, and nothing can be changed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from agentchat.models import OutputItem, Resolution
from agentchat.services.output import Output
from tests.core.conftest import chat, in_db, journal, output, owner, stranger  # noqa: F401  (fixtures)
from tests.core.helpers import decide, pending

pytestmark = pytest.mark.django_db(transaction=True)
ROWS = ("chat", "message", "outputitem", "run", "receipt", "resolution", "pendingapproval")


def signed_in(user: Any) -> Client:
    user.is_staff = user.is_superuser = True
    user.save()
    client = Client()
    client.force_login(user)
    return client


async def decided(output: Output, owner: Any, in_db: Any) -> Resolution:  # noqa: F811
    asking = asyncio.create_task(output.approve("shell", {"command": "echo \u202eevil <b>"}))
    [item] = await pending(in_db)
    await decide(in_db, owner, item, "reject", reason="not like this")
    await asking
    return await in_db(Resolution.objects.get)


async def test_the_audit_says_who_what_when_and_how(output: Output, owner: Any, in_db: Any) -> None:  # noqa: F811
    row = await decided(output, owner, in_db)

    def look() -> tuple[str, str]:
        client = signed_in(owner)
        listed = client.get(reverse("admin:agentchat_resolution_changelist")).content.decode()
        shown = client.get(reverse("admin:agentchat_resolution_change", args=[row.pk])).content.decode()
        return listed, shown

    listed, shown = await in_db(look)
    assert "reject" in listed and "ada" in listed and "✓" in listed
    for fact in ("ada", "reject", "person", "not like this", "api", row.digest, row.hash, "U+202E", "&lt;b&gt;"):
        assert fact in shown, fact


@pytest.mark.parametrize(
    ("query", "found"),
    [("action__exact=reject", 1), ("action__exact=approve", 0), ("cause__exact=person", 1), ("cause__exact=timeout", 0),
     ("tool=shell", 1), ("decided_by_name=ada", 1), ("q=not+like", 1), ("q=evil", 1), ("q=nothing-such", 0)],
)  # fmt: skip
async def test_the_audit_is_filtered_and_searched(
    output: Output, owner: Any, in_db: Any, query: str, found: int  # noqa: F811
) -> None:  # fmt: skip
    await decided(output, owner, in_db)
    answer = await in_db(lambda: signed_in(owner).get(reverse("admin:agentchat_resolution_changelist") + f"?{query}"))
    assert answer.status_code == 200
    assert answer.context["cl"].result_count == found


async def test_nothing_can_be_added_changed_or_deleted(output: Output, owner: Any, in_db: Any) -> None:  # noqa: F811
    row = await decided(output, owner, in_db)

    def attack() -> None:
        client = signed_in(owner)
        for model in ROWS:
            assert client.get(f"/admin/agentchat/{model}/add/").status_code in (403, 404)
            listed = client.get(f"/admin/agentchat/{model}/").content.decode()
            assert 'name="action"' not in listed and "Add " not in listed.split('id="content"')[1]
        for path in ("change", "delete"):
            url = reverse(f"admin:agentchat_resolution_{path}", args=[row.pk])
            assert client.post(url, {"reason": "forged", "post": "yes"}).status_code == 403
        acts = {"action": "delete_selected", "_selected_action": row.pk, "post": "yes"}
        client.post(reverse("admin:agentchat_resolution_changelist"), acts)

    await in_db(attack)
    assert (await in_db(Resolution.objects.get)).reason == "not like this"


@pytest.mark.parametrize("action", ["approve", "reject"])
async def test_a_pending_request_is_decided_through_the_one_door(
    output: Output, owner: Any, in_db: Any, action: str  # noqa: F811
) -> None:  # fmt: skip
    asking = asyncio.create_task(output.approve("shell", {"command": "x"}))
    [item] = await pending(in_db)

    def press() -> Any:
        client = signed_in(owner)
        [url] = [f"/admin/agentchat/pendingapproval/{item.pk}/change/"]
        page = client.get(url)
        assert page.status_code == 200 and "x" in page.content.decode()
        return client.post(url, {"action": action, "digest": item.digest, "reason": "as I said"})

    assert (await in_db(press)).status_code == 302
    got = await asking
    row = await in_db(Resolution.objects.get)
    assert (got["action"], row.decided_via, row.decided_by_id) == (action, "admin", owner.pk)
    assert row.proof.startswith("session:")


async def test_who_comes_second_is_told_who_was_first(output: Output, owner: Any, in_db: Any) -> None:  # noqa: F811
    asking = asyncio.create_task(output.approve("shell", {"command": "x"}))
    [item] = await pending(in_db)
    await decide(in_db, owner, item)
    await asking

    def press() -> str:
        url = f"/admin/agentchat/pendingapproval/{item.pk}/change/"
        answer = signed_in(owner).post(url, {"action": "reject", "digest": item.digest}, follow=True)
        return str(answer.content.decode())

    assert "ada" in await in_db(press)
    assert await in_db(lambda: Resolution.objects.get().action) == "approve"
    assert await in_db(lambda: OutputItem.objects.pending().count()) == 0
