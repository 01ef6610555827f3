"""The OpenAPI document: it is complete, and what is sent is what it says."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from django.core.management import call_command
from django.urls import get_resolver

from agentchat.api import urls
from agentchat.events import ItemType
from agentchat.models import Chat, Message
from tests import made
from tests.api.conftest import Caller


@pytest.fixture
def document(api: Caller) -> dict[str, Any]:
    found: dict[str, Any] = api.get("/schema/").json()
    return found


def test_document_is_valid_and_without_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("spectacular", "--validate", "--fail-on-warn")
    assert "openapi: 3.1.0" in capsys.readouterr().out


def test_every_route_is_in_it(document: dict[str, Any]) -> None:
    assert get_resolver()
    routes = {str(one.pattern).replace("<uuid:", "{").replace(">", "}") for one in urls.urlpatterns}
    assert {f"/api/v1/{route}" for route in routes - {"schema/"}} == set(document["paths"])


def _check(document: dict[str, Any], name: str, answer: Any) -> None:
    """Valid, and no field that the document does not name."""
    schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
    jsonschema.Draft202012Validator(schema).validate(answer)


def _fields(document: dict[str, Any], name: str) -> set[str]:
    return set(document["components"]["schemas"][name]["properties"])


def test_answers_are_what_it_says(api: Caller, document: dict[str, Any], chat: Chat, answer: Message) -> None:
    asked = made.request_in(answer)
    made.item_in(answer, ItemType.OUTPUT, text="x" * 600_000)
    made.item_in(answer, ItemType.MESSAGE, text="Hello")
    decision = {"action": "approve", "digest": asked.digest}
    for path, name in (
        ("/chats/", "Chats"),
        (f"/chats/{chat.pk}/", "Chat"),
        (f"/chats/{chat.pk}/messages/", "Messages"),
        (f"/chats/{chat.pk}/snapshot/", "Snapshot"),
        (f"/chats/{chat.pk}/events/", "Events"),
        (f"/items/{asked.pk}/", "Item"),
        ("/approvals/", "Approvals"),
        (f"/approvals/{asked.pk}/", "ApprovalDetail"),
        ("/chats/?limit=0", "Error"),
    ):
        _check(document, name, api.get(path).json())
    _check(document, "Decided", api.post(f"/approvals/{asked.pk}/decision/", decision).json())
    _check(document, "AuditRows", api.get("/resolutions/").json())
    late = api.post(f"/approvals/{asked.pk}/decision/", decision | {"action": "reject"})
    _check(document, "Error", late.json())
    _check(document, "Run", api.post(f"/runs/{answer.run.pk}/stop/").json())
    _check(document, "Posted", api.post(f"/chats/{chat.pk}/messages/", {"text": "Hello"}).json())


def test_it_names_every_field(api: Caller, document: dict[str, Any], answer: Message) -> None:
    asked = made.request_in(answer)
    said = api.post(f"/approvals/{asked.pk}/decision/", {"action": "approve", "digest": asked.digest}).json()
    made.item_in(answer, ItemType.OUTPUT, text="x" * 600_000)
    made.item_in(answer, ItemType.MESSAGE, text="Hello")
    made.item_in(answer, ItemType.NOTICE, text="Look")
    snapshot = api.get(f"/chats/{answer.chat_id}/snapshot/").json()
    message = snapshot["messages"][-1]
    assert set(snapshot) == _fields(document, "Snapshot")
    assert set(snapshot["chat"]) == _fields(document, "Chat")
    assert set(message) == _fields(document, "Message")
    assert set(message["run"]) == _fields(document, "Run")
    assert set(said["resolution"]) == _fields(document, "Resolution")
    for item in message["items"]:
        assert set(item) <= _fields(document, "Item"), item["type"]
    detail = api.get(f"/approvals/{asked.pk}/").json()
    assert set(detail) == _fields(document, "ApprovalDetail")
    assert set(api.get("/resolutions/").json()["results"][0]) == _fields(document, "AuditRow")
    assert set(api.get("/providers/").json()[0]) == _fields(document, "Provider")
