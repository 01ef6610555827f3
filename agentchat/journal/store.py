"""The SQL of a group commit: numbers the events, inserts them, and writes the rows, in one transaction.

Plain SQL by the raw driver, because the ORM's cursor triples the cost of a commit (docs/journal.md); and the connection
is looked up once, because `django.db.connection` looks it up at each use, which doubled what was left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from uuid import UUID

from django.db import DatabaseError, DataError, IntegrityError, ProgrammingError, connections, models, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone

from agentchat.exceptions import Gone
from agentchat.journal.entry import SEQ, Committed, Entry, Write

Result = Committed | Exception
_REFUSALS = (Gone, ValueError, TypeError, DataError, IntegrityError, ProgrammingError)
"""The database (or a row that is missing) says no to an entry; repeating it would not help."""

_LATE = "The chat was deleted, or its run has ended or was taken by another worker, so nothing can be written to it."
_NUMBER_ONE = """
UPDATE agentchat_chat SET last_seq = last_seq + ?
WHERE id = ? AND deleted_at IS NULL AND fence = coalesce(?, fence) RETURNING last_seq
"""
_INSERT_ONE = "INSERT INTO agentchat_event (chat_id, seq, kind, body, created_at) VALUES (?, ?, ?, ?, ?)"
_NUMBER_AND_INSERT = """
WITH wanted AS (SELECT * FROM unnest(%s::uuid[], %s::int[], %s::bigint[]) AS w(id, n, fence)),
locked AS (
    SELECT c.id FROM agentchat_chat c JOIN wanted USING (id)
    WHERE c.deleted_at IS NULL ORDER BY c.id FOR NO KEY UPDATE OF c
),
numbered AS (
    UPDATE agentchat_chat c SET last_seq = c.last_seq + w.n
    FROM locked JOIN wanted w USING (id) WHERE c.id = locked.id AND c.fence = coalesce(w.fence, c.fence)
    RETURNING c.id, c.last_seq, c.last_seq - w.n AS before
),
inserted AS (
    INSERT INTO agentchat_event (chat_id, seq, kind, body, created_at)
    SELECT numbered.id, numbered.before + e.nth, e.kind, e.body, clock_timestamp()
    FROM unnest(%s::uuid[], %s::int[], %s::text[], %s::text[]) AS e(id, nth, kind, body) JOIN numbered USING (id)
)
SELECT id, last_seq FROM numbered
"""


def commit(entries: Sequence[Entry]) -> list[Result]:
    """Commit all entries; one result each, in order. A chat that fails does not take the others with it.

    Raises django.db.OperationalError and InterfaceError, with nothing written, if the database cannot be reached.
    """
    try:
        return _commit(entries)
    except _REFUSALS:
        chats = list(dict.fromkeys(entry.chat_id for entry in entries))
        if len(chats) == 1:
            return _alone(entries)
    results = {id(entry): result for chat in chats for entry, result in _of_chat(entries, chat)}
    return [results[id(entry)] for entry in entries]


def _of_chat(entries: Sequence[Entry], chat: UUID) -> Iterator[tuple[Entry, Result]]:
    mine = [entry for entry in entries if entry.chat_id == chat]
    return zip(mine, _alone(mine), strict=True)


def _alone(entries: Sequence[Entry]) -> list[Result]:
    """One chat's entries, together or, if the database refuses one of them, not at all."""
    try:
        return _commit(entries)
    except _REFUSALS as error:
        return [error] * len(entries)


def _commit(entries: Sequence[Entry]) -> list[Result]:
    fences = _fences(entries)
    late = {id(entry) for entry in entries if entry.fence is not None and entry.fence < fences[entry.chat_id]}
    if late:
        rest = iter(_commit([entry for entry in entries if id(entry) not in late]))
        return [Gone(_LATE) if id(entry) in late else next(rest) for entry in entries]
    return _commit_of_one_run_each(entries, fences)


def _fences(entries: Sequence[Entry]) -> dict[UUID, int]:
    """By chat, the newest fence that an entry names."""
    newest: dict[UUID, int] = {}
    for entry in entries:
        if entry.fence is not None:
            newest[entry.chat_id] = max(entry.fence, newest.get(entry.chat_id, 0))
    return newest


def _commit_of_one_run_each(entries: Sequence[Entry], fences: dict[UUID, int]) -> list[Result]:
    db = connections["default"]
    db.ensure_connection()
    counts: dict[UUID, int] = {}
    for entry in entries:
        counts[entry.chat_id] = counts.get(entry.chat_id, 0) + len(entry.events)
    if db.vendor == "postgresql" and not any(entry.writes for entry in entries):
        return _results(entries, counts, _number_postgresql(db, entries, counts, fences))
    number = _number_postgresql if db.vendor == "postgresql" else _number_sqlite
    with _synchronous(db, any(entry.durable for entry in entries)), _transaction(db):
        last = number(db, entries, counts, fences)
        results = _results(entries, counts, last)
        for entry, result in zip(entries, results, strict=True):
            if isinstance(result, Committed):
                for write in entry.writes:
                    _write(db, write, result.last)
    return results


@contextmanager
def _synchronous(db: BaseDatabaseWrapper, durable: bool) -> Iterator[None]:
    """The journal's connection to SQLite does not wait for the disk, unless something durable is in the commit."""
    if not durable or db.vendor != "sqlite" or db.in_atomic_block:
        yield
        return
    _execute(db, "PRAGMA synchronous=FULL")
    try:
        yield
    finally:
        _execute(db, "PRAGMA synchronous=NORMAL")


@contextmanager
def _transaction(db: BaseDatabaseWrapper) -> Iterator[None]:
    if db.in_atomic_block:
        with transaction.atomic():
            yield
        return
    _execute(db, "BEGIN" if db.vendor == "postgresql" else "BEGIN IMMEDIATE")
    try:
        yield
        _execute(db, "COMMIT")  # SQLite looks at foreign keys only now, and leaves a refused transaction open
    except BaseException:
        with suppress(DatabaseError):
            _execute(db, "ROLLBACK")
        raise


def _execute(db: BaseDatabaseWrapper, sql: str, parameters: Sequence[Any] = ()) -> Any:
    with db.wrap_database_errors:
        return db.connection.cursor().execute(sql, parameters)


def _number_sqlite(
    db: BaseDatabaseWrapper, entries: Sequence[Entry], counts: dict[UUID, int], fences: dict[UUID, int]
) -> dict[UUID, int]:
    last: dict[UUID, int] = {}
    for chat, n in counts.items():
        if row := _execute(db, _NUMBER_ONE, (n, chat.hex, fences.get(chat))).fetchone():
            last[chat] = row[0]
    following = {chat: last[chat] - counts[chat] for chat in last}
    now = db.ops.adapt_datetimefield_value(timezone.now())
    rows = []
    for entry in entries:
        if entry.chat_id in last:
            for kind, body in entry.events:
                following[entry.chat_id] += 1
                rows.append((entry.chat_id.hex, following[entry.chat_id], str(kind), body, now))
    with db.wrap_database_errors:
        db.connection.cursor().executemany(_INSERT_ONE, rows)
    return last


def _number_postgresql(
    db: BaseDatabaseWrapper, entries: Sequence[Entry], counts: dict[UUID, int], fences: dict[UUID, int]
) -> dict[UUID, int]:
    nth = dict.fromkeys(counts, 0)
    chats, places, kinds, bodies = [], [], [], []
    for entry in entries:
        for kind, body in entry.events:
            nth[entry.chat_id] += 1
            chats.append(entry.chat_id)
            places.append(nth[entry.chat_id])
            kinds.append(str(kind))
            bodies.append(body)
    wanted = [list(counts), list(counts.values()), [fences.get(chat) for chat in counts]]
    parameters = (*wanted, chats, places, kinds, bodies)
    return dict(_execute(db, _NUMBER_AND_INSERT, parameters).fetchall())


def _results(entries: Sequence[Entry], counts: dict[UUID, int], last: dict[UUID, int]) -> list[Result]:
    following = {chat: last[chat] - counts[chat] + 1 for chat in last}
    results: list[Result] = []
    for entry in entries:
        if entry.chat_id not in last:
            results.append(Gone(_LATE))
            continue
        results.append(Committed(entry.chat_id, following[entry.chat_id], tuple(entry.events)))
        following[entry.chat_id] += len(entry.events)
    return results


def _write(db: BaseDatabaseWrapper, write: Write, seq: int) -> None:
    values = {name: seq if value is SEQ else value for name, value in write.values.items()}
    sql, parameters = _insert(db, write, values) if write.insert else _update(db, write, values)
    mark = "%s" if db.vendor == "postgresql" else "?"
    if _execute(db, sql.replace("?", mark), parameters).rowcount != 1:
        raise Gone(f"The {write.model._meta.verbose_name} was ended or deleted, so nothing was written to it.")


def _insert(db: BaseDatabaseWrapper, write: Write, values: dict[str, Any]) -> tuple[str, list[Any]]:
    key = write.model._meta.pk
    if write.pk is not None:
        values = {key.name: write.pk, **values}
    columns, prepared = _columns(db, write.model, values)
    marks = ", ".join("?" * len(columns))
    return f"INSERT INTO {write.model._meta.db_table} ({', '.join(columns)}) VALUES ({marks})", prepared


def _update(db: BaseDatabaseWrapper, write: Write, values: dict[str, Any]) -> tuple[str, list[Any]]:
    columns, prepared = _columns(db, write.model, values)
    where, wanted = _columns(db, write.model, {write.model._meta.pk.name: write.pk, **write.guard})
    sets = ", ".join(f"{column} = ?" for column in columns)
    conditions = " AND ".join(f"{column} = ?" for column in where)
    return f"UPDATE {write.model._meta.db_table} SET {sets} WHERE {conditions}", [*prepared, *wanted]


def _columns(db: BaseDatabaseWrapper, model: type[models.Model], values: dict[str, Any]) -> tuple[list[str], list[Any]]:
    fields: list[Any] = [model._meta.get_field(name) for name in values]
    prepared = [field.get_db_prep_save(value, db) for field, value in zip(fields, values.values(), strict=True)]
    return [field.column for field in fields], prepared
