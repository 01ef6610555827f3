from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest
from django.test import Client

from agentchat.models import Chat, OutputItem, Resolution, Run
from agentchat.services.output import Output
from tests.core.helpers import pending

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.databases]


async def test_s28_nothing_of_another_person_is_found_by_its_id(
    output: Output, chat: Chat, owner: Any, stranger: Any, in_db: Any
) -> None:
    """404 everywhere, the same as for an id that does not exist."""
    asking = asyncio.create_task(output.approve("shell", {"command": "x"}))
    [item] = await pending(in_db)
    run = await in_db(Run.objects.get)
    await in_db(visit_all, stranger, chat, item, run)
    assert await in_db(Resolution.objects.count) == 0
    assert (await in_db(Run.objects.get)).stop_requested_at is None
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)


def visit_all(stranger: Any, chat: Chat, item: OutputItem, run: Run) -> None:
    client = Client()
    client.force_login(stranger)
    api, page = f"/api/v1/chats/{chat.pk}", f"/chats/{chat.pk}"
    gets = [f"{api}/", f"{api}/messages/", f"{api}/snapshot/", f"{api}/events/?after=0", f"{page}/", f"{page}/transcript/",
            f"{page}/dock/", f"{page}/messages/{item.message_id}/fragment/", f"{page}/items/{item.pk}/fragment/",
            f"/api/v1/items/{item.pk}/", f"/api/v1/items/{item.pk}/text/", f"/api/v1/approvals/{item.pk}/"]  # fmt: skip
    posts = [f"{api}/messages/", f"/api/v1/runs/{run.pk}/stop/", f"/api/v1/approvals/{item.pk}/decision/"]
    body = {"text": "hello", "action": "approve", "digest": item.digest}
    for path in gets:
        assert client.get(path).status_code == 404, path
        known = (str(chat.pk), str(item.pk), str(item.message_id))
        other = path
        for id in known:
            other = other.replace(id, str(uuid.uuid4()))
        assert client.get(other).status_code == 404
    for path in posts:
        wanted = {"text": "hello"} if path.endswith("messages/") else body if "decision" in path else {}
        wanted = {key: value for key, value in wanted.items() if not ("decision" in path and key == "text")}
        assert client.post(path, wanted, content_type="application/json").status_code == 404, path
    for method in (client.patch, client.delete):
        assert method(f"{api}/", {"title": "mine"}, content_type="application/json").status_code == 404
    for path in ("/api/v1/chats/", "/api/v1/chats/?q=go", "/api/v1/approvals/", "/api/v1/resolutions/"):
        assert client.get(path).json()["results"] == [], path
    assert b"A chat" not in client.get("/").content
    chat.refresh_from_db()
    assert chat.title == "A chat"
