from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from agentchat.events import RunStatus
from agentchat.models import Chat, Message, Run, clock
from agentchat.services import chats, runs
from tests import made
from tests.api.conftest import Caller


def test_chat_is_made_read_changed_and_deleted(api: Caller) -> None:
    created = api.post("/chats/", {"provider": "scripted", "title": "First"})
    assert created.status_code == 201
    assert created.json()["title"] == "First"
    path = f"/chats/{created.json()['id']}/"
    assert api.get(path).json() == created.json()
    changed = api("PATCH", path, {"title": "Second", "pinned": True, "archived": True, "approval_mode": "full"})
    assert changed.status_code == 200
    wanted = {"title": "Second", "pinned": True, "archived": True, "approval_mode": "full"}
    assert {name: changed.json()[name] for name in wanted} == wanted
    assert api("DELETE", path).status_code == 204
    gone = api.get(path)
    assert (gone.status_code, gone.json()["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"provider": 5},
        {"provider": "nobody"},
        {"provider": "scripted", "color": "red"},
        {"provider": "scripted", "title": "x" * 201},
        {"provider": "scripted", "title": None},
        {"provider": "scripted", "approval_mode": "yolo"},
        {"provider": "scripted", "workspace": "/etc"},
        {"provider": "scripted", "workspace": "a\x00b"},
        {"provider": "scripted", "workspace": "~nobody-of-this-name/x"},
        {"provider": "scripted", "workspace": "a" * 5000},
        [],
        "text",
        7,
    ],
)
def test_nonsense_is_refused_with_a_sentence(api: Caller, body: Any) -> None:
    answer = api.post("/chats/", body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert answer.json()["detail"].rstrip().endswith(".")
    assert not Chat.objects.exists()


@pytest.mark.parametrize(
    "body",
    [b"{", b"\xff\xfe", b"NaN", b'{"provider": Infinity}', b'{"a":1,"a":2}', b"[" * 100_000, b"[" * 200 + b"]" * 200],
)
def test_bad_json_is_a_bad_request(api: Caller, body: bytes) -> None:
    answer = api.post("/chats/", body)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")


def test_too_long_a_body_is_refused(api: Caller) -> None:
    answer = api.post("/chats/", b'{"title": "' + b"x" * 2_600_000 + b'"}')
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


def test_only_json_is_read(api: Caller) -> None:
    answer = api.client.post("/api/v1/chats/", {"provider": "scripted"})
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")


def test_unknown_method(api: Caller) -> None:
    answer = api("PUT", "/chats/", {})
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")


@pytest.mark.parametrize("body", [{}, {"pinned": "yes"}, {"pinned": 1}, {"provider": "shell"}, {"title": 3}])
def test_nonsense_changes_nothing(api: Caller, chat: Chat, body: Any) -> None:
    answer = api("PATCH", f"/chats/{chat.pk}/", body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    chat.refresh_from_db()
    assert (chat.title, chat.pinned) == ("A chat", False)


def test_list_has_pages_pinned_first_then_newest(api: Caller, ada: Any) -> None:
    made_chats = [chats.create(user=ada, provider="scripted", title=f"{n}") for n in range(7)]
    same = clock.now()
    for chat in made_chats[2:5]:
        Chat.objects.filter(pk=chat.pk).update(updated_at=same - timedelta(days=1))
    Chat.objects.filter(pk__in=[made_chats[0].pk, made_chats[3].pk]).update(pinned=True)
    whole = [row["id"] for row in api.get("/chats/").json()["results"]]
    assert set(whole[:2]) == {str(made_chats[0].pk), str(made_chats[3].pk)}
    assert whole[2] == str(made_chats[6].pk)
    found, url = [], "/api/v1/chats/?limit=2"
    while url:
        page = api.client.get(url).json()
        found += [row["id"] for row in page["results"]]
        url = page["next"]
    assert found == whole
    assert len(found) == 7


def test_list_searches_and_shows_archived_ones_apart(api: Caller, ada: Any, other: Caller) -> None:
    chats.create(user=ada, provider="scripted", title="Garden")
    house = chats.create(user=ada, provider="scripted", title="House")
    chats.change(user=ada, chat_id=house.pk, archived=True)
    titles = [row["title"] for row in api.get("/chats/?q=gard").json()["results"]]
    assert titles == ["Garden"]
    assert [row["title"] for row in api.get("/chats/?archived=1").json()["results"]] == ["House"]
    assert api.get("/chats/?q=%00").status_code == 200
    assert other.get("/chats/").json() == {"results": [], "next": None}


@pytest.mark.parametrize("query", ["cursor=nonsense", "limit=0", "limit=101", "limit=x", "archived=2", "colour=1"])
def test_bad_queries_are_refused(api: Caller, query: str) -> None:
    answer = api.get(f"/chats/?{query}")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")


def test_cursor_of_another_list_is_refused(api: Caller, ada: Any) -> None:
    for title in "ab":
        chats.create(user=ada, provider="scripted", title=title)
    cursor = api.get("/chats/?limit=1").json()["next"].split("cursor=")[1]
    assert api.get(f"/approvals/?cursor={cursor}").status_code == 422


def test_message_is_posted_and_queued(api: Caller, chat: Chat) -> None:
    answer = api.post(f"/chats/{chat.pk}/messages/", {"text": "Hello"})
    assert answer.status_code == 201
    assert answer.json()["message"]["text"] == "Hello"
    assert answer.json()["run"]["status"] == "queued"
    assert Message.objects.filter(chat=chat).count() == 2


@pytest.mark.parametrize("body", [{"text": ""}, {"text": "  "}, {"text": 1}, {"text": "x" * 100_001}, {}])
def test_bad_messages(api: Caller, chat: Chat, body: Any) -> None:
    assert api.post(f"/chats/{chat.pk}/messages/", body).status_code == 422


def test_too_many_waiting_messages(api: Caller, chat: Chat) -> None:
    for _ in range(20):
        assert api.post(f"/chats/{chat.pk}/messages/", {"text": "More"}).status_code == 201
    answer = api.post(f"/chats/{chat.pk}/messages/", {"text": "More"})
    assert (answer.status_code, answer.json()["code"]) == (409, "too_many_queued")


def test_messages_in_pages(api: Caller, chat: Chat) -> None:
    now = clock.now()
    Message.objects.bulk_create(
        Message(chat=chat, role="user", author=chat.owner, text=str(n), position=n, created_at=now, ended_at=now)
        for n in range(1, 61)
    )
    newest = api.get(f"/chats/{chat.pk}/messages/").json()
    assert [row["text"] for row in newest["results"]] == [str(n) for n in range(11, 61)]
    older = api.client.get(newest["next"]).json()
    assert [row["text"] for row in older["results"]] == [str(n) for n in range(1, 11)]
    assert older["next"] is None
    assert api.get(f"/chats/{chat.pk}/messages/?before={10**30}").status_code == 422


def test_snapshot(api: Caller, chat: Chat) -> None:
    said = made.answer_in(chat)
    found = api.get(f"/chats/{chat.pk}/snapshot/").json()
    assert (found["cursor"], found["more"], len(found["messages"])) == (chat.last_seq, False, 2)
    before = api.get(f"/chats/{chat.pk}/snapshot/?before={said.position}").json()
    assert len(before["messages"]) == 1


def test_stop_takes_a_waiting_message_back(api: Caller, chat: Chat) -> None:
    _, run = chats.post(user=chat.owner, chat_id=chat.pk, text="Hello")
    answer = api.post(f"/runs/{run.pk}/stop/")
    assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
    assert Run.objects.get().status == RunStatus.CANCELLED


def test_stop_of_an_active_run_is_asked_for(api: Caller, chat: Chat) -> None:
    chats.post(user=chat.owner, chat_id=chat.pk, text="Hello")
    run = runs.claim("here:1")
    assert run is not None
    assert api.post(f"/runs/{run.pk}/stop/").json()["stopping"] is True
    assert api.post(f"/runs/{run.pk}/stop/", {"hard": True}).status_code == 422


def test_a_run_that_waits_tells_its_place_in_the_line(api: Caller) -> None:
    chat = api.post("/chats/", {"provider": "scripted"}).json()["id"]
    first = api.post(f"/chats/{chat}/messages/", {"text": "one"}).json()["run"]
    found = api.get(f"/runs/{first['id']}/").json()
    assert (found["run"]["status"], found["place"]) == ("queued", 1)
    assert api.get(f"/runs/{chat}/").status_code == 404
