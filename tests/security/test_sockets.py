"""Who may listen, by the real server: sockets of our own pages, of people who are signed in, of their own chats."""

from __future__ import annotations

import base64
import os
import socket
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import websockets
from websockets.sync.client import connect

from agentchat import routing
from tests.services.client import Client
from tests.services.server import Server

TOKEN = (
    "from django.contrib.auth import get_user_model as m; from agentchat.services import signin as s;"
    "u = m().objects.get_or_create(username='{name}', defaults=dict(is_staff={staff}, is_superuser={staff}))[0];"
    "print(s.token(u))"
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


def person(server: Server, name: str, staff: bool = False) -> Client:
    said = server.manage("shell", "-c", TOKEN.format(name=name, staff=staff)).stdout
    return Client(server, f"{server.url}/accounts/link/{said.split()[-1]}/")


@pytest.fixture(scope="module")
def ada(server: Server) -> Client:
    return person(server, "ada")


@pytest.fixture(scope="module")
def chat(ada: Client) -> str:
    return str(ada.post("/chats/", {"provider": "scripted"}).json()["id"])


def cookies(client: Client | None) -> dict[str, str]:
    return {"Cookie": "; ".join(f"{name}={value}" for name, value in client.http.cookies.items())} if client else {}


def handshake(server: Server, client: Client, host: str, origin: str | None, path: str = "/ws/inbox/") -> int:
    """The status of the answer, with these very headers."""
    lines = [
        f"GET {path} HTTP/1.1", f"Host: {host}", "Upgrade: websocket", "Connection: Upgrade",
        "Sec-WebSocket-Key: " + base64.b64encode(os.urandom(16)).decode(), "Sec-WebSocket-Version: 13",
        f"Cookie: {cookies(client)['Cookie']}", *([f"Origin: {origin}"] if origin is not None else []),
    ]  # fmt: skip
    with socket.create_connection(("127.0.0.1", server.port), 10) as raw:
        raw.sendall("\r\n".join([*lines, "", ""]).encode())
        return int(raw.recv(4000).split()[1])


def test_our_own_page_may_listen(server: Server, ada: Client) -> None:
    for host in ("127.0.0.1", "localhost"):
        assert handshake(server, ada, f"{host}:{server.port}", f"http://{host}:{server.port}") == 101


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1.evil.example:{port}", "a b"])
@pytest.mark.parametrize("origin", ["http://127.0.0.1:{port}", "http://evil.example", "http://evil.example:{port}"])
def test_a_foreign_host_is_refused(server: Server, ada: Client, host: str, origin: str) -> None:
    named = host.format(port=server.port), origin.format(port=server.port)
    assert handshake(server, ada, *named) in (400, 403)


@pytest.mark.parametrize(
    "origin",
    [
        "http://127.0.0.1:1",
        "http://127.0.0.1",
        "http://localhost:{port}",
        "https://127.0.0.1:{port}",
        "http://127.0.0.1:{port}.evil.example",
        "http://127.0.0.1:{port}@evil.example",
        "http://evil.example/?http://127.0.0.1:{port}",
        "http://evil.example",
        "file://",
        "null",
        "",
        None,
    ],
)
@pytest.mark.parametrize("path", ["/ws/inbox/", "/ws/chats/{chat}/"])
def test_a_page_of_another_site_may_not_listen(
    server: Server, ada: Client, chat: str, origin: str | None, path: str
) -> None:
    """Cookies do not tell ports apart, so whatever else serves pages on this machine is another site."""
    named = None if origin is None else origin.format(port=server.port)
    assert handshake(server, ada, f"127.0.0.1:{server.port}", named, path.format(chat=chat)) in (400, 403)


def close_code(server: Server, path: str, client: Client | None, say: Any = None) -> int:
    with connect(server.ws_url + path, origin=server.url, additional_headers=cookies(client)) as opened:
        if say is not None:
            opened.send(say)
        with pytest.raises(websockets.ConnectionClosed) as closed:
            while True:
                opened.recv(timeout=10)
    return closed.value.rcvd.code if closed.value.rcvd else 0


@pytest.mark.parametrize("path", ["/ws/inbox/", "/ws/chats/{chat}/", "/ws/chats/{chat}/?after=0"])
def test_signed_out_is_4401(server: Server, chat: str, path: str) -> None:
    assert close_code(server, path.format(chat=chat), None) == 4401


@pytest.mark.parametrize("staff", [False, True], ids=["a person", "staff"])
@pytest.mark.parametrize("query", ["", "?after=0", "?after=999999"])
def test_the_chat_of_somebody_else_is_4404_as_one_that_is_not(
    server: Server, chat: str, query: str, staff: bool
) -> None:
    other = person(server, "root" if staff else "mallory", staff)
    assert close_code(server, f"/ws/chats/{chat}/{query}", other) == 4404
    assert close_code(server, f"/ws/chats/{uuid.uuid4()}/{query}", other) == 4404


def test_a_deleted_chat_says_so_and_is_4404(server: Server, ada: Client) -> None:
    made = ada.post("/chats/", {"provider": "scripted"}).json()["id"]
    with connect(f"{server.ws_url}/ws/chats/{made}/", origin=server.url, additional_headers=cookies(ada)) as opened:
        assert '"type": "snapshot"' in opened.recv(timeout=10)
        ada.http.delete(f"/api/v1/chats/{made}/", headers={"X-CSRFToken": ada.csrf})
        assert '"kind":"chat.deleted"' in opened.recv(timeout=10)
    assert close_code(server, f"/ws/chats/{made}/", ada) == 4404


@pytest.mark.parametrize("say", ["hello", b"\x00\xff", "", '{"type": "subscribe"}'], ids=repr)
@pytest.mark.parametrize("path", ["/ws/inbox/", "/ws/chats/{chat}/"])
def test_who_speaks_is_4400(server: Server, ada: Client, chat: str, path: str, say: Any) -> None:
    assert close_code(server, path.format(chat=chat), ada, say) == 4400


def test_another_path_is_refused(server: Server, ada: Client) -> None:
    host = f"127.0.0.1:{server.port}"
    for path in ("/ws/", "/ws/chats/", "/ws/chats/not-an-id/", "/ws/users/1/", "/"):
        assert handshake(server, ada, host, f"http://{host}", path) not in (101, 200)


@pytest.mark.parametrize(
    ("origin", "proto", "own"),
    [
        ("https://chat.example.org", "https", True),
        ("https://friend.example.org", "https", True),
        ("http://chat.example.org", "https", False),
        ("https://chat.example.org:8443", "https", False),
        ("https://chat.example.org", "http", False),
        ("https://other.example.org", "https", False),
    ],
)
def test_behind_tls_the_rule_is_that_of_forms(settings: Any, origin: str, proto: str, own: bool) -> None:
    settings.ALLOWED_HOSTS = ["chat.example.org"]
    settings.CSRF_TRUSTED_ORIGINS = ["https://friend.example.org"]
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    headers = {"host": "chat.example.org", "origin": origin, "x-forwarded-proto": proto}
    scope = {
        "type": "websocket",
        "scheme": "ws",
        "path": "/ws/inbox/",
        "query_string": b"\xff",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    assert routing._is_own(scope) is own
