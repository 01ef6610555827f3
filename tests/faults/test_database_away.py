"""PostgreSQL is away when a server starts, or is told to stop: it says so in a sentence, and ends in time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.conftest import script
from tests.faults.story import gate
from tests.services.client import Client, until
from tests.services.postgres import Postgres
from tests.services.process import ServiceFailed
from tests.services.server import Server

pytestmark = [pytest.mark.slow, pytest.mark.services, pytest.mark.timeout(240)]
AWAY = "CommandError: The database cannot be reached right now"


@pytest.fixture
def own_postgres() -> Iterator[Postgres]:
    with Postgres() as running:
        yield running


@pytest.fixture
def server(own_postgres: Postgres) -> Iterator[Server]:
    with Server(env={"DATABASE_URL": own_postgres.url}) as running:
        yield running


def test_a_server_that_is_stopped_meanwhile_starts_when_the_database_is_back(
    server: Server, own_postgres: Postgres
) -> None:
    client = Client(server)
    chat = client.chat(script({"unresumable": True}, gate(0)), provider="scripted")
    [asked] = client.pending()
    own_postgres.halt()
    assert server.stop(60) == 0, "in time, although nothing can be stored"
    with pytest.raises(ServiceFailed, match=f"ended with 1 while starting(.|\n)*{AWAY}"):
        server.start()
    assert "Traceback" not in server.log()
    own_postgres.resume()
    server.start()
    until(lambda: client.run(chat)["status"] == "interrupted")
    late = client.decide(asked["item"])
    assert (late.status_code, late.json()["code"]) == (410, "agent_gone")
    client.say(chat, script({"text": "again"}))
    assert until(lambda: client.run(chat)["status"] == "completed")
