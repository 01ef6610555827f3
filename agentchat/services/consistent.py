"""Reads that all see the same moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction


@contextmanager
def view() -> Iterator[None]:
    """One consistent view: REPEATABLE READ READ ONLY on PostgreSQL; on SQLite a deferred transaction, which takes no
    write lock (`atomic()` would, under IMMEDIATE). Within a transaction of the caller that one serves."""
    if connection.in_atomic_block:
        yield
    elif connection.vendor == "postgresql":
        with transaction.atomic():
            _execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield
    else:
        _execute("BEGIN DEFERRED")
        try:
            yield
        finally:
            _execute("ROLLBACK")


def _execute(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)
