"""Runs from end to end, by a real server, exported and given to `agentack check`: a breach by an agent does not pass."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import script
from tests.services.client import Client, until
from tests.services.server import Server
from tests.traces import FAIL, PASS, check, kinds, records

pytestmark = pytest.mark.slow

ENDED = {"completed", "failed", "cancelled", "interrupted"}
QUESTIONS = [{"id": "which", "question": "Which?", "options": [{"label": "a"}, {"label": "b"}]}]
YES = ["proposed", "requested", "allow", "executed"]
NO = ["proposed", "requested", "deny", "blocked"]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


@pytest.fixture(scope="module")
def person(server: Server) -> Client:
    return Client(server)


def asking(name: str, **more: Any) -> dict[str, Any]:
    return {"approve": {"id": name, "name": "shell", "arguments": {"command": name}, **more}}


def requests(person: Client, chat: str, count: int = 1) -> list[Any]:
    """The items that wait in this chat, in their order."""

    def look() -> Any:
        found = [row["item"] for row in person.get("/approvals/", state="pending", chat=chat)["results"]]
        return sorted(found, key=lambda item: item["position"]) if len(found) == count else None

    return list(until(look))


def decide(person: Client, item: Any, action: str = "approve", **more: Any) -> None:
    assert person.decide(item, action, **more).status_code == 200


def trace(server: Server, person: Client, chat: str, status: str = "completed") -> str:
    """That of the chat's last run, once it has ended."""
    run = until(lambda: found if (found := person.run(chat))["status"] in ENDED else None)
    assert run["status"] == status
    return server.manage("export_trace", run["id"]).stdout


def passes(found: str, *groups: list[str], interrupted: bool = False) -> None:
    """The records of the actions, in whatever order between them, and a clean bill."""
    by_action: dict[str, list[str]] = {}
    for record, kind in zip(records(found), kinds(found), strict=True):
        by_action.setdefault(record.get("action_id", ""), []).append(kind)
    assert by_action.pop("") == (["interrupt", "end"] if interrupted else ["end"])
    assert sorted(by_action.values()) == sorted(groups)
    assert check(found) == (PASS, set())


# The shell


def test_commands_that_are_allowed_denied_and_edited(server: Server, person: Client) -> None:
    chat = person.chat("echo one\necho two\necho three\necho four")
    decide(person, requests(person, chat)[0])
    two = until(lambda: [item for item in requests(person, chat) if "two" in item["arguments"]])[0]
    decide(person, two, arguments={"command": "echo 2", "cwd": "."})
    three = until(lambda: [item for item in requests(person, chat) if "three" in item["arguments"]])[0]
    decide(person, three, "reject", reason="enough")
    found = trace(server, person, chat)
    passes(found, YES, NO, YES, NO)
    [edited] = [one for one in records(found) if one["type"] == "action_executed" and "edited" in one["action_id"]]
    [row] = [row for row in person.get("/resolutions/", chat=chat)["results"] if row["item"] == two["id"]]
    assert edited["action"]["parameters"]["sha256"] == row["final_digest"] != two["digest"]


def test_a_stop_while_a_command_waits_and_while_one_runs(server: Server, person: Client) -> None:
    waits, runs = person.chat("echo never"), person.chat("echo begun; sleep 60")
    requests(person, waits)
    decide(person, requests(person, runs)[0])
    until(lambda: "begun" in str(person.items(runs)))
    for chat in (waits, runs):
        person.post(f"/runs/{person.run(chat)['id']}/stop/")
    passes(trace(server, person, waits, "cancelled"), NO, interrupted=True)
    passes(trace(server, person, runs, "cancelled"), YES, interrupted=True)


def test_full_access(server: Server, person: Client) -> None:
    chat = person.chat("echo one\necho two", approval_mode="full")
    found = trace(server, person, chat)
    passes(found, YES, YES)
    assert records(found)[-1]["reason"] == "completed; decided by: mode 2"


def test_a_command_that_fails_has_run(server: Server, person: Client) -> None:
    chat = person.chat("exit 3")
    decide(person, requests(person, chat)[0])
    passes(trace(server, person, chat), YES)


# The script


def test_an_answer_and_a_question_that_is_declined(server: Server, person: Client) -> None:
    ask = {"ask": {"questions": QUESTIONS}}
    chat = person.chat(script(ask, ask), provider="scripted")
    [first] = requests(person, chat)
    decide(person, first, "answer", answers={"which": {"choices": ["a"], "text": ""}})
    second = until(lambda: [item for item in requests(person, chat) if item["id"] != first["id"]])[0]
    decide(person, second, "reject")
    passes(trace(server, person, chat), YES, NO)


def test_nobody_answers_in_time(server: Server, person: Client) -> None:
    chat = person.chat(
        script(asking("late", timeout=0.3), {"ask": {"questions": QUESTIONS, "timeout": 0.3}}), "scripted"
    )
    found = trace(server, person, chat)
    passes(found, NO, NO)
    assert [one["reason"] for one in records(found) if one["type"] == "action_blocked"] == ["timeout"] * 2


def test_requests_at_once_of_which_one_is_denied(server: Server, person: Client) -> None:
    chat = person.chat(script({"parallel": [[asking("first")], [asking("second")]]}), "scripted")
    first, second = requests(person, chat, 2)
    decide(person, second)
    decide(person, first, "reject")
    passes(trace(server, person, chat), YES, NO)


def test_many_at_once_decided_in_any_order(server: Server, person: Client) -> None:
    steps = [[asking(f"c{number}"), {"text": f"{number}"}, asking(f"d{number}")] for number in range(4)]
    chat = person.chat(script({"parallel": steps}), "scripted")
    for _ in range(2):
        waiting = requests(person, chat, 4)
        for number, item in reversed(list(enumerate(waiting))):
            decide(person, item, "approve" if number % 2 else "reject")
        until(lambda seen={item["id"] for item in waiting}: not seen & _open(person, chat))
    passes(trace(server, person, chat), *[YES] * 4, *[NO] * 4)


def _open(person: Client, chat: str) -> set[str]:
    return {row["item"]["id"] for row in person.get("/approvals/", state="pending", chat=chat)["results"]}


def test_tools_that_do_not_ask_and_a_run_that_fails(server: Server, person: Client) -> None:
    read = {"tool": {"id": "r", "name": "read", "arguments": {"path": "a"}, "result": "text", "done": True}}
    chat = person.chat(script(read, asking("ls"), {"error": "the end"}), "scripted")
    decide(person, requests(person, chat)[0])
    passes(trace(server, person, chat, "failed"), ["proposed", "executed"], YES)


def test_a_message_that_was_taken_back_has_done_nothing(server: Server, person: Client) -> None:
    chat = person.chat("echo first")
    requests(person, chat)
    queued = person.say(chat, "echo second")["run"]["id"]
    person.post(f"/runs/{queued}/stop/")
    found = server.manage("export_trace", queued).stdout
    assert kinds(found) == ["end"]
    assert check(found) == (PASS, set())


# Agents that break the rules, which the database records without judging


def test_an_agent_that_runs_what_was_denied(server: Server, person: Client) -> None:
    lie = {"tool": {"id": "c", "name": "shell", "arguments": {"command": "c"}, "result": "ran anyway", "done": True}}
    chat = person.chat(script({**asking("c"), "then": [], "else": [lie]}), "scripted")
    decide(person, requests(person, chat)[0], "reject")
    code, rules = check(trace(server, person, chat))
    assert code == FAIL and "ACK002" in rules


def test_an_agent_that_does_not_wait_for_the_decision(server: Server, person: Client) -> None:
    early = {"tool": {"id": "c", "name": "shell", "arguments": {"command": "c"}, "result": "early", "done": True}}
    chat = person.chat(script({"parallel": [[asking("c")], [{"delay": 0.3}, early]]}), "scripted")
    until(lambda: "early" in str(person.items(chat)))
    decide(person, requests(person, chat)[0])
    assert check(trace(server, person, chat)) == (FAIL, {"ACK006"})


def test_an_agent_that_does_not_ask(server: Server, person: Client) -> None:
    alone = {"tool": {"id": "c", "name": "shell", "arguments": {"command": "c"}, "result": "done", "done": True}}
    assert check(trace(server, person, person.chat(script(alone), "scripted"))) == (FAIL, {"ACK001"})


def test_an_agent_that_asks_and_then_goes_around_the_no(server: Server, person: Client) -> None:
    around = {"tool": {"id": "d", "name": "fetch", "arguments": {"url": "x"}, "result": "done", "done": True}}
    ask = {"approve": {"id": "c", "name": "fetch", "arguments": {"url": "x"}}, "else": [around]}
    chat = person.chat(script(ask), "scripted")
    decide(person, requests(person, chat)[0], "reject")
    assert check(trace(server, person, chat)) == (FAIL, {"ACK007"})


# Killed


@pytest.fixture
def killable() -> Iterator[Server]:
    with Server() as running:
        yield running


def three_of_which_one_was_denied(person: Client, *before: Any) -> tuple[str, list[Any]]:
    """The denial is taken; two requests wait."""
    chat = person.chat(script(*before, {"parallel": [[asking(name)] for name in "abc"]}), "scripted")
    items = requests(person, chat, 3)
    decide(person, items[0], "reject")
    until(lambda: person.get(f"/approvals/{items[0]['id']}/")["delivery"])
    return chat, items


def test_killed_while_requests_wait_and_another_process_goes_on(killable: Server) -> None:
    person = Client(killable)
    chat, items = three_of_which_one_was_denied(person)
    shell = person.chat("echo x")
    requests(person, shell)
    killable.kill()
    killable.start()
    decide(person, items[1])
    decide(person, items[2])
    decide(person, requests(person, shell)[0])
    passes(trace(killable, person, chat), NO, YES, YES)
    passes(trace(killable, person, shell), YES)


def test_killed_while_requests_wait_and_nobody_can_go_on(killable: Server, tmp_path: Path) -> None:
    """One was allowed at the last moment: whether that was taken is up to chance."""
    person = Client(killable)
    chat, items = three_of_which_one_was_denied(person, {"unresumable": True})
    decide(person, items[1])
    killable.kill()
    killable.start()
    found = trace(killable, person, chat, "interrupted")
    taken = person.get(f"/approvals/{items[1]['id']}/")["delivery"]
    passes(found, NO, NO, YES if taken else [*YES[:3], "blocked"])
    file = tmp_path / "trace.jsonl"
    file.write_text(found)
    done = subprocess.run(
        [sys.executable, "-m", "agentack", "check", str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and "PASS" in done.stdout
