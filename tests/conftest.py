"""What every test gets: the audit tables emptied between tests, and services that start only when asked for.

Private files and the choice of the database are in tests/settings.py. The suite runs on SQLite; with
DATABASE_URL on that PostgreSQL, in a database that is made and dropped:

    python -m tests.services.with_postgres -- pytest -m databases
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.services.postgres import Postgres
    from tests.services.redis import Redis

_STARTS_SERVICES = {"servers", "postgres", "postgres_url", "redis_server", "redis_url", "server"}
_LONG = (
    "test_tamper.py", "test_routes.py", "test_markdown_stream.py", "test_properties.py", "test_audit.py", "test_snapshot.py",
    "test_markdown.py", "test_markdown_html.py", "test_poison.py", "test_signin.py", "test_decide.py", "test_readonly.py",
)  # fmt: skip
"""Files that together take most of the time of the fast tests; `make check` leaves them to `make test`."""
_DRIVES_BROWSER = {"browser", "desktop", "phone"}


def pytest_configure() -> None:
    if "tests.settings" not in sys.modules:
        raise pytest.UsageError("The tests need --ds=tests.settings, or they would use your own files in var/.")


def pytest_unconfigure() -> None:
    if "tests.settings" in sys.modules:
        shutil.rmtree(sys.modules["tests.settings"].TEMPORARY, ignore_errors=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        used = set(getattr(item, "fixturenames", ()))
        if item.path.name in _LONG:
            item.add_marker("slow")
        if used & _STARTS_SERVICES:
            item.add_marker("services")
        if used & _DRIVES_BROWSER:
            item.add_marker("browser")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A failure shows what the servers have said."""
    report: Any = yield
    if report.failed:
        from tests.services.process import tail
        from tests.services.server import Server

        for server in Server.started:
            report.sections.append((f"Server at port {server.port}", tail(server.log_file)))
    return report


# --- databases --------------------------------------------------------------------------------------------


@pytest.fixture(scope="session", autouse=True)
def _audit_tables_can_be_emptied() -> Iterator[None]:
    """Transactional tests end by emptying all tables, which the triggers of the audit rightly refuse.

    They are away for that moment only; during every test they are in force.
    """
    from django.test import TransactionTestCase

    from agentchat.models import triggers

    flush = TransactionTestCase._fixture_teardown

    def flush_without_triggers(case: Any) -> None:
        aliases = list(case._databases_names(include_mirrors=False))
        for alias in aliases:
            triggers.remove(alias)
        try:
            flush(case)
        finally:
            for alias in aliases:
                triggers.install(alias)

    TransactionTestCase._fixture_teardown = flush_without_triggers
    yield
    TransactionTestCase._fixture_teardown = flush


# --- services ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    from tests.services.postgres import Postgres

    with Postgres() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_url(postgres: Postgres) -> str:
    """An empty database, shared by the tests of this process; `postgres.create("name")` makes another."""
    return postgres.url


@pytest.fixture(scope="session")
def redis_server() -> Iterator[Redis]:
    from tests.services.redis import Redis

    with Redis() as server:
        yield server


@pytest.fixture(scope="session")
def redis_url(redis_server: Redis) -> str:
    return redis_server.url


# --- browser ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One Chromium for the tests of a file. Such a file must not hold `async` tests (see `launched`)."""
    from tests.services.browser import launched

    with launched() as running:
        yield running


@pytest.fixture
def desktop(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    from tests.services.browser import DESKTOP

    yield from _page(browser, DESKTOP, request)


@pytest.fixture
def phone(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    from tests.services.browser import PHONE

    yield from _page(browser, PHONE, request)


def _page(browser: Browser, device: dict[str, Any], request: pytest.FixtureRequest) -> Iterator[Page]:
    """A failing test leaves a picture of the page in test-results/."""
    from tests.services.browser import opened

    failed = request.session.testsfailed
    with opened(browser, device) as page:
        yield page
        if request.session.testsfailed > failed:
            name = re.sub(r"\W+", "-", request.node.nodeid).strip("-")
            page.screenshot(path=request.config.rootpath / "test-results" / f"{name}.png")
