"""Literal pieces of the wire (docs/protocol.md), and the templates rendered from them. No database is read."""

from __future__ import annotations

import itertools
import json
from html.parser import HTMLParser
from typing import Any
from uuid import UUID

from django.template.loader import render_to_string

from agentchat.web import cards, transcript

Wire = dict[str, Any]
ME = "juniper"
CHAT = str(UUID(int=1))
AT = "2026-03-04T05:06:07.000000Z"
LATER = "2026-03-04T05:06:19.000000Z"
HASH = "8f21" + "0" * 60
DIGEST = "9f3ca1e0" + "0" * 56
_ids = itertools.count(100)


class User:
    is_authenticated, is_staff = True, False

    def __init__(self, name: str = ME) -> None:
        self.name = name

    def get_username(self) -> str:
        return self.name


def new_id() -> str:
    return str(UUID(int=next(_ids)))


def chat(**given: Any) -> Wire:
    made: Wire = {
        "id": CHAT, "title": "Flaky checkout test", "provider": "shell", "provider_label": "Claude Code",
        "workspace": "/srv/orders", "approval_mode": "ask", "pinned": False, "archived": False,
        "created_at": AT, "updated_at": LATER,
    }  # fmt: skip
    return made | given


def run(status: str = "completed", **given: Any) -> Wire:
    made: Wire = {
        "id": new_id(), "chat": CHAT, "message": "", "provider": "shell", "status": status, "stopping": False,
        "error": "", "created_at": AT, "started_at": None if status == "queued" else AT,
        "ended_at": None if status in ("running", "waiting") else LATER,
    }  # fmt: skip
    return made | given


def item(type: str, status: str = "completed", **given: Any) -> Wire:
    made: Wire = {
        "id": new_id(), "message": "", "position": 0, "type": type, "status": status, "version": 1, "meta": {},
        "created_at": AT, "ended_at": None if status in ("in_progress", "pending") else LATER,
    }  # fmt: skip
    return made | given


def text(said: str, html: str = "", end: int = 0, type: str = "message", **given: Any) -> Wire:
    part = {"type": "output_text" if type == "message" else "reasoning_text", "text": said}
    return item(type, content=[part], html=html, html_end=end, blocks=int(bool(html)), **given)


def call(arguments: Any = None, name: str = "shell", **given: Any) -> Wire:
    made = json.dumps({"command": "git push"} if arguments is None else arguments)
    fields: Wire = {
        "call_id": "c1", "parent_call_id": "", "name": name, "arguments": made, "digest": DIGEST, "request": None,
        "expires_at": None, "resolution": None,
    }  # fmt: skip
    return item("function_call", **fields | given)


def output(of: Wire, said: str, **given: Any) -> Wire:
    part = {"type": "input_text", "text": said}
    fields: Wire = {"call": of["id"], "call_id": of["call_id"], "name": of["name"], "output": [part], "cut": None}
    return item("function_call_output", **fields | {"bytes": len(said.encode())} | given)


def request(kind: str = "command", level: str = "medium", **given: Any) -> Wire:
    return {
        "kind": kind,
        "title": "",
        "cwd": "",
        "reason": "",
        "risk": {"level": level, "why": "sends commits"},
    } | given


def question(**given: Any) -> Wire:
    option = [{"label": "red", "description": "like a door"}, {"label": "blue", "description": ""}]
    return {"id": "q", "question": "Which colour?", "header": "Colour", "options": option, "multiple": False} | given


def ask(kind: str = "command", status: str = "pending", arguments: Any = None, **given: Any) -> Wire:
    """A call that waits for a person."""
    fields = {"request": request(kind)} | given
    return call(arguments, name="ask_user" if kind == "question" else "shell", status=status, **fields)


def resolution(action: str = "approve", cause: str = "person", delivered: bool = True, **given: Any) -> Wire:
    made: Wire = {
        "id": 7, "item": "", "action": action, "cause": cause, "tool": "shell", "arguments": None, "answers": None,
        "reason": "", "scope": "once", "rule": "", "decided_by": ME if cause == "person" else None,
        "decided_via": "browser", "digest": DIGEST, "final_digest": DIGEST, "displayed_at": AT, "decided_at": AT,
        "hash": HASH, "receipt": {"delivered_at": LATER, "run": None} if delivered else None,
    }  # fmt: skip
    return made | given


def said(words: str = "Push it.", position: int = 0, **given: Any) -> Wire:
    made: Wire = {
        "id": new_id(), "position": position, "parent": None, "role": "user", "author": ME, "text": words, "usage": None,
        "error": "", "created_at": AT, "ended_at": AT, "items": [], "run": None,
    }  # fmt: skip
    return made | given


def answer(of: Wire | None, *items: Wire, status: str = "completed", **given: Any) -> Wire:
    made = said("", position=of["position"] + 1 if of else 1) | {
        "role": "assistant", "author": None, "parent": of["id"] if of else None, "items": list(items), "run": run(status),
    }  # fmt: skip
    return made | given


def snapshot(*messages: Wire, more: bool = False, **of_chat: Any) -> Wire:
    return {"cursor": 41, "chat": chat(**of_chat), "messages": list(messages), "more": more}


def talk(*items: Wire, status: str = "completed", words: str = "Push it.", **given: Any) -> Wire:
    """A chat of one turn."""
    first = said(words)
    return snapshot(first, answer(first, *items, status=status, **given))


def shell(**given: Any) -> Wire:
    """What the context processors add to every page."""
    side = {"needs": [], "working": [], "done": [], "pending": 0}
    return {"user": User(), "theme": "", "keys": "on", "side": side, "csrf_token": "t" * 64} | given


def page(name: str, **context: Any) -> str:
    return render_to_string(f"agentchat/{name}.html", shell() | context)


def of_chat(snapshot: Wire, name: str = "chat", me: str = ME) -> str:
    shown = transcript.build(snapshot, me)
    return page(name, t=shown, chat=shown.chat, agent=shown.agent, user=User(me))


def of_piece(item: Wire, *outputs: Wire, alone: bool = False, **options: Any) -> str:
    shown = transcript.piece(item, list(outputs), chat(), ME, **options)
    return page("parts/piece", piece=shown, seq=41, chat=chat(), alone=alone)


def of_inbox(*items: Wire, decided: tuple[Wire, ...] = (), opened: Wire | None = None, name: str = "inbox") -> str:
    pending, settled = ([cards.build(row, chat(), ME) for row in rows] for rows in (items, decided))
    found = next((card for card in [*pending, *settled] if opened and card.id == opened["id"]), None)
    return page(
        name, pending=pending, decided=settled, pending_count=len(pending),
        opened=found or (pending[0] if pending else None), view="peek" if found else "list",
    )  # fmt: skip


class Document(HTMLParser):
    """The elements and the text of a page, as a browser reads them (roughly)."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.repeated: list[str] = []
        self.words: list[str] = []
        self.fields: list[str] = []
        """What stands in fields for the person to edit, as a browser reads it: less a first line feed."""
        self._in_field = False
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        self._in_field = tag == "textarea"
        self.words.append(" ")
        self.repeated += [f"{tag} {name}" for name in set(names) if names.count(name) > 1]
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        self._in_field = False
        self.words.append(" ")

    def handle_data(self, data: str) -> None:
        if self._in_field:
            self.fields.append(data.removeprefix("\n"))
        else:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())

    def all(self, attribute: str, value: str | None = None) -> list[dict[str, str]]:
        found = [attrs for _, attrs in self.elements if attribute in attrs]
        return [attrs for attrs in found if value is None or attrs[attribute] == value]

    def one(self, attribute: str, value: str | None = None) -> dict[str, str]:
        [only] = self.all(attribute, value)
        return only

    def classed(self, name: str) -> list[dict[str, str]]:
        return [attrs for _, attrs in self.elements if name in attrs.get("class", "").split()]
