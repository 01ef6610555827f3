"""Who gets in, from where, and what the pages allow."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import websockets
from websockets.sync.client import connect

from tests.services.client import Client
from tests.services.server import ROOT, Server


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Server) -> Client:
    return Client(server, server.url + fresh_link(server))


# The sign-in link


def fresh_link(server: Server) -> str:
    made = server.manage("shell", "-c", "from agentchat.services import signin as s; print(s.token(s.owner()))")
    return f"/accounts/link/{made.stdout.split()[-1]}/"


def press(server: Server, link: str, **headers: str) -> int:
    with httpx.Client(base_url=server.url) as http:
        http.get(link)
        data = {"csrfmiddlewaretoken": http.cookies["agentchat_csrf"]}
        return http.post(link, data=data, headers={"Referer": server.url, **headers}).status_code


def test_the_link_works_once_and_looking_uses_nothing_up(server: Server) -> None:
    link = fresh_link(server)
    for _ in range(3):
        assert httpx.get(server.url + link).status_code == 200
    assert press(server, link) == 302
    assert press(server, link) == 404


def test_of_two_who_open_it_at_once_one_gets_in(server: Server) -> None:
    link = fresh_link(server)
    barrier, codes = threading.Barrier(2), []

    def go() -> None:
        with httpx.Client(base_url=server.url) as http:
            http.get(link)
            barrier.wait(10)
            data = {"csrfmiddlewaretoken": http.cookies["agentchat_csrf"]}
            codes.append(http.post(link, data=data, headers={"Referer": server.url}).status_code)

    threads = [threading.Thread(target=go) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(codes) == [302, 404]


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded"])
def test_the_link_works_only_from_this_machine(server: Server, header: str) -> None:
    link = fresh_link(server)
    assert press(server, link, **{header: "203.0.113.9"}) == 404
    assert press(server, link) == 302


def test_a_forged_link_is_refused(server: Server) -> None:
    assert press(server, "/accounts/link/WzEsIiJd:1xYFTj:f4MFA_cerW8iBvGEgYPv90TlsWeNfDIp0pdv8MuRGdg/") == 404


# Other sites


@pytest.mark.parametrize("path", ["/", "/api/v1/chats/", "/accounts/login/", "/admin/"])
def test_a_foreign_host_is_refused(server: Server, path: str) -> None:
    assert httpx.get(server.url + path, headers={"Host": "evil.example"}).status_code == 400


def cookies(client: Client) -> dict[str, str]:
    return {"Cookie": "; ".join(f"{name}={value}" for name, value in client.http.cookies.items())}


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "https://127.0.0.1.evil.test", "http://localhost.evil.test:8080", None]
)
def test_s29_a_socket_of_another_site_is_refused(server: Server, client: Client, origin: Any) -> None:
    with pytest.raises(websockets.InvalidStatus) as refused:
        connect(f"{server.ws_url}/ws/inbox/", origin=origin, additional_headers=cookies(client))
    assert refused.value.response.status_code == 403


def test_a_socket_for_a_foreign_host_is_refused(server: Server, client: Client) -> None:
    headers = cookies(client) | {"Host": "evil.example"}
    with pytest.raises(websockets.InvalidStatus):
        connect(f"{server.ws_url}/ws/inbox/", origin="http://evil.example", additional_headers=headers)


def test_s29_a_form_of_another_site_changes_nothing(server: Server, client: Client) -> None:
    for headers in ({}, {"X-CSRFToken": client.csrf, "Origin": "https://evil.example"}):
        answer = client.http.post("/api/v1/chats/", json={"provider": "shell"}, headers=headers)
        assert answer.status_code == 403
    assert client.get("/chats/")["results"] == []


def close_code(server: Server, path: str, headers: dict[str, str], say: str = "") -> int:
    with connect(server.ws_url + path, origin=server.url, additional_headers=headers) as socket:
        if say:
            socket.send(say)
        with pytest.raises(websockets.ConnectionClosed) as closed:
            while True:
                socket.recv(timeout=10)
    return closed.value.rcvd.code if closed.value.rcvd else 0


def test_a_socket_tells_why_it_closes(server: Server, client: Client) -> None:
    chat = client.post("/chats/", {"provider": "shell"}).json()["id"]
    assert close_code(server, f"/ws/chats/{chat}/", {}) == 4401
    assert close_code(server, "/ws/inbox/", {}) == 4401
    assert close_code(server, f"/ws/chats/{uuid.uuid4()}/", cookies(client)) == 4404
    assert close_code(server, f"/ws/chats/{chat}/", cookies(client), say="hello") == 4400


def test_a_socket_begins_with_a_snapshot_unless_it_can_go_on(server: Server, client: Client) -> None:
    chat = client.post("/chats/", {"provider": "scripted"}).json()["id"]
    with connect(f"{server.ws_url}/ws/chats/{chat}/", origin=server.url, additional_headers=cookies(client)) as socket:
        frame = json.loads(socket.recv(timeout=10))
    assert (frame["type"], frame["cursor"], frame["messages"]) == ("snapshot", 0, [])


# The pages


PAGES = ["/", "/chats/new/", "/approvals/", "/settings/", "/accounts/login/", "/nothing-here/", "/admin/",
         "/admin/agentchat/resolution/", "/admin/agentchat/pendingapproval/", "/api/v1/nothing/"]  # fmt: skip


@pytest.mark.parametrize("path", PAGES)
def test_every_page_has_a_strict_policy_and_nothing_inline(client: Client, path: str) -> None:
    answer = client.http.get(path, follow_redirects=True)
    policy = answer.headers["Content-Security-Policy"]
    assert "script-src 'self'" in policy and "unsafe" not in policy and "default-src 'none'" in policy
    assert answer.headers["X-Frame-Options"] == "DENY" and answer.headers["X-Content-Type-Options"] == "nosniff"
    if not path.startswith("/admin/"):
        assert not re.search(r"<script(?![^>]*src=)|<style|\sstyle=|\son\w+=", answer.text)


@pytest.mark.slow
def test_the_production_settings_pass_djangos_check(tmp_path: Any) -> None:
    environment = os.environ | {
        "AGENTCHAT_VAR": str(tmp_path), "AGENTCHAT_PRODUCTION": "1", "ALLOWED_HOSTS": "chat.example.org",
        "SECRET_KEY": "0aZ-" * 5 + uuid.uuid4().hex + "Qx_9" * 5, "DJANGO_SETTINGS_MODULE": "project.settings",
    }  # fmt: skip
    command = [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "no issues" in done.stdout
    for name in ("SECRET_KEY", "ALLOWED_HOSTS"):
        refused = subprocess.run(
            command, cwd=ROOT, env=environment | {name: ""}, capture_output=True, text=True, check=False
        )
        assert refused.returncode and name in refused.stderr
