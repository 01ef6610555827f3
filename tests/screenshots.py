"""The pictures of README and docs: `make screenshots` drives the real product and writes docs/screenshots/."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page

from tests.e2e.conftest import allow, sign_in, start_chat
from tests.services.browser import DESKTOP, PHONE, launched, opened
from tests.services.server import Server

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "screenshots"


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    workspace = Path("/tmp/agentchat-tour")
    workspace.mkdir(exist_ok=True)
    (workspace / "notes.txt").write_text("water the plants\n")
    with Server(env={"AGENTCHAT_WORKSPACES": str(workspace)}) as server, launched() as browser:
        with opened(browser, DESKTOP) as page:
            state = _desktop(page, server)
        with opened(browser, PHONE, storage_state=state, color_scheme="dark") as page:
            page.goto(server.url)
            page.locator(".chat-row", has_text="git push").click()
            page.locator('.card[data-state="pending"]').wait_for()
            _picture(page, "phone")
    for file in (workspace / "notes.txt", workspace):
        file.unlink() if file.is_file() else file.rmdir()


def _desktop(page: Page, server: Server) -> object:
    sign_in(page, server)
    start_chat(page, server, "ls -la")
    allow(page)
    page.locator(".term").wait_for()
    page.locator("#draft").fill("rm notes.txt")
    page.keyboard.press("Enter")
    page.locator('.card[data-state="pending"]').wait_for()
    _picture(page, "chat")
    start_chat(page, server, "git push --force origin main")
    page.locator('.card[data-state="pending"]').wait_for()
    page.goto(f"{server.url}/approvals/")
    page.locator('.card[data-state="pending"]').wait_for()
    _picture(page, "inbox")
    page.goto(f"{server.url}/admin/agentchat/resolution/")
    _picture(page, "audit")
    return page.context.storage_state()


def _picture(page: Page, name: str) -> None:
    page.wait_for_timeout(700)
    page.screenshot(path=FOLDER / f"{name}.png")


if __name__ == "__main__":
    main()
