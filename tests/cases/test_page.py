"""Faults that a person sees on the page."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page, expect

from tests.e2e.conftest import allow, script, sign_in, start_chat
from tests.services.server import Server

PENDING = '.card[data-state="pending"]'


def test_s01_a_pending_card_is_there_after_reload_and_after_the_network_was_away(server: Server, desktop: Page) -> None:
    page = desktop
    sign_in(page, server)
    start_chat(
        page,
        server,
        script({"delay": 2}, {"approve": {"name": "shell", "arguments": {"command": "rm build/out.txt"}}}),
        provider="scripted",
    )
    page.context.set_offline(True)  # before it asks
    page.wait_for_timeout(3500)
    expect(page.locator("#offline")).to_be_visible()
    assert page.locator(PENDING).count() == 0
    page.context.set_offline(False)
    expect(page.locator(PENDING)).to_contain_text("rm build/out.txt")
    card = page.locator(PENDING).get_attribute("data-card")
    page.reload()
    expect(page.locator(PENDING)).to_have_attribute("data-card", card or "")
    page.context.set_offline(True)
    page.wait_for_timeout(2500)
    page.context.set_offline(False)
    expect(page.locator("#offline")).to_be_hidden()
    expect(page.locator(PENDING)).to_have_count(1)
    allow(page)
    expect(page.locator("#dock")).to_contain_text("Done")


def test_s03_two_tabs_both_show_the_winner(server: Server, desktop: Page) -> None:
    page = desktop
    sign_in(page, server)
    start_chat(page, server, "echo x")
    second = page.context.new_page()
    second.goto(page.url)
    second.locator(PENDING).wait_for()
    second.route("**/ws/**", lambda route: route.abort())
    allow(page)
    for tab in (page, second):
        expect(tab.locator(".receipt")).to_contain_text("You allowed this once.")


def test_s05_a_late_click_shows_that_it_expired(server: Server, desktop: Page) -> None:
    page = desktop
    sign_in(page, server)
    start_chat(
        page,
        server,
        script({"approve": {"name": "shell", "arguments": {"command": "x"}, "timeout": 2}}, {"delay": 30}),
        provider="scripted",
    )
    expect(page.locator(PENDING)).to_contain_text("Open until")
    expect(page.locator(".receipt")).to_contain_text("Nobody answered in time.")
    expect(page.locator(".receipt")).to_contain_text("It did not run.")


def test_s06_stop_closes_the_card_in_every_tab(server: Server, desktop: Page) -> None:
    page = desktop
    sign_in(page, server)
    start_chat(page, server, "echo x")
    page.locator(PENDING).wait_for()
    second = page.context.new_page()
    second.goto(page.url)
    second.locator(PENDING).wait_for()
    page.locator("#dock").get_by_role("button", name="Stop").click()
    for tab in (page, second):
        expect(tab.locator('.card[data-state="stopped"]')).to_contain_text(
            "The run was stopped before this was decided."
        )
    page.locator("#draft").fill("echo again")
    page.keyboard.press("Enter")
    allow(page)
    expect(page.locator(".term")).to_contain_text("again")


EVIL = (
    "<img src=q onerror=document.title='X1'> <svg/onload=document.title='X2'> [open](javascript:document.title='X3') "
    "[open](JaVa\tScRiPt:document.title='X4') <a href=\"data:text/html,<script>document.title='X5'</script>\">z</a>\n\n"
    "```x\" onmouseover=\"document.title='X6'\ncode\n```\n"
)


def test_s18_no_text_runs_as_a_script(server: Server, desktop: Page) -> None:
    page = desktop
    sign_in(page, server)
    steps: list[dict[str, Any]] = [
        {"text": EVIL}, {"reasoning": EVIL}, {"notice": EVIL},
        {"tool": {"id": "t", "name": "x", "arguments": {"a": EVIL}, "result": EVIL, "done": True}},
        {"approve": {"name": "shell", "arguments": {"command": EVIL}}, "then": []}, {"error": EVIL},
    ]  # fmt: skip
    chat = start_chat(page, server, script(*steps), provider="scripted")
    page.locator(PENDING).wait_for()
    page.wait_for_timeout(600)
    page.locator(PENDING).get_by_role("button", name="Allow").first.click()
    if page.locator(PENDING).get_by_role("button", name="Allow it once").count():
        page.wait_for_timeout(600)
        page.locator(PENDING).get_by_role("button", name="Allow it once").click()
    expect(page.locator("#dock")).to_contain_text("error")
    for path in (f"/chats/{chat}/", "/approvals/", "/", "/admin/agentchat/resolution/", "/admin/agentchat/outputitem/",
                 "/admin/agentchat/message/", "/admin/agentchat/chat/"):  # fmt: skip
        page.goto(server.url + path)
        page.mouse.move(400, 400)
        assert not page.title().startswith("X")
        assert (
            page.locator("img[onerror], svg[onload], a[href^='javascript' i], a[href^='data' i], [onmouseover]").count()
            == 0
        )


def test_s19_what_turns_the_text_around_is_shown_and_runs_byte_for_byte(server: Server, desktop: Page) -> None:
    page = desktop
    sign_in(page, server)
    start_chat(page, server, "echo \u202e/gol.ppa\u202c | od -An -tx1")
    card = page.locator(PENDING)
    expect(card.locator(".cmd .uchip").first).to_have_text("U+202E")
    expect(card.get_by_label("Warning")).to_contain_text("not what they look like")
    assert card.locator("[data-does=approve]").is_hidden(), "a card with hidden characters needs a second step"
    page.wait_for_timeout(600)
    card.get_by_role("button", name="Allow once…").click()
    page.wait_for_timeout(600)
    card.get_by_role("button", name="Allow it once").click()
    expect(page.locator(".term")).to_contain_text("e2 80 ae 2f 67 6f 6c 2e 70 70 61 e2 80 ac")
