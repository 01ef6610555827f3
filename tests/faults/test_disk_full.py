"""The disk runs full while an agent works: people are told, what was stored or seen stays, and with room all goes on.

Each test runs on a small file system, and with a quota on the size of files, since not every machine lets its users make
the former: there its tests say that they were skipped, and why, and those of the quota still run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.db import DatabaseError, connection
from playwright.sync_api import Page, Response, expect

from agentchat.models import outage
from tests.e2e.conftest import allow, script, sign_in, start_chat
from tests.faults.small_disk import OnQuota, OnSmallDisk, SmallServer, can_be_made
from tests.faults.story import gate
from tests.faults.viewer import Viewer, asked, ended
from tests.services.client import Client, until
from tests.services.process import ServiceFailed

pytestmark = [pytest.mark.slow, pytest.mark.services]
SAID = "".join(f"{n} " for n in range(600))
STREAM = [{"delay": 0.5}, {"text": SAID, "chunk": 3, "every": 0.005}, gate(2)]
STORY = script(gate(0), {"parallel": [STREAM, [gate(1)]]})
FULL = "The disk of the database is full, so nothing new can be stored."
PENDING = '.card[data-state="pending"]'
KINDS: dict[str, type[SmallServer]] = {"disk": OnSmallDisk, "quota": OnQuota}
Made = Callable[..., SmallServer]


@pytest.fixture(params=KINDS)
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Made]:
    if request.param == "disk" and not can_be_made():
        pytest.skip("this system lets nobody but root make a file system; the quota is tested instead")
    (tmp_path / "var").mkdir()
    with ExitStack() as stack:
        yield lambda **more: stack.enter_context(KINDS[request.param](tmp_path / "var", **more))


@dataclass
class Told:
    """A run that is watched: one request was allowed, one waits, and text streams."""

    server: SmallServer
    client: Client
    chat: str
    viewer: Viewer
    decided: dict[str, Any]
    waits: dict[str, Any]

    def answer(self) -> dict[str, Any]:
        """What the agent said and did, as it is stored."""
        return next(row for row in self.client.snapshot(self.chat)["messages"] if row["run"])

    def stored(self) -> str:
        return "".join(row["content"][0]["text"] for row in self.answer()["items"] if row["type"] == "message")

    def is_still_decided(self) -> bool:
        found = self.client.get(f"/approvals/{self.decided['item']}/")["resolution"]
        return bool(found["hash"] == self.decided["hash"] and found["action"] == "approve")

    def goes_on(self) -> None:
        """A new message runs, and nothing in the database is broken."""
        self.client.say(self.chat, script({"text": "again"}))
        until(lambda: self.client.run(self.chat)["status"] == "completed")
        assert not self.viewer.wrong
        assert "Traceback" not in self.server.log()
        assert self.is_still_decided()
        assert self.server.is_whole()


def told(server: SmallServer, stack: ExitStack) -> Told:
    """Up to the moment when the disk is full and the server has noticed it."""
    client = Client(server)
    chat = client.chat(STORY, provider="scripted")
    viewer = stack.enter_context(Viewer(client, chat, server))
    decided = client.decide(client.pending()[0]["item"]).json()["resolution"]
    viewer.has(asked("gate-1"))
    viewer.has(lambda events: any(event["kind"] == "item.delta" for event in events))
    waits = client.pending()[0]["item"]
    server.fill()
    until(lambda: "A commit failed" in server.log())
    return Told(server, client, chat, viewer, decided, waits)


def is_refused(answer: httpx.Response) -> None:
    assert (answer.status_code, answer.json()["code"]) == (503, "disk_full"), answer.text
    assert answer.json()["detail"].startswith(FULL) and int(answer.headers["Retry-After"]) > 0


def test_people_are_told_and_all_goes_on_when_there_is_room(made: Made) -> None:
    with ExitStack() as stack:
        it = told(made(), stack)
        is_refused(it.client.decide(it.waits))
        is_refused(it.client.post(f"/chats/{it.chat}/messages/", {"text": "hello"}))
        is_refused(it.client.post("/chats/", {"provider": "shell"}))
        for path in ("/", f"/chats/{it.chat}/", "/healthz"):
            assert it.client.http.get(path).status_code == 200, "what is stored can be read"
        assert it.is_still_decided() and it.answer()["run"]["status"] == "waiting"
        assert it.viewer.text() == it.stored() != SAID
        until(lambda: f"The heartbeat failed; it is tried again in 3 s. {FULL}" in it.server.log())
        it.server.make_room()
        it.viewer.has(asked("gate-2"))
        assert it.viewer.text() == it.stored() == SAID
        for row in it.client.pending(2):
            assert it.client.decide(row["item"]).status_code == 200
        it.viewer.has(ended)
        assert it.answer()["run"]["status"] == "completed" and it.viewer.connections == 1
        it.goes_on()


def test_when_room_comes_too_late_the_run_has_failed_with_a_sentence(made: Made) -> None:
    """What was seen is kept; what was not stored in all that time was never seen."""
    with ExitStack() as stack:
        it = told(made(patience=2), stack)
        until(lambda: it.server.log().count("entries are lost") > 1)
        it.server.make_room()
        it.viewer.has(ended)
        run = it.answer()["run"]
        assert (run["status"], "not kept up for too long" in run["error"]) == ("failed", True)
        assert it.viewer.text() == it.stored() and SAID.startswith(it.stored())
        late = it.client.decide(it.waits)
        assert (late.status_code, late.json()["code"]) == (410, "agent_gone")
        it.goes_on()


@pytest.mark.parametrize("made", ["quota"], indirect=True)
def test_nothing_is_stored_of_a_run_after_what_was_lost(made: Made) -> None:
    """Or a text would have a hole that nobody sees."""
    with ExitStack() as stack:
        it = told(made(patience=2), stack)
        until(lambda: "entries are lost" in it.server.log())
        it.server.make_room()
        it.viewer.has(ended)
        assert SAID.startswith(it.stored())


@pytest.mark.parametrize("made", ["disk"], indirect=True)
@pytest.mark.parametrize("killed", [True, False], ids=["killed", "stopped"])
def test_a_server_that_ends_meanwhile_starts_when_there_is_room(made: Made, killed: bool) -> None:
    with ExitStack() as stack:
        it = told(made(), stack)
        seen = it.viewer.text()
        if killed:
            it.server.kill()
        else:
            assert it.server.stop() == 0, "in time, although nothing can be stored"
        assert "Traceback" not in it.server.log()
        with pytest.raises(ServiceFailed, match=f"ended with 1 while starting(.|\n)*CommandError: {FULL}"):
            it.server.start()
        assert "Traceback" not in it.server.log()
        it.server.make_room()
        it.server.start()
        it.viewer.has(ended)
        assert it.stored() == it.viewer.text() == seen
        run, late = it.answer()["run"], it.client.decide(it.waits)
        assert (run["status"], run["error"]) == ("interrupted", "The server died while the agent worked.")
        assert (late.status_code, late.json()["code"]) == (410, "agent_gone")
        it.goes_on()


Answers = list[tuple[str, int]]


def answers_to(page: Page, path: str) -> Answers:
    """The Idempotency-Key of each POST to the path, from now on, and the status of its answer."""
    seen: Answers = []

    def note(answer: Response) -> None:
        if answer.request.method == "POST" and answer.url.endswith(path):
            seen.append((answer.request.headers["idempotency-key"], answer.status))

    page.on("response", note)
    return seen


def counted_once(answers: Answers, success: int) -> bool:
    [(refused, unavailable), (key, status)] = answers
    return (refused, unavailable, status) == (key, 503, success)


def test_the_page_says_so_and_what_is_pressed_again_counts_once(made: Made, desktop: Page) -> None:
    server, page = made(), desktop
    sign_in(page, server)
    start_chat(page, server, "echo once >> counter")
    page.locator(PENDING).wait_for()
    server.fill()
    decisions, messages = answers_to(page, "/decision/"), answers_to(page, "/messages/")
    until(lambda: "The heartbeat failed" in server.log())
    allow(page)
    expect(page.locator("[data-unsent]")).to_contain_text(FULL)
    page.locator("#draft").fill("echo second")
    page.locator("#draft").press("Enter")
    expect(page.locator("#draft-problem")).to_contain_text(FULL)
    expect(page.locator("#draft")).to_have_value("echo second")
    server.make_room()
    page.get_by_role("button", name="Allow once").click()
    expect(page.locator(".track")).to_contain_text("exit 0")
    page.locator("#draft").press("Enter")
    expect(page.locator(PENDING)).to_contain_text("echo second")
    expect(page.locator("#draft-problem")).to_be_hidden()
    assert counted_once(decisions, 200) and counted_once(messages, 201)
    assert page.locator(".said").count() == 2
    assert server.is_whole()


@pytest.mark.django_db
def test_wrong_sql_is_our_mistake_and_no_outage() -> None:
    """Or people would be told to try again in a moment, and the log would not say where it is."""
    with pytest.raises(DatabaseError) as wrong:
        connection.cursor().execute("SELECT nothing FROM nowhere")
    assert outage.of(wrong.value) is None
