"""Faults that a program at the REST API would meet, at a server that really runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.cases.helpers import at_once, marked_processes
from tests.e2e.conftest import script
from tests.services.client import Client, until
from tests.services.server import Server


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Server) -> Client:
    return Client(server)


def requests_of(client: Client, chat: str, count: int = 1) -> list[Any]:
    """The open requests of a chat, the oldest first, once there are `count`."""

    def look() -> Any:
        rows = client.get("/approvals/", state="pending", chat=chat)["results"]
        return [row["item"] for row in reversed(rows)] if len(rows) >= count else None

    return until(look)


def ends(client: Client, chat: str) -> str:
    return str(until(lambda: (run := client.run(chat))["ended_at"] and run["status"]))


def files(server: Server) -> dict[str, int]:
    return {file.name: len(file.read_text().splitlines()) for file in server.var.rglob("counted-*")}


def step(id: str, **more: Any) -> dict[str, Any]:
    """A request that leaves a line in a file for each time that it is taken as a yes."""
    asked = {"id": id, "name": "shell", "arguments": {"command": id}, **more}
    done = {"tool": {"id": id, "name": "shell", "result": "ok", "done": True}}
    return {"approve": asked, "then": [{"counter": f"counted-{id}"}, done], "else": [{"text": "no"}]}


def test_s03_one_answer_twice_is_one_and_two_answers_have_one_winner(server: Server, client: Client) -> None:
    """A retry must get what the first try got; whoever disagrees must be told whose answer stands, and since when."""
    chat = client.chat(script(step("s03")), provider="scripted")
    [item] = requests_of(client, chat)
    first, again = client.decide(item), client.decide(item)
    assert (first.status_code, again.status_code) == (200, 200)
    assert first.json()["resolution"]["hash"] == again.json()["resolution"]["hash"]
    other = client.decide(item, "reject")
    assert (other.status_code, other.json()["code"]) == (409, "already_resolved")
    told = other.json()["resolution"]
    assert (told["action"], told["decided_by"]) == ("approve", first.json()["resolution"]["decided_by"])
    assert told["decided_at"] == first.json()["resolution"]["decided_at"]
    assert ends(client, chat) == "completed"
    assert files(server)["counted-s03"] == 1


def test_s05_a_late_yes_finds_an_expired_request_and_runs_nothing(server: Server, client: Client) -> None:
    """Nobody's silence must not be written down as somebody's refusal, nor be undone by a click that comes later."""
    chat = client.chat(script(step("s05", timeout=0.5)), provider="scripted")
    [item] = requests_of(client, chat)
    assert ends(client, chat) == "completed"
    late = client.decide(item)
    assert (late.status_code, late.json()["code"]) == (410, "expired")
    stands = client.get(f"/approvals/{item['id']}/")["resolution"]
    assert (stands["cause"], stands["decided_by"], stands["decided_via"]) == ("timeout", None, "system")
    assert late.json()["resolution"]["hash"] == stands["hash"]
    assert "counted-s05" not in files(server)
    audit = [row for row in client.all("/resolutions/") if row["item"] == item["id"]]
    assert [(row["cause"], row["decided_by"]) for row in audit] == [("timeout", None)]


def test_s06_a_stop_settles_the_request_and_the_next_message_runs(server: Server, client: Client) -> None:
    """A stop must free what waits for a person, or the chat stays deaf to everything said after it."""
    chat = client.chat("true")
    [item] = requests_of(client, chat)
    run = client.run(chat)["id"]
    assert client.post(f"/runs/{run}/stop/").status_code == 200
    until(lambda: client.get(f"/approvals/{item['id']}/")["resolution"], seconds=5)
    late = client.decide(item)
    assert (late.status_code, late.json()["code"]) == (410, "stopped")
    assert late.json()["resolution"]["cause"] == "stopped"
    assert ends(client, chat) == "cancelled"
    client.say(chat, "echo hello again")
    [next_item] = requests_of(client, chat)
    assert client.decide(next_item).status_code == 200
    assert ends(client, chat) == "completed"
    assert client.items(chat)[-1]["output"][0]["text"] == "hello again\n"


def test_s06_a_stop_leaves_no_process_of_the_agent(server: Server, client: Client) -> None:
    """While a command runs beside a request that waits, a stop must end the command as well."""
    chat = client.chat("sleep 300 & sleep 301")
    client.decide(requests_of(client, chat)[0])
    run = client.run(chat)["id"]
    until(lambda: len(marked_processes(run)) >= 2)
    client.post(f"/runs/{run}/stop/")
    assert ends(client, chat) == "cancelled"
    until(lambda: not marked_processes(run), seconds=5)


REASONS: list[dict[str, Any]] = [
    {}, {"reason": ""}, {"reason": "   "}, {"reason": None}, {"reason": ('why\nnot "this" ' * 400)[:5000]},
]  # fmt: skip


@pytest.mark.parametrize("said", REASONS, ids=["missing", "empty", "blank", "null", "5000 characters"])
def test_s07_a_no_is_taken_with_or_without_a_reason(server: Server, client: Client, said: dict[str, Any]) -> None:
    """Saying why is a courtesy: without it the refusal is as good, and it is a refusal, never a failed tool."""
    chat = client.chat("touch counted-s07")
    [item] = requests_of(client, chat)
    answer = client.decide(item, "reject", **said)
    assert answer.status_code == 200, answer.text
    assert answer.json()["resolution"]["reason"] == ((said.get("reason") or "").strip())
    assert ends(client, chat) == "completed"
    call = client.items(chat)[0]
    assert (call["status"], call["resolution"]["action"]) == ("rejected", "reject")
    assert client.snapshot(chat)["messages"][-1]["error"] == ""
    page = client.http.get(f"/chats/{chat}/transcript/").text
    assert "You denied this. It did not run." in page
    assert 'aria-label="Error"' not in page
    assert "counted-s07" not in files(server)


def test_s08_each_of_three_open_requests_gets_its_own_answer(server: Server, client: Client) -> None:
    """All that waits must be there to see, in one order, and an answer to one must leave the others alone."""
    allowed = {"tool": {"id": "A", "name": "read", "arguments": {}, "result": "x", "done": True}}
    steps = [{"parallel": [[allowed], *([step(f"s08-{id}")] for id in "bcd")]}, {"text": "and on"}]
    chat = client.chat(script(*steps), provider="scripted")
    waiting = requests_of(client, chat, 3)
    names = [item["call_id"] for item in waiting]
    assert sorted(names) == ["s08-b", "s08-c", "s08-d"]
    for _ in range(3):
        shown = [item["call_id"] for item in client.items(chat) if item["status"] == "pending"]
        assert shown == names
    by_id = {item["call_id"]: item for item in waiting}
    for id, action in (("s08-d", "approve"), ("s08-b", "reject"), ("s08-c", "approve")):
        assert client.decide(by_id[id], action).status_code == 200
    assert ends(client, chat) == "completed"
    assert {name: count for name, count in files(server).items() if "s08" in name} == {
        "counted-s08-c": 1,
        "counted-s08-d": 1,
    }
    decided = {item["call_id"]: item["resolution"]["action"] for item in client.items(chat) if item.get("resolution")}
    assert decided == {"s08-b": "reject", "s08-c": "approve", "s08-d": "approve"}
    assert client.items(chat)[-1]["content"][0]["text"].endswith("and on")


def test_s08_three_answers_in_the_same_instant_all_count(server: Server, client: Client) -> None:
    """Answers to different requests are no rivals, even if they arrive together."""
    chat = client.chat(
        script({"parallel": [[step(f"s08-at-once-{n}")] for n in range(3)]}, {"text": "all"}), provider="scripted"
    )
    waiting = requests_of(client, chat, 3)
    answers = at_once(*(lambda item=item: client.at(server).decide(item) for item in waiting))
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    assert ends(client, chat) == "completed"
    assert sum(count for name, count in files(server).items() if "s08-at-once" in name) == 3


def test_s11_one_id_in_two_rounds_is_two_calls_and_two_decisions(server: Server, client: Client) -> None:
    """An agent numbers its calls anew each round; the second one of a name must be asked about and kept like the first."""
    steps = []
    for q in ("a", "b"):
        arguments = {"q": q}
        finish = {
            "tool": {"id": "search:0", "name": "search", "arguments": arguments, "result": q.upper(), "done": True}
        }
        steps += [
            {"approve": {"id": "search:0", "name": "search", "arguments": arguments}, "then": [finish]},
            {"text": f"found {q}"},
        ]
    chat = client.chat(script(*steps), provider="scripted")
    [first] = requests_of(client, chat)
    client.decide(first)
    second = until(
        lambda: next((item for item in requests_of(client, chat) if item["id"] != first["id"]), None), seconds=10
    )
    assert second["resolution"] is None
    stale = client.decide({**second, "digest": first["digest"]})
    assert (stale.status_code, stale.json()["code"]) == (409, "stale"), "the digest of the first opens the second"
    assert client.decide(second).status_code == 200
    assert ends(client, chat) == "completed"
    items = client.items(chat)
    seen = [
        (json.loads(i["arguments"])["q"] if i["type"] == "function_call" else (i.get("output") or i["content"])[0]["text"])
        for i in items
    ]  # fmt: skip
    assert seen == ["a", "A", "found a", "b", "B", "found b"]
    assert [items[1]["call"], items[4]["call"]] == [items[0]["id"], items[3]["id"]]
    client.say(chat, script({"text": "next"}))
    until(lambda: client.items(chat)[-1].get("content", [{}])[0].get("text") == "next")


def test_s12_a_result_for_a_call_that_nobody_announced_is_kept(server: Server, client: Client) -> None:
    """What comes out of order belongs somewhere: nothing is dropped, nothing is shown twice."""
    early = {"tool": {"id": "early", "name": "shell", "arguments": {"command": "e"}, "result": "out", "done": True}}
    asked = {"approve": {"id": "c1", "name": "shell", "arguments": {"command": "c"}}, "then": [
        {"tool": {"id": "c1", "name": "shell", "done": True, "result": "done"}}]}  # fmt: skip
    progress = {"tool": {"id": "c1", "name": "shell", "arguments": {"command": "c"}}}
    marker = {"tool": {"id": "later", "name": "read", "arguments": {}, "result": "x", "done": True}}
    steps = [early, {"parallel": [[asked], [progress, progress, marker]]}]
    chat = client.chat(script(*steps), provider="scripted")
    [item] = requests_of(client, chat)
    until(
        lambda: any(
            i["call_id"] == "later" and i["status"] == "completed" for i in client.items(chat) if "call_id" in i
        )
    )
    assert client.get(f"/approvals/{item['id']}/")["options"]["actions"] == ["approve", "reject"]
    assert client.decide(item).status_code == 200
    assert ends(client, chat) == "completed"
    items = [i for i in client.items(chat) if i["call_id"] != "later"]
    assert [(i["type"], i["call_id"]) for i in items] == [
        ("function_call", "early"), ("function_call_output", "early"), ("function_call", "c1"), ("function_call_output", "c1"),
    ]  # fmt: skip
    assert [items[1]["output"][0]["text"], items[3]["output"][0]["text"]] == ["out", "done"]


def test_s15_nul_from_every_side_is_stored_and_found(server: Server, client: Client) -> None:
    """A character that some databases cannot hold must cost neither the run, nor the search, nor the pages."""
    check_nul(client)


def check_nul(client: Client) -> None:
    chat = client.chat("printf 'start\\0middle\\0end'; printf '%s' '\\u0000'")
    title = client.http.patch(f"/api/v1/chats/{chat}/", json={"title": "ti\0tle"}, headers={"X-CSRFToken": client.csrf})
    assert (title.status_code, title.json()["title"]) == (200, "ti␀tle")
    [item] = requests_of(client, chat)
    client.decide(item)
    assert ends(client, chat) == "completed"
    call, result = client.items(chat)
    assert result["output"][0]["text"] == "start␀middle␀end\\u0000"
    assert json.loads(call["arguments"])["command"].endswith("'\\u0000'")
    other = client.chat(
        script(
            {"text": "one\0middle\0two"},
            {"tool": {"id": "n\0", "name": "read", "arguments": {"path": "a\0b.txt"}, "result": "r\0", "done": True}},
        ),
        provider="scripted",
    )
    assert ends(client, other) == "completed"
    said, named, read = client.items(other)
    assert (said["content"][0]["text"], read["output"][0]["text"]) == ("one␀middle␀two", "r␀")
    assert json.loads(named["arguments"]) == {"path": "a\0b.txt"}
    assert {row["id"] for row in client.get("/chats/", q="middle")["results"]} >= {other}
    for path in (f"/chats/{chat}/", f"/chats/{other}/", "/side/?q=mi%00ddle", "/api/v1/chats/?q=mi%00ddle", "/approvals/",
                 "/admin/agentchat/outputitem/", "/admin/agentchat/message/?q=middle", "/admin/agentchat/chat/?q=ti",
                 f"/admin/agentchat/outputitem/{read['id']}/change/", f"/admin/agentchat/outputitem/{named['id']}/change/",
                 f"/admin/agentchat/message/{client.snapshot(other)['messages'][0]['id']}/change/"):  # fmt: skip
        answer = client.http.get(path)
        assert answer.status_code == 200, path
        assert "\0" not in answer.text, path


def test_s15_nul_is_the_same_on_postgresql(postgres: Any) -> None:
    """The very same steps, where the database is the strict one."""
    with Server(env={"DATABASE_URL": postgres.create("case_nul")}) as server:
        check_nul(Client(server))


def test_s17_the_raw_output_can_be_had_and_the_page_shows_the_last_frame(server: Server, client: Client) -> None:
    """A progress bar overwrites itself in a terminal; so it must on the page, while the bytes stay as they came."""
    program = (
        r"for n in $(seq 0 1999); do printf '\rDownloading %3d%%' $((n * 100 / 1999)); done; "
        r"printf '\r\nDone\r\n\033[32mOK\033[0m\033]0;title\007\nabc\b\bX\033[2J'"
    )
    chat = client.chat(program)
    client.decide(requests_of(client, chat)[0])
    assert ends(client, chat) == "completed"
    items = client.items(chat)
    assert len(items) == 2
    raw = client.http.get(f"/api/v1/items/{items[1]['id']}/text/").content
    assert (raw.count(b"\rDownloading"), raw.count(b"\x1b[32mOK\x1b[0m")) == (2000, 1)
    assert raw.endswith(b"\x1b]0;title\x07\nabc\b\bX\x1b[2J")
    page = client.http.get(f"/chats/{chat}/").text
    assert not {"\x1b", "\x07", "\b"} & set(page)
    assert "[32m" not in shown_output(page)
    assert shown_output(page).count("Downloading") < 40
    assert "Downloading 100%" in shown_output(page) and "Done" in shown_output(page)


def shown_output(page: str) -> str:
    """The page without the command itself, which names all of it."""
    return page[page.rindex('class="term') :]


def test_s19_hidden_direction_marks_are_shown_as_codes_and_kept_to_the_byte(server: Server, client: Client) -> None:
    """A command that reads otherwise than it runs is a trap for whoever allows it."""
    for command, codes in (
        ("rm \u202e/gol.ppa\u202c", ("U+202E", "U+202C")),
        ("curl https://ok.example\u2066/../evil\u2069", ("U+2066", "U+2069")),
    ):
        chat = client.chat(script(step("s19", arguments={"command": command})), provider="scripted")
        [item] = requests_of(client, chat)
        assert json.loads(item["arguments"])["command"] == command
        places = (
            f"/chats/{chat}/transcript/",
            f"/chats/{chat}/items/{item['id']}/fragment/?in=inbox",
            f"/approvals/?open={item['id']}",
        )
        for path in places:
            page = client.http.get(path).text
            for code in codes:
                assert f'<bdi class="uchip">{code}</bdi>' in page, path
            assert "Some characters here are not what they look like." in page
            visible = page.split("data-copy=")[0].split("<pre>")[-1]
            assert not set("\u202e\u202c\u2066\u2069") & set(visible), path
        client.decide(item)
        ends(client, chat)
        assert json.loads(client.get(f"/items/{item['id']}/")["arguments"])["command"] == command


def test_s29_a_decision_from_another_site_is_refused_before_it_counts(server: Server, client: Client) -> None:
    """A browser sends its cookie along with whatever a foreign page makes it send; the cookie alone must decide nothing."""
    chat = client.chat(script(step("s29")), provider="scripted")
    [item] = requests_of(client, chat)
    path = f"/api/v1/approvals/{item['id']}/decision/"
    body = {"action": "approve", "digest": item["digest"]}
    foreign = {"Origin": "https://evil.example", "Referer": "https://evil.example/"}
    tries = [
        client.http.post(path, json=body),
        client.http.post(path, json=body, headers=foreign),
        client.http.post(path, json=body, headers={**foreign, "X-CSRFToken": client.csrf}),
        client.http.post(path, data=body, headers=foreign),
        client.http.post(path, content=json.dumps(body), headers={**foreign, "Content-Type": "text/plain"}),
    ]
    assert [answer.status_code for answer in tries] == [403] * 5
    assert client.get(f"/approvals/{item['id']}/")["resolution"] is None
    assert "counted-s29" not in files(server)
    assert client.decide(item).status_code == 200


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "https://app.example.evil.test", "http://app.example:8080",
     "http://127.0.0.1.evil.test:{port}", "http://127.0.0.1:1", "https://127.0.0.1:{port}", None],
)  # fmt: skip
def test_s29_a_socket_from_another_site_is_refused_before_it_opens(
    server: Server, client: Client, origin: str | None
) -> None:
    """A cookie proves who the browser is, not which page asks: the page must be one of ours."""
    chat = client.post("/chats/", {"provider": "scripted"}).json()["id"]
    given = {"Origin": origin.format(port=server.port)} if origin is not None else {}
    headers = {
        "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }  # fmt: skip
    for path in (f"/ws/chats/{chat}/?after=0", "/ws/inbox/"):
        own = {**headers, "Origin": server.url}
        assert status_of(client, path, {**headers, **given}) == 403
        assert status_of(client, path, own) == 101


def status_of(client: Client, path: str, headers: dict[str, str]) -> int:
    """Of a handshake; the socket is dropped at once."""
    http = httpx.Client(base_url=client.http.base_url, cookies=dict(client.http.cookies), timeout=10)
    with http, http.stream("GET", path, headers=headers) as answer:
        return int(answer.status_code)


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_s30_a_server_in_tokyo_says_the_true_moment(request: pytest.FixtureRequest, database: str) -> None:
    """The clock on the server's wall is nine hours ahead; the record must not be."""
    env = {"TZ": "Asia/Tokyo", "AGENTCHAT_TIME_ZONE": "Asia/Tokyo"}
    if database == "postgresql":
        env["DATABASE_URL"] = request.getfixturevalue("postgres").create("case_tokyo")
    with Server(env=env) as far:
        client = Client(far)
        chat = client.chat(script(step("s30")), provider="scripted")
        [item] = requests_of(client, chat)
        before = datetime.now(UTC)
        said = client.decide(item).json()["resolution"]["decided_at"]
        after = datetime.now(UTC)
        assert said.endswith("Z")
        slack = timedelta(minutes=1)
        assert before - slack <= datetime.fromisoformat(said) <= after + slack
        assert client.get(f"/approvals/{item['id']}/")["resolution"]["decided_at"] == said
        assert f'datetime="{said}"' in client.http.get(f"/chats/{chat}/").text
        admin = client.http.get("/admin/agentchat/resolution/").text
        assert "Asia/Tokyo" in admin
