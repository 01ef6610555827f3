"""The audit cannot be changed by SQL, and what is changed by force is found, whatever it is."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction

from agentchat.events import Via
from agentchat.models import Chat, Receipt, Resolution, clock, triggers
from agentchat.services import approvals, chain, chats
from tests import made

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.databases]

TABLES = {"agentchat_resolution": "item_id", "agentchat_receipt": "resolution_id"}
FORGED: dict[str, Any] = {
    "action": "reject",
    "cause": "rule",
    "tool": "other",
    "arguments": '{"command":"evil"}',
    "answers": {"q": {"choices": [], "text": "yes"}},
    "reason": "no",
    "scope": "chat",
    "rule": "all",
    "decided_by_name": "mallory",
    "decided_via": "admin",
    "proof": "session:other",
    "displayed_at": None,
    "digest": "0" * 64,
    "final_digest": "0" * 64,
    "prev_hash": "0" * 64,
    "hash": "0" * 64,
}
"""For each column another value that the database takes; times and keys are in the tests."""


@pytest.fixture
def rows(chat: Chat, owner: Any) -> list[Resolution]:
    """Four decisions of one chat, each with its receipt."""
    message = made.answer_in(chat)
    for number in range(4):
        item = made.request_in(message, {"command": f"echo {number}"})
        decision = approvals.Decision("approve", item.digest, displayed_at=clock.now())
        row = approvals.decide(owner, item.pk, decision, via=Via.API, proof="session:1")
        Receipt.objects.create(resolution=row, run=message.run, worker="test", delivered_at=clock.now())
    assert chain.verify(chat.pk) is None
    return list(Resolution.objects.order_by("pk"))


def everything() -> list[Any]:
    return [*Resolution.objects.order_by("pk").values(), *Receipt.objects.order_by("pk").values()]


def refused(sql: str, *parameters: Any) -> str:
    with pytest.raises(DatabaseError) as error, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql, parameters)
    return str(error.value)


COMMON = [
    "UPDATE {table} SET id = id",
    "UPDATE {table} SET {unique} = {unique} WHERE id = (SELECT max(id) FROM {table})",
    "UPDATE {table} SET id = -id",
    "DELETE FROM {table}",
    "DELETE FROM {table} WHERE id = (SELECT max(id) FROM {table})",
]
OF_VENDOR = {
    "sqlite": [
        "UPDATE OR REPLACE {table} SET id = (SELECT max(id) FROM {table}) WHERE id = (SELECT min(id) FROM {table})",
        "UPDATE OR IGNORE {table} SET id = id + 100",
        "DELETE FROM {table} WHERE rowid > 0",
        "INSERT INTO {table} SELECT * FROM {table} WHERE true ON CONFLICT DO UPDATE SET id = id + 100",
        "INSERT INTO {table} SELECT * FROM {table} WHERE true ON CONFLICT (id) DO UPDATE SET {unique} = excluded.{unique}",
        "UPDATE {table} SET id = id RETURNING id",
    ],
    "postgresql": [
        "TRUNCATE {table} CASCADE",
        "TRUNCATE agentchat_chat CASCADE",
        "TRUNCATE agentchat_resolution, agentchat_receipt",
        "INSERT INTO {table} SELECT * FROM {table} ON CONFLICT (id) DO UPDATE SET {unique} = excluded.{unique}",
        "WITH gone AS (DELETE FROM {table} RETURNING id) SELECT count(*) FROM gone",
        "MERGE INTO {table} t USING {table} s ON t.id = s.id WHEN MATCHED THEN DELETE",
    ],
}


@pytest.mark.parametrize("table", TABLES)
def test_sql_that_changes_a_row_is_refused_and_says_why(rows: list[Resolution], table: str) -> None:
    before = everything()
    for sql in COMMON + OF_VENDOR[connection.vendor]:
        said = refused(sql.format(table=table, unique=TABLES[table]))
        assert "insert-only" in said or "holds such a row already" in said, sql
        assert everything() == before, sql


COLLISIONS = {
    "agentchat_resolution": [{"id": 900}, {"id": 900, "item_id": "fresh"}, {"item_id": "fresh", "prev_hash": "1" * 64}],
    "agentchat_receipt": [{"id": 900}, {"resolution_id": 900}],
}
"""Columns that differ, so that the row collides with an old one by the others only."""


@pytest.mark.parametrize("verb", ["INSERT OR REPLACE", "REPLACE", "INSERT"])
@pytest.mark.parametrize("table", TABLES)
def test_no_row_can_be_put_in_the_place_of_another(rows: list[Resolution], table: str, verb: str) -> None:
    """PostgreSQL has no REPLACE; there the plain INSERT is what its unique indexes refuse."""
    before = everything()
    for changed in [{}, *COLLISIONS[table]]:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {table} ORDER BY id LIMIT 1")
            names = [column[0] for column in cursor.description]
            old = dict(zip(names, cursor.fetchone(), strict=True))
        new = old | {name: uuid.uuid4().hex if value == "fresh" else value for name, value in changed.items()}
        values = list(new.values())
        refused(f"{verb} INTO {table} ({', '.join(names)}) VALUES ({', '.join(['%s'] * len(names))})", *values)
        assert everything() == before, changed


def force(sql: str, *parameters: Any) -> None:
    """As somebody would who may do everything in the database."""
    triggers.remove()
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql, parameters)
    finally:
        triggers.install()


def test_every_column_of_a_resolution_is_sealed() -> None:
    """A column that is added later must be sealed too, and forged here."""
    columns = {field.attname for field in Resolution._meta.concrete_fields}
    assert columns == set(FORGED) | {"id", "item_id", "chat_id", "decided_by_id", "decided_at"}


@pytest.mark.parametrize("column", FORGED)
@pytest.mark.parametrize("place", [0, 1, 3], ids=["first", "middle", "last"])
def test_a_forged_column_is_found(rows: list[Resolution], chat: Chat, column: str, place: int) -> None:
    row = rows[place]
    field: Any = Resolution._meta.get_field(column)
    value = field.get_db_prep_save(FORGED[column], connection)
    assert getattr(row, column) != FORGED[column]
    force(f"UPDATE agentchat_resolution SET {column} = %s WHERE id = %s", value, row.pk)
    found = chain.verify(chat.pk)
    assert found is not None and (found.resolution, found.chat) == (row.pk, chat.pk)
    with pytest.raises(SystemExit) as ended:
        call_command("verify_resolutions")
    assert ended.value.code == 1


def test_a_moved_time_another_person_and_another_request_are_found(
    rows: list[Resolution], chat: Chat, owner: Any, stranger: Any
) -> None:
    other = made.request_in(rows[0].item.message)
    for column, value in (
        ("decided_at", rows[1].decided_at + timedelta(microseconds=1)),
        ("decided_by_id", stranger.pk),
        ("item_id", other.pk),
    ):
        field: Any = Resolution._meta.get_field(column.removesuffix("_id"))
        before = field.get_db_prep_save(getattr(rows[1], column), connection)
        sql = f"UPDATE agentchat_resolution SET {column} = %s WHERE id = %s"
        force(sql, field.get_db_prep_save(value, connection), rows[1].pk)
        found = chain.verify(chat.pk)
        assert found is not None and found.resolution == rows[1].pk, column
        force(sql, before, rows[1].pk)
        assert chain.verify(chat.pk) is None


@pytest.mark.parametrize("place", [0, 1, 2], ids=["first", "second", "third"])
def test_a_row_that_was_taken_out_is_found(rows: list[Resolution], chat: Chat, place: int) -> None:
    force("DELETE FROM agentchat_receipt WHERE resolution_id = %s", rows[place].pk)
    force("DELETE FROM agentchat_resolution WHERE id = %s", rows[place].pk)
    found = chain.verify(chat.pk)
    assert found is not None and found.resolution == rows[place + 1].pk


def test_a_row_that_was_moved_to_another_chat_is_found(rows: list[Resolution], chat: Chat, owner: Any) -> None:
    other = chats.create(user=owner, provider="scripted")
    field: Any = Resolution._meta.get_field("chat")
    moved = field.get_db_prep_save(other.pk, connection)
    force("UPDATE agentchat_resolution SET chat_id = %s WHERE id = %s", moved, rows[0].pk)
    assert {found.chat for found in chain.verify_all()} == {chat.pk, other.pk}


def test_a_forger_who_seals_again_is_found_by_the_next_row(rows: list[Resolution], chat: Chat) -> None:
    row = rows[1]
    row.reason = "forged"
    sealed = chain.hash_of(row)
    force("UPDATE agentchat_resolution SET reason = 'forged', hash = %s WHERE id = %s", sealed, row.pk)
    found = chain.verify(chat.pk)
    assert found is not None and found.resolution == rows[2].pk


def test_without_its_triggers_the_command_complains(rows: list[Resolution], capsys: pytest.CaptureFixture[str]) -> None:
    call_command("verify_resolutions")
    assert "4 resolutions" in capsys.readouterr().out
    triggers.remove()
    try:
        with pytest.raises(SystemExit):
            call_command("verify_resolutions")
    finally:
        triggers.install()
    assert "is missing" in capsys.readouterr().err
