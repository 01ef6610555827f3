"""Whatever an agent (or a person) sends is text on the page: never an element, an attribute or a script."""

from __future__ import annotations

from typing import Any

import pytest

from agentchat.rendering import markdown
from tests.web import literal
from tests.web.literal import Document, answer, ask, call, item, output, question, request, resolution, said, snapshot

EVIL = """'"><img src=q onerror=alert(1)><script>alert(2)</script></textarea></title><a href=javascript:alert(3)>"""
EVENTS = ("onerror", "onload", "onclick", "onmouseover", "onfocus")


def whole() -> literal.Wire:
    """A chat in which every text that comes from outside is hostile."""
    first, stream = said(EVIL, author=EVIL), markdown.MarkdownStream()
    rendered = "".join(block.html for block in [*stream.feed(EVIL), *stream.finish()])
    asked = request(EVIL, EVIL, title=EVIL, cwd=EVIL, reason=EVIL, risk={"level": EVIL, "why": EVIL})
    options = [{"label": EVIL, "description": EVIL}]
    questions = [question(id=EVIL, question=EVIL, header=EVIL, options=options, multiple=EVIL)]
    tool = call({EVIL: EVIL}, name=EVIL, call_id=EVIL, meta={"exit_code": EVIL})
    command = ask(request=request(cwd=EVIL, reason=EVIL), arguments={"command": EVIL}, digest=EVIL)
    items = [
        literal.text(EVIL, rendered, len(EVIL)), literal.text(EVIL, status="in_progress"),
        literal.text(EVIL, rendered, len(EVIL), type="reasoning"), item("notice", text=EVIL, meta={"level": EVIL}),
        item("notice", text=EVIL, meta={"level": "warn"}), item("plan", meta={"steps": [{"step": EVIL, "state": EVIL}]}),
        tool, output(tool, EVIL), output(tool, EVIL, status="in_progress"), command,
        ask(EVIL, request=asked, arguments={"command": EVIL}), ask("question", request=request("question", questions=questions)),
        ask(status="rejected", resolution=resolution("reject", reason=EVIL, decided_by=EVIL, hash=EVIL)),
        ask(status="completed", resolution=resolution(arguments=f'{{"command": {literal.json.dumps(EVIL)}}}')),
        ask(status="completed", resolution=resolution(arguments=EVIL)),
        ask("question", status="completed", request=request("question", questions=questions),
            resolution=resolution("answer", answers={EVIL: {"choices": [EVIL], "text": EVIL}})),
    ]  # fmt: skip
    second, third = said(EVIL, 2), said("x", 4)
    return snapshot(
        first, answer(first, *items, status="waiting", error=EVIL, usage={"input_tokens": EVIL}),
        second, answer(second, status="queued"), third, answer(third, status="failed", error=EVIL),
        title=EVIL, workspace=EVIL, provider_label=EVIL, approval_mode=EVIL,
    )  # fmt: skip


def pages() -> dict[str, str]:
    made = whole()
    items = made["messages"][1]["items"]
    row = {"id": literal.CHAT, "title": EVIL, "updated_at": literal.AT, "pending": 1, "status": EVIL}
    side = {"needs": [row], "working": [row], "done": [row], "pending": 1}
    waits = [one for one in items if one["type"] == "function_call" and one["status"] == "pending"]
    found = [{"key": EVIL, "label": EVIL, "about": EVIL, "detail": EVIL, "ready": flag} for flag in (True, False)]
    problems = dict.fromkeys(("text", "provider", "workspace", "mode"), EVIL)
    form: Any = {"text": EVIL, "provider": EVIL, "workspace": EVIL, "mode": EVIL, "problems": problems}
    choices: Any = {"providers": found, "ready": found[:1], "workspaces": [EVIL], "modes": [(EVIL, EVIL, EVIL)]}
    failed = {"errors": True, "username": {"value": EVIL}}
    return {
        "chat": literal.of_chat(made),
        "inbox": literal.of_inbox(*waits, decided=tuple(one for one in items if one.get("resolution"))),
        "chats": literal.page("chats", side=side, q=EVIL, user=literal.User(EVIL)),
        "no chats": literal.page("chats", q=EVIL),
        "new": literal.page("new-chat", form=form, **choices),
        "first": literal.page("first-run", **choices),
        "settings": literal.page("settings", user=literal.User(EVIL)),
        "sign in": literal.page("sign-in", form=failed, next=EVIL),
        "link": literal.page("sign-in-link", problem=EVIL),
        "error": literal.page("error", status=404, heading=EVIL, text=EVIL),
    }  # fmt: skip


@pytest.fixture(scope="module")
def drawn() -> dict[str, Document]:
    return {name: Document(html) for name, html in pages().items()}


def test_no_text_becomes_an_element(drawn: dict[str, Document]) -> None:
    for name, page in drawn.items():
        assert not {tag for tag, _ in page.elements} & {"img", "iframe", "object", "embed", "base", "style"}, name


def test_no_text_becomes_an_attribute_that_runs(drawn: dict[str, Document]) -> None:
    for name, page in drawn.items():
        for tag, attrs in page.elements:
            assert not set(attrs) & set(EVENTS), (name, tag)
            assert not attrs.get("href", "").strip().lower().startswith(("javascript", "data:")), (name, tag)


def test_the_policy_of_the_pages_is_kept(drawn: dict[str, Document]) -> None:
    """No script or style stands in the page itself."""
    for name, page in drawn.items():
        scripts = [attrs for tag, attrs in page.elements if tag == "script"]
        assert all(attrs["src"] == "/static/agentchat/main.js" for attrs in scripts), name
        assert not page.all("style"), name


def test_the_text_is_there_to_be_read(drawn: dict[str, Document]) -> None:
    assert drawn["chat"].text.count("<img src=q onerror=alert(1)>") > 15
    for name, page in drawn.items():
        assert "onerror=alert(1)" in page.text or name in ("no chats", "sign in"), name


def test_no_attribute_stands_twice_and_no_id(drawn: dict[str, Document]) -> None:
    for name, page in drawn.items():
        assert page.repeated == [], name
        ids = [attrs["id"] for attrs in page.all("id")]
        assert len(ids) == len(set(ids)), name


def test_what_turns_letters_around_is_shown_as_a_code_wherever_it_stands() -> None:
    turned = "gol\u202eexe"
    row = {"id": literal.CHAT, "title": turned, "updated_at": literal.AT, "pending": 0, "status": "completed"}
    first = said(turned)
    items = [item("notice", text=turned), item("plan", meta={"steps": [{"step": turned, "state": "done"}]}),
             call({"command": turned}), ask(request=request(reason=turned, cwd=turned)),
             ask(status="rejected", resolution=resolution("reject", reason=turned))]  # fmt: skip
    chat = literal.of_chat(snapshot(first, answer(first, *items), title=turned, workspace=turned))
    side = literal.page("parts/side-list", side={"needs": [], "working": [], "done": [row], "pending": 0})
    for shown in (Document(chat), Document(side)):
        words = shown.text.replace(f"{turned} · agentchat", "")  # a window's title takes no markup
        assert "\u202e" not in words
        assert "U+202E" in words
