"""The pages as people use them: questions, the inbox, keys, a phone, what is slow or hostile."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Page, expect

from tests.e2e.conftest import INERT, allow, script, sign_in, start_chat
from tests.services.server import Server

PENDING = '.card[data-state="pending"]'


def ask(**request: Any) -> dict[str, Any]:
    return {"ask": {"questions": [{"id": "q", "question": "Which colour?", **request}]}}


def test_a_question_is_answered_by_a_choice_and_own_words(server: Server, desktop: Page) -> None:
    page = desktop
    sign_in(page, server)
    options = [{"label": "red", "description": "like a door"}, {"label": "blue", "description": ""}]
    start_chat(page, server, script(ask(options=options), {"text": "Thanks."}), provider="scripted")
    card = page.locator(PENDING)
    expect(card.get_by_role("heading", name="Which colour?")).to_be_visible()
    page.wait_for_timeout(INERT)
    card.get_by_role("button", name="Answer", exact=True).click()
    expect(card.locator("[data-problem]")).to_contain_text("Answer every question")
    card.get_by_text("blue").click()
    card.get_by_label("Or in your own words").fill("dark")
    card.get_by_role("button", name="Answer", exact=True).click()
    expect(page.locator(".receipt")).to_contain_text("You answered.")
    expect(page.locator(".receipt")).to_contain_text("blue, dark")
    expect(page.locator(".prose").last).to_contain_text("Thanks.")


def test_the_inbox_decides_by_keys_and_goes_to_the_next(server: Server, desktop: Page) -> None:
    page = desktop
    sign_in(page, server)
    for text in ("echo one", "echo two"):
        start_chat(page, server, text)
        page.locator(PENDING).wait_for()
    page.goto(f"{server.url}/approvals/")
    expect(page).to_have_title("(2) Inbox · agentchat")
    page.locator(".item:not([data-settled]) .q").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".peek h2")).to_be_focused()
    expect(page.locator(".peek .cmd")).to_contain_text("echo one")
    page.wait_for_timeout(INERT)
    page.keyboard.press("1")
    expect(page.locator(".peek .receipt")).to_contain_text("You allowed this once.")
    expect(page).to_have_title("(1) Inbox · agentchat")
    expect(page.locator(".item:not([data-settled]) .q").first).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_timeout(INERT)
    page.keyboard.press("0")
    page.keyboard.type("no")
    page.wait_for_timeout(INERT)
    page.keyboard.press("Enter")
    expect(page.locator(".peek .receipt")).to_contain_text("You denied this.")
    expect(page).to_have_title("Inbox · agentchat")


def test_on_a_phone_everything_is_reached_with_a_thumb(server: Server, phone: Page) -> None:
    page = phone
    sign_in(page, server)
    start_chat(page, server, "echo on-the-phone")
    page.locator(PENDING).wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    for name in ("Deny", "Allow once"):
        box = page.locator(PENDING).get_by_role("button", name=name).bounding_box()
        assert box and box["height"] >= 48
    page.wait_for_timeout(INERT)
    page.locator(PENDING).get_by_role("button", name="Allow once").tap()
    expect(page.locator(".term")).to_contain_text("on-the-phone")
    page.get_by_role("link", name="Inbox").click()
    expect(page.locator(".item").first).to_contain_text("You allowed this once")


def test_a_click_on_a_card_that_has_just_appeared_does_nothing(server: Server, desktop: Page) -> None:
    page = desktop
    sign_in(page, server)
    start_chat(page, server, "echo x")
    page.locator(PENDING).wait_for()
    page.reload()
    page.locator("#draft").fill("echo second")
    allow(page)
    page.locator("#draft").press("Enter")
    page.locator(PENDING, has_text="echo second").locator("[data-does=approve]").dispatch_event("click")
    page.wait_for_timeout(1000)
    expect(page.locator(PENDING)).to_contain_text("echo second")


def test_a_request_that_does_not_reach_the_server_says_so_and_counts_once(server: Server, desktop: Page) -> None:
    page = desktop
    sign_in(page, server)
    start_chat(page, server, "echo once >> counter")
    page.locator(PENDING).wait_for()
    page.route("**/decision/", lambda route: route.abort())
    allow(page)
    expect(page.locator("[data-unsent]")).to_contain_text("Your yes did not reach the server.")
    page.unroute("**/decision/")
    page.locator(PENDING).get_by_role("button", name="Allow once").click()
    expect(page.locator(".track")).to_contain_text("exit 0")
    [counter] = server.var.rglob("counter")
    assert counter.read_text() == "once\n"


def test_a_queued_message_is_shown_and_can_be_taken_back(server: Server, desktop: Page) -> None:
    page = desktop
    sign_in(page, server)
    start_chat(page, server, "echo first")
    page.locator(PENDING).wait_for()
    page.locator("#draft").fill("echo queued")
    page.keyboard.press("Enter")
    expect(page.locator(".queued")).to_contain_text("echo queued")
    page.reload()
    page.locator(".queued").get_by_role("button", name="Remove").click()
    expect(page.locator(".queued")).to_have_count(0)
    allow(page)
    expect(page.locator("#dock")).to_contain_text("Done")
    expect(page.locator(".said")).to_have_count(1)


def test_the_draft_survives_a_reload(server: Server, desktop: Page) -> None:
    page = desktop
    sign_in(page, server)
    start_chat(page, server, "echo x")
    page.locator("#draft").fill("half a thought")
    page.reload()
    expect(page.locator("#draft")).to_have_value("half a thought")


def test_live_output_is_shown_as_a_terminal_shows_it(server: Server, desktop: Page) -> None:
    page = desktop
    sign_in(page, server)
    start_chat(
        page, server, r"for n in 1 2 3 4 5 6; do printf '\r%d of 6' $n; sleep .4; done; printf '\n\033[31mred\033[0m\n'"
    )
    allow(page)
    expect(page.locator("[data-line]")).to_have_text(re.compile("^[2-6] of 6$"))
    expect(page.locator(".term .r")).to_have_text("red")
    expect(page.locator(".term pre")).to_have_text("6 of 6\nred\n")


def test_nothing_of_an_agent_runs_in_the_page(server: Server, desktop: Page) -> None:
    page = desktop
    sign_in(page, server)
    evil = "<img src=q onerror=document.title='X'><svg/onload=document.title='X'>[a](javascript:document.title='X')"
    steps = [
        {"text": evil}, {"reasoning": evil}, {"notice": evil}, {"plan": [{"step": evil, "state": "done"}]},
        {"tool": {"id": "t", "name": evil[:60], "arguments": {"a": evil}, "result": evil, "done": True}},
        {"approve": {"id": "a", "name": "shell", "arguments": {"command": evil}, "request": {"kind": "command", "reason": evil}}},
    ]  # fmt: skip
    start_chat(page, server, script(*steps), provider="scripted")
    page.locator(PENDING).wait_for()
    for _ in range(2):
        assert page.locator(".transcript img, .transcript svg[onload], .transcript a[href^=javascript]").count() == 0
        assert page.title() != "X"
        page.reload()
    assert [line for line in page.said if "favicon" not in line] == []  # type: ignore[attr-defined]
