"""Faults that only a page can have: what it shows late, draws twice, or runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.conftest import INERT, allow, script, sign_in, start_chat
from tests.services.browser import DESKTOP, opened
from tests.services.server import Server

PENDING = '.card[data-state="pending"]'


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


@pytest.fixture(scope="module")
def cookies(server: Server, browser: Browser) -> Any:
    """One sign-in for all tests of this file: the link works once."""
    with opened(browser, DESKTOP) as page:
        sign_in(page, server)
        return page.context.cookies()


@pytest.fixture
def page(server: Server, desktop: Page, cookies: Any) -> Page:
    desktop.context.add_cookies(cookies)
    return desktop


def asks(timeout: float | None = None, name: str = "x", **more: Any) -> dict[str, Any]:
    asked: dict[str, Any] = {"name": "shell", "arguments": {"command": name}}
    if timeout:
        asked["timeout"] = timeout
    return {"approve": asked, **more}


def deaf_tab(page: Page) -> Page:
    """The same page again, in a tab that hears of nothing."""
    other = page.context.new_page()
    other.route_web_socket(re.compile("/ws/"), lambda socket: None)
    other.goto(page.url)
    other.locator(PENDING).wait_for()
    other.wait_for_timeout(INERT)
    return other


def test_s01_the_card_that_comes_while_offline_is_the_one_after_reload(server: Server, page: Page) -> None:
    """Reload, a lost network, or a network that was lost before the question: each time the one same card, and it works."""
    start_chat(page, server, script({"delay": 1.5}, asks(name="rm build/out.txt")), provider="scripted")
    page.context.set_offline(True)
    page.wait_for_timeout(2500)
    page.context.set_offline(False)
    card = page.locator(PENDING)
    expect(card).to_have_count(1)
    expect(card).to_contain_text("rm build/out.txt")
    id = card.get_attribute("data-card")
    page.reload()
    expect(card).to_have_count(1)
    expect(card).to_have_attribute("data-card", str(id))
    page.context.set_offline(True)
    page.wait_for_timeout(2500)
    page.context.set_offline(False)
    expect(page.locator("#offline")).to_be_hidden()
    expect(card).to_have_count(1)
    expect(card).to_have_attribute("data-card", str(id))
    allow(page)
    expect(page.locator(f'[data-card="{id}"]')).to_contain_text("You allowed this once.")
    expect(page.locator("#dock")).to_contain_text("Done")


def test_s03_the_tab_that_comes_second_is_shown_who_was_first(server: Server, page: Page) -> None:
    """A tab that did not hear of the decision must learn of it from its own click, in words."""
    start_chat(page, server, script(asks(), {"hang": True}), provider="scripted")
    page.locator(PENDING).wait_for()
    second = deaf_tab(page)
    allow(page)
    expect(page.locator(".receipt")).to_contain_text("You allowed this once.")
    second.get_by_role("button", name=re.compile("^Deny")).first.click()
    second.wait_for_timeout(INERT)
    second.locator("[data-reason]").press("Enter")
    receipt = second.locator(".receipt")
    expect(receipt).to_contain_text("You allowed this once.")
    expect(receipt).to_contain_text("Your no came later and was not used.")
    expect(receipt.locator("time").first).to_have_attribute("datetime", re.compile(r"Z$"))
    page.reload()
    expect(page.locator(".receipt")).to_contain_text("You allowed this once.")
    expect(page.locator(".receipt")).not_to_contain_text("not used")


def test_s05_a_click_in_a_tab_that_slept_says_when_it_expired(server: Server, page: Page) -> None:
    """Whoever answers too late must read that it is too late, since when, and that nothing ran."""
    start_chat(page, server, script(asks(timeout=3, then=[{"text": "IT RAN"}]), {"hang": True}), provider="scripted")
    page.locator(PENDING).wait_for()
    second = deaf_tab(page)
    expect(page.locator('.card[data-state="expired"]')).to_be_visible()
    second.locator(PENDING).get_by_role("button", name="Allow once").click()
    card = second.locator('.card[data-state="expired"]')
    expect(card).to_contain_text("Nobody answered in time.")
    expect(card).to_contain_text("It did not run.")
    expect(card.locator(".receipt time").first).to_have_attribute("datetime", re.compile(r"Z$"))
    for tab in (page, second):
        tab.reload()
        expect(tab.locator('.card[data-state="expired"]')).not_to_contain_text("You")
        expect(tab.locator(".answer")).not_to_contain_text("IT RAN")


def test_s06_an_old_card_refuses_after_a_stop(server: Server, page: Page) -> None:
    """The card of a run that was stopped must say so to whoever still presses it."""
    start_chat(page, server, script(asks(then=[{"text": "IT RAN"}])), provider="scripted")
    page.locator(PENDING).wait_for()
    second = deaf_tab(page)
    page.locator("#dock").get_by_role("button", name="Stop").click()
    expect(page.locator('.card[data-state="stopped"]')).to_be_visible()
    second.locator(PENDING).get_by_role("button", name="Allow once").click()
    expect(second.locator('.card[data-state="stopped"]')).to_contain_text(
        "The run was stopped before this was decided."
    )
    page.reload()
    expect(page.locator(".answer")).not_to_contain_text("IT RAN")


@pytest.mark.parametrize("count", [900, 2000], ids=["all of it", "cut in its middle"])
def test_s17_a_progress_bar_is_one_line_live_and_after_reload(server: Server, page: Page, count: int) -> None:
    """What a terminal overwrites, the page overwrites: while it comes, and when it is looked at later.

    Of a long output the page shows the head and the tail; then the head's last frame stands above the gap.
    """
    frames = "".join(f"\rDownloading {n * 100 // (count - 1):3}%" for n in range(count))
    text = frames + "\r\nDone\r\n\x1b[32mOK\x1b[0m\x1b]0;X9\x07\nabc\b\bX\x1b[2J"
    steps = [
        {"tool": {"id": "t", "name": "shell", "arguments": {"command": "get"}}},
        {"output": {"id": "t", "text": text}, "chunk": 700, "every": 0.005},
        asks(),
        {"tool": {"id": "t", "name": "shell", "arguments": {"command": "get"}, "done": True}},
    ]
    start_chat(page, server, script(*steps), provider="scripted")
    page.locator(PENDING).wait_for()

    def shown() -> str:
        term = page.locator("[data-term], .term").first
        expect(term).to_contain_text("aXc")
        return term.inner_text().rstrip()

    live = shown()
    page.reload()
    reloaded = shown()
    allow(page)
    expect(page.locator("#dock")).to_contain_text("Done")
    page.reload()
    page.locator("details:not([open]) > summary").evaluate_all("all => all.forEach(one => one.click())")
    for text in (live, reloaded, shown()):
        lines = [line.rstrip() for line in text.split("\n") if line.strip() not in ("", "live")]  # the page marks it so
        bars = [line for line in lines if "Downloading" in line]
        assert bars[-1] == "Downloading 100%" and len(bars) <= (1 if count == 900 else 2), text
        assert len(lines) < 8, text
        assert lines[-3:] == ["Done", "OK", "aXc"]
        assert not {"\x1b", "\x07", "\b"} & set(text) and "[32m" not in text
    assert "X9" not in page.title()


EVIL = [
    "<img src=q onerror=document.title='X1'>", "<svg/onload=document.title='X2'>", "[open](javascript:document.title='X3')",
    "[open](JaVa\tScRiPt:document.title='X4')", "<a href=\"data:text/html,<script>document.title='X5'</script>\">z</a>",
    "\n```x\" onmouseover=\"document.title='X6'\ncode\n```\n",
]  # fmt: skip
WATCH = """
window.bad = [];
addEventListener('DOMContentLoaded', () => {
  const look = () => {
    if (/^X\\d/.test(document.title)) bad.push(document.title);
    for (const one of document.querySelectorAll('*')) for (const name of one.getAttributeNames())
      if (/^on/i.test(name) || /^(href|src)$/.test(name) && /^\\s*(java\\s*script|data):/i.test(one.getAttribute(name)))
        bad.push(`${one.tagName} ${name}`);
  };
  look();
  new MutationObserver(look).observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
});
"""


def test_s18_nothing_that_was_said_becomes_a_script(server: Server, page: Page) -> None:
    """Text of people and agents is text: in every place, while it streams, and whenever it is shown again."""
    page.add_init_script(WATCH)
    evil = " ".join(EVIL)
    steps: list[dict[str, Any]] = [
        {"text": evil, "chunk": 5, "every": 0.002}, {"reasoning": evil, "chunk": 5}, {"notice": evil},
        {"plan": [{"step": evil, "state": "active"}]},
        {"tool": {"id": "t", "name": EVIL[0], "arguments": {"a": evil}}},
        {"output": {"id": "t", "text": evil}, "chunk": 5},
        {"tool": {"id": "t", "name": EVIL[0], "arguments": {"a": evil}, "result": evil, "done": True}},
        {"approve": {"name": EVIL[1], "arguments": {"command": evil},
                     "request": {"kind": "tool", "title": evil, "reason": evil, "cwd": evil}}},
        {"error": evil},
    ]  # fmt: skip
    chat = start_chat(page, server, script(*steps), provider="scripted")
    page.locator(PENDING).wait_for()
    answer = page.evaluate(
        """([chat, title]) => fetch(`/api/v1/chats/${chat}/`, {method: 'PATCH', body: JSON.stringify({title}), headers: {
             'Content-Type': 'application/json', 'X-CSRFToken': document.cookie.match(/agentchat_csrf=([^;]+)/)?.[1]
               ?? document.querySelector('[name=csrfmiddlewaretoken]')?.value}}).then((one) => one.status)""",
        [chat, EVIL[0] + EVIL[1]],
    )
    assert answer == 200
    expect(page.locator("[data-title]")).to_contain_text("onerror")
    assert page.evaluate("bad") == []
    page.goto(f"{server.url}/approvals/")
    assert page.evaluate("bad") == []
    page.goto(f"{server.url}/chats/{chat}/")
    page.locator("#dock").get_by_role("button", name="Stop").click()
    expect(page.locator(PENDING)).to_have_count(0)
    page.locator("#draft").fill(evil)
    page.keyboard.press("Enter")
    expect(page.locator(".said")).to_have_count(2)
    places = [f"/chats/{chat}/", "/", "/?q=onerror", "/approvals/", "/settings/"]
    places += [f"/admin/agentchat/{model}/" for model in ("chat", "message", "outputitem", "run", "resolution")]
    for path in places:
        page.goto(server.url + path)
        page.locator("details:not([open]) > summary").evaluate_all("all => all.forEach(one => one.click())")
        for target in page.locator("pre, code, .prose").all()[:10]:
            target.dispatch_event("mouseover")
        assert page.evaluate("bad") == [], path
    page.goto(f"{server.url}/chats/{chat}/")
    expect(page.locator("#transcript")).to_contain_text("<img src=q onerror=document.title='X1'>")


def test_s20_the_page_that_watched_equals_the_page_that_came_later(server: Server, page: Page) -> None:
    """Markdown that arrives in crumbs must end as if it had come at once, and never point to half an address."""
    page.add_init_script("""
      window.hrefs = new Set();
      addEventListener('DOMContentLoaded', () => new MutationObserver(() => {
        for (const one of document.querySelectorAll('.prose a')) hrefs.add(one.getAttribute('href'));
      }).observe(document, { subtree: true, childList: true, attributes: true }));
    """)
    text = (
        "Text first.\n\n````markdown\nouter\n```sh\nls\n```\nstill outer\n````\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n"
        "A [link](https://a.example/x) here, grüße 🚀.\n\n```py\nnever = 'closed'\n"
    )
    start_chat(page, server, script({"text": text, "chunk": 3, "every": 0.02}), provider="scripted")
    expect(page.locator("#dock")).to_contain_text("Done")
    expect(page.locator(".prose pre")).to_have_count(2)
    assert page.evaluate("[...hrefs]") == ["https://a.example/x"]
    page.locator("#draft").fill(json.dumps({"text": "Later, *as usual*."}))
    page.keyboard.press("Enter")
    expect(page.locator(".prose em")).to_have_text("as usual")
    html = "all => all.map((one) => one.innerHTML.trim())"
    done = page.locator(".prose [data-done]")
    live = done.evaluate_all(html)
    page.reload()
    assert done.evaluate_all(html) == live
    assert "never = " in live[0] and "Later" not in live[0]


def test_s30_a_browser_in_lima_is_told_the_same_instant(server: Server, browser: Browser, cookies: Any) -> None:
    """The page says the moment with its zone, whatever clock the reader has on the wall."""
    with opened(browser, DESKTOP, timezone_id="America/Lima") as page:
        page.context.add_cookies(cookies)
        chat = start_chat(page, server, script(asks()), provider="scripted")
        allow(page)
        expect(page.locator(".receipt time").first).to_be_visible()
        shown = page.locator(".receipt time").first.get_attribute("datetime")
        rows = page.evaluate("chat => fetch(`/api/v1/resolutions/?chat=${chat}`).then((one) => one.json())", chat)
        assert shown == rows["results"][0]["decided_at"]
        assert str(shown).endswith("Z")
