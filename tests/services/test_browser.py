"""The two pages of the browser tests have the sizes that the tests are written for."""

from __future__ import annotations

from playwright.sync_api import Page

SIZE = "[innerWidth, innerHeight]"
BLANK = "data:text/html,<meta name=viewport content='width=device-width'><p>hello"


def test_desktop(desktop: Page) -> None:
    desktop.goto(BLANK)
    assert desktop.evaluate(SIZE) == [1440, 900]


def test_phone(phone: Page) -> None:
    phone.goto(BLANK)
    assert phone.evaluate(SIZE) == [360, 780]
    assert phone.evaluate("navigator.maxTouchPoints") > 0


def test_errors_of_the_page_are_kept(desktop: Page) -> None:
    desktop.goto(BLANK)
    desktop.evaluate("console.error('from the console')")
    desktop.evaluate("setTimeout(() => { throw new Error('from a script') })")
    desktop.wait_for_timeout(50)
    assert desktop.said == ["from the console", "from a script"]  # type: ignore[attr-defined]
