"""Every route that there is, found in the URLs themselves, so that a new one cannot be forgotten."""

from __future__ import annotations

import itertools
import re
import uuid
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.contenttypes.models import ContentType
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from agentchat.models import Chat, Message, OutputItem, Resolution, Run
from agentchat.services import approvals, chats
from tests import made

pytestmark = [pytest.mark.django_db, pytest.mark.databases]

METHODS = ("get", "post", "put", "patch", "delete")
EVIL = '</script><script>alert(1)</script><svg onload=alert(1)><i style="color:red">x</i> [y](javascript:alert(1))'


def routes(of: Any = None, before: str = "") -> Iterator[str]:
    """All paths, with their converters, e.g. `/chats/<uuid:chat_id>/`."""
    for one in (of or get_resolver()).url_patterns:
        path = before + str(one.pattern)
        if isinstance(one, URLResolver):
            yield from routes(one, path)
        elif isinstance(one, URLPattern):
            yield f"/{path}".replace("\\Z", "").replace("$", "").replace("^", "")


ALL = sorted(set(routes()))
OF_SOMEBODY = [path for path in ALL if "<uuid:" in path]


class World:
    """A person's chat with one item of each kind, each as hostile as can be, and a request that waits."""

    def __init__(self) -> None:
        self.owner = get_user_model().objects.create_superuser("ada", password="x")
        self.chat = chats.create(user=self.owner, provider="scripted", title=EVIL[:200])
        self.message = made.answer_in(self.chat)
        Message.objects.filter(pk=self.message.pk).update(error=EVIL)
        Message.objects.filter(chat=self.chat, role="user").update(text=EVIL)
        for kind, columns in (
            ("message", {"html": "<p>ok</p>", "text": EVIL}),
            ("reasoning", {"text": EVIL}),
            ("notice", {"text": EVIL, "meta": {"level": EVIL}}),
            ("plan", {"meta": {"steps": [{"step": EVIL, "state": EVIL}]}}),
        ):
            made.item_in(self.message, kind, **columns)  # type: ignore[arg-type]
        call = made.item_in(self.message, "function_call", name=EVIL, call_id=EVIL, arguments='{"a": 1}')  # type: ignore[arg-type]
        made.item_in(self.message, "function_call_output", name=EVIL, call_id=EVIL, output_of=call, text=EVIL)  # type: ignore[arg-type]
        decided = self._request()
        approvals.decide(
            self.owner, decided.pk, approvals.Decision("reject", decided.digest, reason=EVIL), via="api", proof="t"
        )
        self.item = self._request()
        self.run = Run.objects.get()

    def _request(self) -> OutputItem:
        return made.request_in(self.message, {"command": EVIL}, request={"kind": "command", "title": EVIL})

    def at(self, path: str) -> str:
        ids = {"chat_id": self.chat.pk, "message_id": self.message.pk, "item_id": self.item.pk, "run_id": self.run.pk}
        return re.sub(r"<uuid:(\w+)>", lambda match: str(ids[match[1]]), path)


@pytest.fixture
def world(db: None) -> World:
    return World()


def state() -> list[Any]:
    rows = [Chat.objects.order_by("pk"), Message.objects.order_by("pk"), OutputItem.objects.order_by("pk")]
    return [list(each.values()) for each in (*rows, Run.objects.order_by("pk"), Resolution.objects.order_by("pk"))]


def body(path: str) -> Any:
    """One that makes sense, so that it is not the body that is refused."""
    if path.endswith("/messages/"):
        return {"text": "hello"}
    if path.endswith("/decision/"):
        return {"action": "approve", "digest": "0" * 64}
    return {"title": "Mine"} if path.count("/") == 5 and "/chats/" in path else {}


def test_there_are_routes_of_both_doors() -> None:
    assert sum(path.startswith("/api/v1/") for path in OF_SOMEBODY) >= 9
    assert sum(path.startswith("/chats/") for path in OF_SOMEBODY) >= 5


@pytest.mark.parametrize("staff", [False, True], ids=["a person", "staff"])
@pytest.mark.parametrize(("path", "method"), list(itertools.product(OF_SOMEBODY, METHODS)))
def test_what_is_somebody_elses_is_not_there(world: World, path: str, method: str, staff: bool) -> None:
    """The same answer, byte for byte, as for what does not exist; and nothing changes."""
    client = Client()
    client.force_login(get_user_model().objects.create_user("mallory", is_staff=staff, is_superuser=staff))
    before = state()
    foreign = world.at(path)
    nowhere = re.sub(r"<uuid:\w+>", lambda match: str(uuid.uuid4()), path)
    answers = [getattr(client, method)(one, body(path), content_type="application/json") if method != "get"
               else client.get(one) for one in (foreign, nowhere)]  # fmt: skip
    assert {answer.status_code for answer in answers} <= {404, 405}
    assert _without_ids(answers[0].content) == _without_ids(answers[1].content)
    assert state() == before


def _without_ids(content: bytes) -> str:
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID", content.decode())


@pytest.mark.parametrize("path", OF_SOMEBODY)
def test_there_is_a_method_by_which_the_owner_finds_it(world: World, path: str) -> None:
    """So that the 404s above are not those of wrong paths."""
    client = Client()
    client.force_login(world.owner)
    statuses = []
    for method in ("get", "post"):
        send = getattr(client, method)
        data = body(path) if method == "post" else {}
        more = {"content_type": "application/json"} if method == "post" else {}
        statuses.append(send(world.at(path), data, **more).status_code)
    assert any(status not in (404, 405) for status in statuses), statuses


# The policy


class Inline(HTMLParser):
    """What a strict policy would block: scripts and styles that stand in the page itself."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        is_data = tag == "script" and given.get("type") in ("application/json", "application/ld+json")
        if tag == "style" or (tag == "script" and not given.get("src") and not is_data):
            self.found.append(f"<{tag}>")
        self.found += [f"{tag} {name}" for name in given if name == "style" or name.startswith("on")]
        for name in ("href", "src", "action", "formaction"):
            if re.match(r"\s*(javascript|data|vbscript):", given.get(name) or "", re.IGNORECASE):
                self.found.append(f"{tag} {name}={given[name]}")


def check(answer: Any) -> None:
    policy = dict(part.split(maxsplit=1) for part in answer.headers["Content-Security-Policy"].split("; "))
    assert (policy["default-src"], policy["script-src"], policy["style-src"]) == ("'none'", "'self'", "'self'")
    assert (policy["base-uri"], policy["frame-ancestors"], policy["form-action"]) == ("'none'", "'none'", "'self'")
    assert "unsafe" not in str(policy) and "*" not in str(policy)
    assert policy["img-src"] == "'self' data:"
    if "html" in answer.headers.get("Content-Type", ""):
        assert Inline(answer.content.decode()).found == []


def admin_paths(world: World) -> list[str]:
    """The admin's own routes, with real objects in them."""
    kind = ContentType.objects.get_for_model(Chat).pk
    names = {"app_label": "agentchat", "content_type_id": kind, "object_id": world.chat.pk, "url": "nothing/"}
    paths = []
    for path in (one for one in ALL if one.startswith("/admin/")):
        model = path.split("/")[3] if path.count("/") > 3 else ""
        paths.append(re.sub(r"<path:object_id>|<id>", str(_object(model, world)), path))
    named = r"<\w+:(\w+)>|\(\?P<(\w+)>[^)]*\)"
    return [re.sub(named, lambda match: str(names[match[1] or match[2]]), path) for path in paths]


def _object(model: str, world: World) -> Any:
    known = {"chat": world.chat, "message": world.message, "outputitem": world.item, "run": world.run,
             "pendingapproval": world.item, "resolution": Resolution.objects.get(), "user": world.owner,
             "<path:content_type_id>": world.chat}  # fmt: skip
    return known[model].pk if model in known else 1


def test_the_pages_of_the_owner_have_the_policy_and_nothing_inline(world: World) -> None:
    client = Client()
    client.force_login(world.owner)
    paths = [world.at(path) for path in ALL if not path.startswith("/admin/")]
    paths = [path.replace("<str:token>", "x:y:z") for path in paths] + admin_paths(world)
    shown = 0
    for path in [*paths, "/?q=x", f"/approvals/?open={world.item.pk}", "/nothing/", "/admin/nothing/"]:
        answer = client.get(path)
        check(answer)
        shown += answer.status_code == 200 and "html" in answer.headers["Content-Type"]
    assert shown > 30


def test_signed_out_and_refused_pages_have_it_too(world: World) -> None:
    client = Client(enforce_csrf_checks=True)
    for path in ("/accounts/login/", "/admin/login/", "/", "/api/v1/chats/", f"/chats/{world.chat.pk}/"):
        check(client.get(path))
    check(client.post("/accounts/logout/", HTTP_HOST="evil.example"))
    check(client.get("/", HTTP_HOST="evil.example"))


@pytest.mark.parametrize("path", ["/accounts/login/", "/settings/look/", "/accounts/link/x/", "/admin/login/"])
def test_the_page_for_a_form_without_its_token_is_ours(world: World, path: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(world.owner)
    answer = client.post(path)
    assert answer.status_code == 403
    check(answer)


def test_what_breaks_has_it_too(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("on purpose")

    client = Client(raise_request_exception=False)
    client.force_login(world.owner)
    monkeypatch.setattr("agentchat.services.lists.chat_list", broken)
    monkeypatch.setattr("agentchat.services.snapshot.chat_snapshot", broken)
    for path in ("/", f"/chats/{world.chat.pk}/", f"/api/v1/chats/{world.chat.pk}/snapshot/"):
        answer = client.get(path)
        assert answer.status_code == 500
        assert b"on purpose" not in answer.content
        check(answer)


# Other hosts and other sites


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "127.0.0.1@evil.example", "a b", ""])
def test_a_foreign_host_is_refused_on_every_route(world: World, host: str) -> None:
    client = Client(HTTP_HOST=host, SERVER_NAME="evil.example")
    client.force_login(world.owner)
    for path in ("/", "/accounts/login/", "/api/v1/chats/", "/admin/", f"/chats/{world.chat.pk}/", "/nothing/"):
        answer = client.get(path)
        assert answer.status_code == 400, path


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "http://testserver.evil.example", "https://testserver", "http://testserver:9"],
)
def test_a_form_of_another_site_is_refused(world: World, origin: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(world.owner)
    token = client.get("/settings/").cookies["agentchat_csrf"].value
    before = state()
    for path in ("/settings/look/", "/chats/new/", "/accounts/logout/", f"/api/v1/chats/{world.chat.pk}/messages/"):
        answer = client.post(path, {"csrfmiddlewaretoken": token}, headers={"Origin": origin, "X-CSRFToken": token})
        assert answer.status_code == 403, path
    assert state() == before
    own = client.post(
        "/settings/look/", {"theme": "dark"}, headers={"Origin": "http://testserver", "X-CSRFToken": token}
    )
    assert own.status_code == 302
