"""A person who uses the REST API of a running server."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import httpx

from tests.services.server import Server


class Client:
    """Signed in by the printed link, as the owner."""

    def __init__(self, server: Server, link: str = "") -> None:
        self.http = httpx.Client(base_url=server.url, timeout=30)
        link = link or server.link
        self.http.get(link)
        answer = self.http.post(link, data={"csrfmiddlewaretoken": self.csrf}, headers={"Referer": link})
        assert answer.status_code == 302, answer.text

    def at(self, server: Server) -> Client:
        """The same session at another process of the same installation."""
        other = Client.__new__(Client)
        other.http = httpx.Client(base_url=server.url, timeout=30, cookies=dict(self.http.cookies))
        return other

    @property
    def csrf(self) -> str:
        return self.http.cookies["agentchat_csrf"]

    def get(self, path: str, **query: Any) -> Any:
        return self.http.get(f"/api/v1{path}", params=query).json()

    def all(self, path: str) -> list[Any]:
        """Every page of a list."""
        page = self.get(path)
        found = page["results"]
        while page["next"]:
            page = self.http.get(page["next"]).json()
            found += page["results"]
        return list(found)

    def post(self, path: str, body: Any = None) -> httpx.Response:
        return self.http.post(f"/api/v1{path}", json=body or {}, headers={"X-CSRFToken": self.csrf})

    def chat(self, text: str, provider: str = "shell", **more: Any) -> str:
        """Make a chat and send its first message; returns the chat's id."""
        chat = self.post("/chats/", {"provider": provider, **more})
        assert chat.status_code == 201, chat.text
        self.say(chat.json()["id"], text)
        return str(chat.json()["id"])

    def say(self, chat: str, text: str) -> Any:
        answer = self.post(f"/chats/{chat}/messages/", {"text": text})
        assert answer.status_code == 201, answer.text
        return answer.json()

    def snapshot(self, chat: str) -> Any:
        return self.get(f"/chats/{chat}/snapshot/")

    def items(self, chat: str) -> list[Any]:
        return [item for message in self.snapshot(chat)["messages"] for item in message["items"]]

    def pending(self, count: int = 1) -> list[Any]:
        return until(
            lambda: found if len(found := self.get("/approvals/", state="pending")["results"]) >= count else None
        )

    def decide(self, item: Any, action: str = "approve", **more: Any) -> httpx.Response:
        return self.post(f"/approvals/{item['id']}/decision/", {"action": action, "digest": item["digest"], **more})

    def run(self, chat: str) -> Any:
        return self.snapshot(chat)["messages"][-1]["run"]


def until(look: Callable[[], Any], seconds: float = 20) -> Any:
    """What `look` gives, as soon as it gives something."""
    end = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)
    return found
