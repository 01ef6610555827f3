"""The main job, end to end, on the embedded default, in a real browser."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.e2e.conftest import allow, script, sign_in, start_chat
from tests.services.server import Server


def test_a_newcomer_runs_the_first_approved_command(server: Server, desktop: Page) -> None:
    page = desktop
    sign_in(page, server)
    expect(page.get_by_role("heading", name="Give an agent something to do")).to_be_visible()
    start_chat(page, server, "ls -la && echo it-$((40+2))")
    card = page.locator('.card[data-state="pending"]')
    expect(card).to_be_visible()
    expect(card.locator(".cmd pre")).to_have_text("ls -la && echo it-$((40+2))")
    expect(page.locator(".term")).to_have_count(0)
    page.reload()
    expect(card.locator(".cmd pre")).to_have_text("ls -la && echo it-$((40+2))")
    allow(page)
    expect(page.locator(".term")).to_contain_text("it-42")
    expect(page.locator(".track")).to_contain_text("exit 0")
    expect(page.locator("#dock")).to_contain_text("Done")
    page.goto(f"{server.url}/admin/agentchat/resolution/")
    expect(page.locator("#result_list")).to_contain_text("approve")
    expect(page.locator("#result_list")).to_contain_text("ls -la")
    assert page.said == [], page.said  # type: ignore[attr-defined]


def test_a_no_with_a_reason_runs_nothing_and_a_stop_ends_what_runs(server: Server, desktop: Page) -> None:
    page = desktop
    sign_in(page, server)
    start_chat(page, server, "touch made-by-mistake")
    card = page.locator(".card").first
    expect(card).to_have_attribute("data-state", "pending")
    page.wait_for_timeout(600)
    card.get_by_role("button", name="Deny").click()
    page.get_by_label("Why not?").fill('not "now"')
    page.wait_for_timeout(600)
    page.keyboard.press("Enter")
    expect(page.locator(".receipt")).to_contain_text("You denied this. It did not run.")
    expect(page.locator(".receipt")).to_contain_text('not "now"')
    assert not list((server.var / "workspaces").rglob("made-by-mistake"))
    page.locator("#draft").fill("sleep 60 && echo over")
    page.keyboard.press("Enter")
    allow(page)
    expect(page.locator("#dock")).to_contain_text("works")
    page.locator("#dock").get_by_role("button", name="Stop").click()
    expect(page.locator("#dock")).to_contain_text("Stopped", timeout=5000)


def test_an_edited_command_is_what_runs(server: Server, desktop: Page) -> None:
    page = desktop
    sign_in(page, server)
    start_chat(page, server, "echo theirs > file")
    page.locator('.card[data-state="pending"]').wait_for()
    page.wait_for_timeout(600)
    page.get_by_role("button", name="Edit").click()
    page.get_by_role("textbox", name="Command").fill("echo mine > file; cat file")
    page.wait_for_timeout(600)
    page.get_by_role("button", name="Allow my version").click()
    expect(page.locator(".receipt")).to_contain_text("Your version: echo mine > file; cat file")
    expect(page.locator(".term")).to_contain_text("mine")


def test_reload_offline_and_two_tabs_show_the_same_text_once_and_in_order(server: Server, desktop: Page) -> None:
    page = desktop
    sign_in(page, server)
    words = [f"w{n}" for n in range(400)]
    chunks = [{"text": " ".join(words[n : n + 10]) + (".\n\n" if n % 50 == 40 else " ")} for n in range(0, 400, 10)]
    steps = [step for chunk in chunks for step in (chunk, {"delay": 0.25})]
    chat = start_chat(page, server, script(*steps), provider="scripted")
    second = page.context.new_page()
    second.goto(f"{server.url}/chats/{chat}/")
    expect(page.locator(".prose").first).to_contain_text("w30")
    page.reload()
    expect(page.locator(".prose").first).to_contain_text("w80")
    page.context.set_offline(True)
    page.wait_for_timeout(5000)
    expect(page.locator("#offline")).to_be_visible()
    page.context.set_offline(False)
    for tab in (page, second):
        expect(tab.locator("#dock")).to_contain_text("Done", timeout=30_000)
        shown = re.findall(r"w\d+", tab.locator(".prose").first.inner_text())
        assert shown == words
    page.reload()
    assert re.findall(r"w\d+", page.locator(".prose").first.inner_text()) == words


def test_a_pending_card_survives_reload_and_restart(server: Server, desktop: Page) -> None:
    """What the agent asked is still to be decided after the restart, and the answer counts."""
    page = desktop
    asked_and_killed(page, server, "echo x")
    expect(page.locator('.card[data-state="pending"]')).to_have_count(1)
    allow(page)
    expect(page.locator('.card[data-state="ran"]')).to_have_count(1)
    expect(page.locator("#dock")).to_contain_text("Done")


def test_a_card_from_which_nobody_could_go_on_says_so_after_a_restart(server: Server, desktop: Page) -> None:
    """It is closed, and is not left answerable."""
    page = desktop
    step = {"approve": {"name": "shell", "arguments": {"command": "x"}}}
    asked_and_killed(page, server, script({"unresumable": True}, step), "scripted")
    expect(page.locator('.card[data-state="gone"]')).to_contain_text("is gone. Nobody waits for an answer")
    expect(page.locator("#dock")).to_contain_text("Interrupted")
    page.locator("[data-again]").click()
    expect(page.locator("#draft")).to_have_value(re.compile("unresumable"))


def asked_and_killed(page: Page, server: Server, text: str, provider: str = "shell") -> None:
    """The card is there, also after a reload; then the server dies and starts again."""
    sign_in(page, server)
    start_chat(page, server, text, provider)
    expect(page.locator('.card[data-state="pending"]')).to_have_count(1)
    page.reload()
    expect(page.locator('.card[data-state="pending"]')).to_have_count(1)
    server.kill()
    expect(page.locator("#offline")).to_be_visible()
    server.start()
    expect(page.locator("#offline")).to_be_hidden(timeout=15_000)
