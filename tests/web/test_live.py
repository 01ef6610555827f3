"""The page's script in Chromium: keys that decide nothing by accident, and a page that becomes true again by itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import INERT, script, sign_in, start_chat
from tests.services.server import Server

PENDING = '.card[data-state="pending"]'
ASKS_LATER = script({"delay": 2}, {"approve": {"name": "shell", "arguments": {"command": "echo later"}}})


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


@pytest.fixture
def page(server: Server, desktop: Page) -> Page:
    desktop.goto(f"{server.url}/")
    if "/accounts/" in desktop.url:
        server.restart()  # a link signs in once
        sign_in(desktop, server)
    return desktop


def asking(page: Page, server: Server, command: str) -> Locator:
    """A pending card that has the focus and can be decided."""
    start_chat(page, server, command)
    card = page.locator(PENDING)
    card.wait_for()
    page.get_by_role("link", name="Show").click()
    expect(card.locator("h2")).to_be_focused()
    page.wait_for_timeout(INERT)
    return card


def test_a_number_key_is_not_typed_into_the_field_that_it_opens(server: Server, page: Page) -> None:
    card = asking(page, server, "echo mine")
    page.keyboard.press("2")
    expect(card.locator("[data-edited]")).to_be_focused()
    expect(card.locator("[data-edited]")).to_have_value("echo mine")
    page.keyboard.press("Escape")
    page.wait_for_timeout(INERT)
    page.keyboard.press("0")
    expect(card.locator("[data-reason]")).to_be_focused()
    expect(card.locator("[data-reason]")).to_have_value("")


def test_enter_on_back_goes_back_and_decides_nothing(server: Server, page: Page) -> None:
    card = asking(page, server, "echo back")
    card.get_by_role("button", name="Deny").click()
    page.wait_for_timeout(INERT)
    card.get_by_role("button", name="Back").focus()
    page.keyboard.press("Enter")
    expect(card.get_by_role("button", name="Allow once")).to_be_visible()
    page.wait_for_timeout(INERT)
    expect(card).to_have_count(1)


def test_enter_in_a_step_that_has_just_opened_is_swallowed(server: Server, page: Page) -> None:
    card = asking(page, server, "echo quick")
    page.keyboard.press("0")
    page.keyboard.press("Enter")
    page.wait_for_timeout(INERT)
    expect(card).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.locator(".receipt")).to_contain_text("You denied this.")


def test_escape_closes_the_step_and_then_goes_back_to_the_list(server: Server, page: Page) -> None:
    asking(page, server, "echo escape")
    chat = page.url
    page.goto(f"{server.url}/approvals/?open={page.locator(PENDING).get_attribute('data-card')}")
    card = page.locator(PENDING)
    card.locator("h2").focus()
    page.wait_for_timeout(INERT)
    page.keyboard.press("0")
    page.keyboard.press("Escape")
    expect(card.locator("h2")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".item[data-open] .q")).to_be_focused()
    page.goto(chat)
    expect(page.locator(PENDING)).to_have_count(1)


def test_what_could_not_be_fetched_is_fetched_again_without_another_event(server: Server, page: Page) -> None:
    start_chat(page, server, ASKS_LATER, provider="scripted")
    parts = ("**/fragment/", "**/transcript/", "**/dock/")
    for part in parts:
        page.route(part, lambda route: route.abort())
    page.wait_for_timeout(5500)
    assert page.locator(PENDING).count() == 0
    for part in parts:
        page.unroute(part)
    expect(page.locator(PENDING)).to_contain_text("echo later")


def test_a_decision_that_the_server_did_not_take_can_be_made_again(server: Server, page: Page) -> None:
    card = asking(page, server, "echo again")
    page.route("**/decision/", lambda route: route.fulfill(status=429, json={"code": "too_many_requests"}))
    card.get_by_role("button", name="Allow once").click()
    page.wait_for_timeout(2 * INERT)
    page.unroute("**/decision/")
    card.get_by_role("button", name="Allow once").click()
    expect(page.locator(".receipt")).to_contain_text("You allowed this once.")


def test_the_list_of_chats_follows_and_keeps_its_search(server: Server, page: Page) -> None:
    asking(page, server, "echo needle")
    expect(page.locator(".chat-row[aria-current]")).to_contain_text("1 request for you")
    page.goto(f"{server.url}/?q=needle")
    expect(page.locator(".chat-row")).to_have_count(1)
    other = page.context.new_page()
    start_chat(other, server, "echo haystack")
    other.locator(PENDING).wait_for()
    page.wait_for_timeout(1500)
    expect(page.locator(".chat-row")).to_have_count(1)


def test_a_request_is_announced_with_what_it_would_do(server: Server, page: Page) -> None:
    start_chat(page, server, ASKS_LATER, provider="scripted")
    expect(page.locator("#says")).to_contain_text("asks: Run this command? echo later")


def test_what_waits_counts_its_time_on(server: Server, page: Page) -> None:
    card = asking(page, server, "echo clock")
    before = card.locator(".age").text_content()
    page.wait_for_timeout(2500)
    assert card.locator(".age").text_content() != before
