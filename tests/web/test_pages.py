"""The pages around the chats, and what they promise to people without a mouse, an eye or a script."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web import literal
from tests.web.literal import Document, User

ROWS = [
    {"key": "shell", "label": "Shell", "about": "Runs a command.", "detail": "", "ready": True, "resumable": False},
    {"key": "other", "label": "Other", "about": "", "detail": "Install it first.", "ready": False, "resumable": False},
]
CHOICES: dict[str, Any] = {
    "providers": ROWS, "ready": ROWS[:1], "workspaces": ["/work/a", "/work/b"],
    "modes": [("ask", "Ask", "Waits."), ("auto-edit", "Auto-edit", "Edits."), ("full", "Full access", "Nothing waits.")],
}  # fmt: skip


def form(**given: Any) -> dict[str, Any]:
    return {"text": "", "provider": "shell", "workspace": "/work/b", "mode": "ask", "problems": {}} | given


def every() -> dict[str, str]:
    waits = literal.ask()
    row = {"id": literal.CHAT, "title": "", "updated_at": literal.AT, "pending": 0, "status": "completed"}
    side = {"needs": [], "working": [], "done": [row], "pending": 0}
    return {
        "chats": literal.page("chats", side=side),
        "chat": literal.of_chat(literal.talk(waits, literal.text("x", status="in_progress"), status="waiting")),
        "inbox": literal.of_inbox(waits),
        "new": literal.page("new-chat", form=form(), **CHOICES),
        "first": literal.page("first-run", **CHOICES),
        "settings": literal.page("settings"),
        "sign in": literal.page("sign-in", form={}),
        "link": literal.page("sign-in-link"),
        "error": literal.page("error", status=404, heading="Nothing", text="There is nothing."),
    }


@pytest.fixture(scope="module")
def drawn() -> dict[str, Document]:
    return {name: Document(html) for name, html in every().items()}


def test_every_page_has_a_title_a_language_one_main_and_one_first_heading(drawn: dict[str, Document]) -> None:
    for name, page in drawn.items():
        tags = [tag for tag, _ in page.elements]
        assert page.one("lang")["lang"] == "en", name
        assert (tags.count("main"), tags.count("h1")) == (1, 1), name


def test_every_field_has_a_label(drawn: dict[str, Document]) -> None:
    for name, page in drawn.items():
        labels = {attrs["for"] for attrs in page.all("for")}
        for tag, attrs in page.elements:
            if tag in ("textarea", "select"):
                assert attrs["id"] in labels, (name, attrs)


def test_what_a_label_or_a_description_points_to_is_there(drawn: dict[str, Document]) -> None:
    for name, page in drawn.items():
        ids = {attrs["id"] for attrs in page.all("id")}
        for pointer in ("for", "aria-labelledby", "aria-describedby"):
            assert {attrs[pointer] for attrs in page.all(pointer)} <= ids, (name, pointer)
        skips = {attrs["href"][1:] for attrs in page.classed("skip")}
        assert skips <= ids, name


def test_every_form_that_posts_carries_the_token(drawn: dict[str, Document]) -> None:
    for name, page in drawn.items():
        posts = [attrs for tag, attrs in page.elements if tag == "form" and attrs.get("method") == "post"]
        by_script = [attrs for attrs in posts if "data-composer" in attrs]
        assert len(page.all("name", "csrfmiddlewaretoken")) == len(posts) - len(by_script), name


def test_a_chat_can_be_read_without_scripts_and_reads_no_stream_aloud(drawn: dict[str, Document]) -> None:
    assert drawn["chat"].one("role", "log")["aria-live"] == "off"
    for name in ("chat", "inbox", "chats", "new", "settings"):
        assert len(drawn[name].all("id", "says")) == len(drawn[name].all("id", "alerts")) == 1


def test_the_scheme_stands_on_the_root_only_if_it_was_chosen() -> None:
    assert not Document(literal.page("settings")).all("data-theme")
    shown = Document(literal.page("settings", theme="dark"))
    assert shown.one("data-theme")["data-theme"] == "dark"
    assert shown.all("data-theme-set", "dark")[0]["aria-pressed"] == "true"


def test_the_switch_of_the_number_keys_offers_the_other_choice() -> None:
    for keys, other in (("on", "off"), ("off", "on")):
        shown = Document(literal.page("settings", keys=keys))
        assert shown.one("data-keys")["data-keys"] == keys
        assert shown.all("name", "keys")[0]["value"] == other


def test_counts_stand_in_the_title_and_at_the_inbox() -> None:
    side = {"needs": [], "working": [], "done": [], "pending": 5}
    shown = Document(literal.page("settings", side=side))
    assert "(5) Settings · agentchat" in shown.text
    assert all("hidden" not in attrs for attrs in shown.all("data-pending"))
    assert all("hidden" in attrs for attrs in Document(literal.page("settings")).all("data-pending"))


def test_chats_are_grouped_by_what_they_want() -> None:
    def row(number: int, **given: Any) -> dict[str, Any]:
        made = {"id": str(literal.UUID(int=number)), "title": f"chat {number}", "updated_at": literal.AT}
        return made | {"pending": 0, "status": "completed"} | given

    side = {
        "needs": [row(1, pending=2)], "working": [row(2, status="running")],
        "done": [row(3), row(4, status="failed"), row(5, status="cancelled"), row(6, status=None)], "pending": 2,
    }  # fmt: skip
    shown = Document(literal.page("parts/side-list", side=side, current=str(literal.UUID(int=3))))
    for words in ("Needs input 1", "2 requests for you", "Working 1", "At work", "Done 4", "Finished",
                  "Ended with an error", "You stopped it", "Nothing said yet"):  # fmt: skip
        assert words in shown.text
    assert shown.one("aria-current")["href"] == f"/chats/{literal.UUID(int=3)}/"


def test_an_agent_that_is_not_ready_says_why_and_cannot_be_chosen() -> None:
    shown = Document(literal.page("new-chat", form=form(), **CHOICES))
    assert "Install it first." in shown.text
    assert "disabled" in shown.one("value", "other") and "checked" in shown.one("value", "shell")


def test_problems_stand_at_their_fields_and_nothing_written_is_lost() -> None:
    problems = {
        "text": "Too long.",
        "provider": "Choose an agent.",
        "workspace": "Choose a folder.",
        "mode": "Choose one.",
    }
    shown = Document(literal.page("new-chat", form=form(text="\nls -la", problems=problems), **CHOICES))
    for words in problems.values():
        assert words in shown.text
    assert shown.one("name", "text")["aria-describedby"] == "task-problem"
    assert shown.fields == ["\nls -la"]


def test_the_audit_is_offered_to_who_may_see_it() -> None:
    staff = User()
    staff.is_staff = True  # type: ignore[misc]
    assert "/admin/" in literal.page("settings", user=staff)
    assert "/admin/" not in literal.page("settings")


def test_an_error_needs_neither_a_person_nor_a_database() -> None:
    from django.template.loader import render_to_string

    html = render_to_string(
        "agentchat/error.html", {"heading": "Something broke", "text": "It is in the log.", "theme": ""}
    )
    assert "Something broke" in html and "<script" not in html
