"""A resolution cannot be changed, also not behind our back without a trace."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction

from agentchat.models import Receipt, Resolution, triggers
from agentchat.services import chain
from tests.core.conftest import chat, in_db, journal, output, owner  # noqa: F401  (fixtures)
from tests.core.helpers import decide, pending

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.databases]


async def three(output: Any, owner: Any, in_db: Any) -> list[Resolution]:  # noqa: F811
    for n in range(3):
        asking = asyncio.create_task(output.approve("shell", {"command": f"echo {n}"}))
        [item] = await pending(in_db)
        await decide(in_db, owner, item, "approve" if n else "reject", reason="because")
        await asking
    return await in_db(lambda: list(Resolution.objects.order_by("pk")))


STATEMENTS = [
    "UPDATE {table} SET {column} = {column}",
    "DELETE FROM {table}",
    "INSERT OR REPLACE INTO {table} SELECT * FROM {table}",
    "TRUNCATE {table} CASCADE",
]
TABLES = [("agentchat_resolution", "reason"), ("agentchat_receipt", "worker")]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table[0])
@pytest.mark.parametrize("statement", STATEMENTS)
async def test_raw_sql_is_refused(output: Any, owner: Any, in_db: Any, statement: str, table: Any) -> None:  # noqa: F811
    """What the one database does not know as a statement is refused all the same."""
    await three(output, owner, in_db)

    def attack() -> list[tuple[Any, ...]]:
        with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement.format(table=table[0], column=table[1]))
        return list(Resolution.objects.values_list("pk", "reason")) + list(Receipt.objects.values_list("pk"))

    assert len(await in_db(attack)) == 6


async def test_the_orm_refuses_too(output: Any, owner: Any, in_db: Any) -> None:  # noqa: F811
    [row, *_] = await three(output, owner, in_db)
    with pytest.raises(TypeError):
        await in_db(row.save)
    with pytest.raises(TypeError):
        await in_db(row.delete)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE agentchat_resolution SET reason = 'forged' WHERE id = {id}",
        "DELETE FROM agentchat_resolution WHERE id = {id}",
    ],
)
async def test_what_happens_behind_our_back_is_found(output: Any, owner: Any, in_db: Any, change: str) -> None:  # noqa: F811
    """With the triggers gone (a database superuser can do that) the chain still tells."""
    rows = await three(output, owner, in_db)
    assert await in_db(chain.verify_all) == []

    def tamper() -> list[chain.Break]:
        triggers.remove()
        with connection.cursor() as cursor:
            cursor.execute(f"DELETE FROM agentchat_receipt WHERE resolution_id = {rows[1].pk}")
            cursor.execute(change.format(id=rows[1].pk))
        assert len(triggers.missing()) > 2
        triggers.install()
        return chain.verify_all()

    [found] = await in_db(tamper)
    assert found.resolution == (rows[1].pk if change.startswith("UPDATE") else rows[2].pk)
    with pytest.raises(SystemExit):
        await in_db(call_command, "verify_resolutions")
