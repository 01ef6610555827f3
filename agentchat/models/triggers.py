"""Triggers that keep Resolution and Receipt insert-only, also against raw SQL.

They are installed after every `migrate`, because SQLite drops triggers silently when a migration rebuilds a table.
"""

from __future__ import annotations

from typing import Any

from django.db import connections

TABLES = {
    "agentchat_resolution": (
        "id = NEW.id OR item_id = NEW.item_id OR (chat_id = NEW.chat_id AND prev_hash = NEW.prev_hash)"
    ),
    "agentchat_receipt": "id = NEW.id OR resolution_id = NEW.resolution_id",
}
"""Insert-only tables, and what makes a new row collide with an old one."""
_SAYS = "is insert-only: it is part of the audit and cannot be changed or deleted"


def install(using: str = "default", **kwargs: Any) -> None:
    """Create the triggers that are missing. Safe to repeat."""
    connection = connections[using]
    tables = set(connection.introspection.table_names())
    with connection.cursor() as cursor:
        for table, collides in TABLES.items():
            if table in tables:
                for statement in _statements(connection.vendor, table, collides):
                    cursor.execute(statement)


def remove(using: str = "default") -> None:
    """For tests that empty the tables between cases."""
    connection = connections[using]
    with connection.cursor() as cursor:
        for table in TABLES:
            on = f" ON {table}" if connection.vendor == "postgresql" else ""
            for name in _names(connection.vendor, table):
                cursor.execute(f"DROP TRIGGER IF EXISTS {name}{on}")


def missing(using: str = "default") -> list[str]:
    """Names of the triggers that should exist (since their table does) and do not."""
    connection = connections[using]
    sql = {
        "postgresql": "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled <> 'D'",
        "sqlite": "SELECT name FROM sqlite_master WHERE type = 'trigger'",
    }[connection.vendor]
    with connection.cursor() as cursor:
        cursor.execute(sql)
        present = {row[0] for row in cursor.fetchall()}
    tables = set(connection.introspection.table_names()) & set(TABLES)
    wanted = [name for table in sorted(tables) for name in _names(connection.vendor, table)]
    return [name for name in wanted if name not in present]


def _names(vendor: str, table: str) -> list[str]:
    acts = ("change", "truncate") if vendor == "postgresql" else ("update", "delete", "replace")
    return [f"{table}_refuses_{act}" for act in acts]


def _statements(vendor: str, table: str, collides: str) -> list[str]:
    return _postgresql(table) if vendor == "postgresql" else _sqlite(table, collides)


def _postgresql(table: str) -> list[str]:
    change, truncate = _names("postgresql", table)
    function = f"{table}_refuses"
    return [
        f"CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $$"
        f" BEGIN RAISE EXCEPTION '{table} {_SAYS}' USING ERRCODE = 'restrict_violation'; END $$",
        f"CREATE OR REPLACE TRIGGER {change} BEFORE UPDATE OR DELETE ON {table}"
        f" FOR EACH ROW EXECUTE FUNCTION {function}()",
        f"CREATE OR REPLACE TRIGGER {truncate} BEFORE TRUNCATE ON {table}"
        f" FOR EACH STATEMENT EXECUTE FUNCTION {function}()",
    ]


def _sqlite(table: str, collides: str) -> list[str]:
    update, delete, replace = _names("sqlite", table)
    refuse = f"BEGIN SELECT RAISE(ABORT, '{table} {_SAYS}'); END"
    return [
        f"CREATE TRIGGER IF NOT EXISTS {update} BEFORE UPDATE ON {table} {refuse}",
        f"CREATE TRIGGER IF NOT EXISTS {delete} BEFORE DELETE ON {table} {refuse}",
        # INSERT OR REPLACE deletes the old row without firing the trigger above.
        f"CREATE TRIGGER IF NOT EXISTS {replace} BEFORE INSERT ON {table}"
        f" WHEN EXISTS (SELECT 1 FROM {table} WHERE {collides})"
        f" BEGIN SELECT RAISE(ABORT, 'UNIQUE constraint failed: {table} holds such a row already'); END",
    ]
