"""PostgreSQL stands still at a chosen place, until the test lets it go on.

Before the commit: a trigger waits for an advisory lock, which the test holds. After the commit (`unheard`): it is
durable, and its answer is not sent, because the trigger lets it wait for a replica that does not exist.
"""

from __future__ import annotations

import contextlib
from typing import Any

import psycopg
from psycopg.sql import SQL, Identifier, Literal

from tests.services.client import until

SETTINGS = ("synchronous_commit=local", "synchronous_standby_names=nobody")
ENDS = "NEW.ended_at IS NOT NULL AND OLD.ended_at IS NULL"
PLACES = {
    "claim": ("UPDATE ON agentchat_run", "NEW.status = 'running' AND OLD.status = 'queued'"),
    "decision": ("INSERT ON agentchat_resolution", "true"),
    "receipt": ("INSERT ON agentchat_receipt", "true"),
    "text": ("INSERT ON agentchat_event", "NEW.kind = 'item.delta'"),
    "flush": ("UPDATE ON agentchat_message", "NEW.ended_at IS NULL"),
    "message": ("UPDATE ON agentchat_message", ENDS),
    "run": ("UPDATE ON agentchat_run", ENDS),
}
"""Which transactions stand still: of what they write, and when."""
UNHEARD = ", unheard"
FUNCTIONS = (
    """CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_advisory_xact_lock_shared(TG_ARGV[0]::int); RETURN NEW; END $$""",
    """CREATE FUNCTION unheard() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN IF NOT pg_try_advisory_xact_lock_shared(TG_ARGV[0]::int)
    THEN PERFORM set_config('synchronous_commit', 'on', true); END IF; RETURN NEW; END $$""",
)
TRIGGER = "CREATE TRIGGER {name} BEFORE {event} FOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION {function}({key})"
STANDING = "SELECT pid FROM pg_stat_activity WHERE wait_event = ANY(%s) AND datname = current_database()"


class Holds:
    """`install()` once; then `take(place)`, `reached()`, `release()`. A restart of PostgreSQL releases too."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._holder: psycopg.Connection[Any] | None = None

    def install(self) -> None:
        with psycopg.connect(self._url) as connection:
            for function in FUNCTIONS:
                connection.execute(SQL(function))
            for name in PLACES:
                connection.execute(_trigger(name, "hold", name))
                connection.execute(_trigger(name, "unheard", name + UNHEARD))

    def take(self, place: str) -> None:
        self._holder = psycopg.connect(self._url, autocommit=True)
        self._holder.execute("SELECT pg_advisory_lock(%s)", [_key(place)])

    def reached(self) -> None:
        """Return once a transaction stands still."""
        until(lambda: self._standing("advisory", "SyncRep"))

    def release(self) -> None:
        with contextlib.suppress(psycopg.Error):
            for pid in self._standing("SyncRep") if self._holder else ():
                self._holder.execute("SELECT pg_cancel_backend(%s)", [pid])  # type: ignore[union-attr]
        if self._holder:
            self._holder.close()
        self._holder = None

    def _standing(self, *where: str) -> list[int]:
        assert self._holder, "take it first"
        return [pid for (pid,) in self._holder.execute(STANDING, [list(where)]).fetchall()]


def _trigger(name: str, function: str, place: str) -> Any:
    event, condition = PLACES[name]
    return SQL(TRIGGER).format(
        name=Identifier(f"{function}_{name}"),
        event=SQL(event),
        condition=SQL(condition),
        function=Identifier(function),
        key=Literal(str(_key(place))),
    )


def _key(place: str) -> int:
    name = place.removesuffix(UNHEARD)
    return 1 + list(PLACES).index(name) + (100 if place.endswith(UNHEARD) else 0)
