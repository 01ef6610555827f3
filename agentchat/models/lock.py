"""A lock for what is counted before it is changed, held to the end of the transaction."""

from __future__ import annotations

from django.db import connection

_KEY = 0x6167656E74


def one_at_a_time() -> None:
    """SQLite lets only one transaction write at a time anyway."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_KEY])
