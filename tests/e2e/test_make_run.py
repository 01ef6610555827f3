"""From a bare copy of the project: `make run`, the printed link, the first approved command."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import allow, sign_in, start_chat
from tests.services.client import until
from tests.services.process import free_port
from tests.services.server import LINK, OURS, ROOT

SECOND_START = 10
"""Seconds that the second start may take."""


@contextmanager
def made_to_run(folder: Path) -> Iterator[Any]:
    """`make run` in a folder, as a newcomer types it."""
    port = free_port()
    environment = {name: value for name, value in os.environ.items() if not name.startswith((*OURS, "DJANGO_"))}
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            ["make", "run", f"PORT={port}"], cwd=folder, env=environment, stdout=out, stderr=out, start_new_session=True
        )
    try:
        found: re.Match[str] = until(lambda: LINK.search(log.read_text()), 240)
        yield SimpleNamespace(url=f"http://127.0.0.1:{port}", link=found.group())
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_newcomer_types_make_run(tmp_path: Path, desktop: Page) -> None:
    left_out = shutil.ignore_patterns(".git", ".venv", "var", "test-results", "__pycache__", ".*_cache", ".hypothesis")
    folder = Path(shutil.copytree(ROOT, tmp_path / "agentchat", ignore=left_out))
    with made_to_run(folder) as server:
        sign_in(desktop, server)
        start_chat(desktop, server, "ls -la")
        allow(desktop)
        expect(desktop.locator(".term")).to_contain_text("total")
        expect(desktop.locator(".track")).to_contain_text("exit 0")
    begun = time.monotonic()
    with made_to_run(folder) as server:
        desktop.goto(server.url)
        assert time.monotonic() - begun < SECOND_START
        expect(desktop.locator(".chat-row")).to_contain_text("ls -la")
