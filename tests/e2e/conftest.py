"""The whole product: a server as `make run` starts it, and Chromium on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.services.server import Server


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


def sign_in(page: Page, server: Server) -> None:
    page.goto(server.link)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{server.url}/")


def start_chat(page: Page, server: Server, text: str, provider: str = "shell", mode: str = "ask") -> str:
    """Through the new-chat page; returns the chat's id."""
    page.goto(f"{server.url}/chats/new/")
    page.get_by_label("What should the agent do?").fill(text)
    page.locator(f'input[name="provider"][value="{provider}"]').check()
    page.locator(f'input[name="approval_mode"][value="{mode}"]').check()
    page.get_by_role("button", name="Start").click()
    page.wait_for_url("**/chats/*-*/")
    return page.url.rstrip("/").rsplit("/", 1)[1]


INERT = 600
"""Milliseconds: a card that has just appeared swallows clicks for half a second."""


def allow(page: Page) -> None:
    button = page.locator('.card[data-state="pending"]').get_by_role("button", name="Allow once")
    button.wait_for()
    page.wait_for_timeout(INERT)
    button.click()


def script(*steps: Any) -> str:
    import json

    return "\n".join(json.dumps(step) for step in steps)
