"""PostgreSQL stands still at a chosen place: a trigger waits for an advisory lock, which the test holds."""

from __future__ import annotations

import contextlib
from typing import Any

import psycopg
from psycopg.sql import SQL, Identifier, Literal

from tests.services.client import until

PLACES = {
    "decision": ("BEFORE INSERT ON agentchat_resolution", "true"),
    "receipt": ("BEFORE INSERT ON agentchat_receipt", "true"),
    "flush": ("BEFORE UPDATE ON agentchat_message", "NEW.ended_at IS NULL"),
    "message": ("BEFORE UPDATE ON agentchat_message", "NEW.ended_at IS NOT NULL AND OLD.ended_at IS NULL"),
    "run": ("BEFORE UPDATE ON agentchat_run", "NEW.ended_at IS NOT NULL AND OLD.ended_at IS NULL"),
}
"""Which transactions stand still: of what they write, and when."""
HOLD = """CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_advisory_xact_lock_shared(TG_ARGV[0]::int); RETURN NEW; END $$"""
TRIGGER = "CREATE TRIGGER {name} {event} FOR EACH ROW WHEN ({condition}) EXECUTE FUNCTION hold({key})"
WAITING = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND NOT granted"


class Holds:
    """`install()` once; then `take(place)`, `reached(place)`, `release()`. A restart of PostgreSQL releases too."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._holder: psycopg.Connection[Any] | None = None

    def install(self) -> None:
        with psycopg.connect(self._url) as connection:
            connection.execute(HOLD)
            for name, (event, condition) in PLACES.items():
                words = {"event": SQL(event), "condition": SQL(condition)}  # type: ignore[arg-type]
                named = {"name": Identifier(f"hold_{name}"), "key": Literal(str(key(name)))}
                connection.execute(SQL(TRIGGER).format(**words, **named))

    def take(self, place: str) -> None:
        self._holder = psycopg.connect(self._url, autocommit=True)
        self._holder.execute("SELECT pg_advisory_lock(%s)", [key(place)])

    def reached(self, place: str) -> None:
        """Return once a transaction stands still there."""
        holder = self._holder
        assert holder, "take it first"
        until(lambda: holder.execute(WAITING, [key(place)]).fetchone() != (0,))

    def release(self) -> None:
        if self._holder:
            with contextlib.suppress(psycopg.Error):
                self._holder.close()
        self._holder = None


def key(place: str) -> int:
    return 1 + list(PLACES).index(place)
