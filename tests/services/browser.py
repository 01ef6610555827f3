"""Chromium for tests and screenshots, on a desktop and on a phone."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

DESKTOP: dict[str, Any] = {"viewport": {"width": 1440, "height": 900}}
PHONE: dict[str, Any] = {
    "viewport": {"width": 360, "height": 780},
    "has_touch": True,
    "is_mobile": True,
    "device_scale_factor": 2,
}
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def chromium() -> str | None:
    """The browser of the system; None: the one that Playwright has downloaded for itself."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


@contextmanager
def launched(**options: Any) -> Iterator[Browser]:
    """A running Chromium. Meanwhile the thread counts as one with an event loop: no ORM, no `asyncio.run`."""
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium(), args=["--disable-dev-shm-usage", *arguments], **options
        )
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Browser, device: dict[str, Any], keep: Path | None = None, **options: Any) -> Iterator[Page]:
    """A page in a context of its own. `page.said` holds errors of scripts and of the console.

    With `keep`, a screenshot is written there if the body raises.
    """
    context = browser.new_context(**{**device, "locale": "en-GB", "timezone_id": "UTC", **options})
    context.set_default_timeout(10_000)
    page = context.new_page()
    said: list[str] = []
    page.said = said  # type: ignore[attr-defined]
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    try:
        yield page
    except BaseException:
        if keep is not None:
            keep.parent.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=keep)
        raise
    finally:
        context.close()
