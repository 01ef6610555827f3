"""The SQL of a group commit: numbers the events, inserts them, and writes the rows, in one transaction.

Plain SQL by the raw driver, because the ORM's cursor triples the cost of a commit (docs/journal.md); and the connection
is looked up once, because `django.db.connection` looks it up at each use, which doubled what was left.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

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
UPDATE agentchat_chat SET last_seq = last_seq + ?, journal_seq = last_seq + ?, journal_key = ?
WHERE id = ? AND deleted_at IS NULL AND fence = coalesce(?, fence) AND journal_key IS NOT ? RETURNING last_seq
"""
_MADE_BEFORE = "SELECT id, journal_seq FROM agentchat_chat WHERE journal_key = {mark} AND id IN ({marks})"
_INSERT_ONE = "INSERT INTO agentchat_event (chat_id, seq, kind, body, created_at) VALUES (?, ?, ?, ?, ?)"
_NUMBER_AND_INSERT = """
WITH wanted AS (SELECT * FROM unnest(%s::uuid[], %s::int[], %s::bigint[]) AS w(id, n, fence)),
locked AS (
    SELECT c.id FROM agentchat_chat c JOIN wanted USING (id)
    WHERE c.deleted_at IS NULL ORDER BY c.id FOR NO KEY UPDATE OF c
),
numbered AS (
    UPDATE agentchat_chat c SET last_seq = c.last_seq + w.n, journal_seq = c.last_seq + w.n, journal_key = %s
    FROM locked JOIN wanted w USING (id)
    WHERE c.id = locked.id AND c.fence = coalesce(w.fence, c.fence) AND c.journal_key IS DISTINCT FROM %s
    RETURNING c.id, c.last_seq, c.last_seq - w.n AS before
),
inserted AS (
    INSERT INTO agentchat_event (chat_id, seq, kind, body, created_at)
    SELECT numbered.id, numbered.before + e.nth, e.kind, e.body, clock_timestamp()
    FROM unnest(%s::uuid[], %s::int[], %s::text[], %s::text[]) AS e(id, nth, kind, body) JOIN numbered USING (id)
)
SELECT id, last_seq FROM numbered
"""


@dataclass(frozen=True, slots=True)
class _Group:
    """What is committed together. `key` names the attempt and all that repeat it."""

    entries: Sequence[Entry]
    key: UUID

    def of(self, entries: Sequence[Entry]) -> _Group:
        return _Group(entries, self.key)

    def counts(self) -> dict[UUID, int]:
        """By chat, how many events."""
        found: dict[UUID, int] = {}
        for entry in self.entries:
            found[entry.chat_id] = found.get(entry.chat_id, 0) + len(entry.events)
        return found

    def fences(self) -> dict[UUID, int]:
        """By chat, the newest fence that an entry names."""
        newest: dict[UUID, int] = {}
        for entry in self.entries:
            if entry.fence is not None:
                newest[entry.chat_id] = max(entry.fence, newest.get(entry.chat_id, 0))
        return newest


def commit(entries: Sequence[Entry], key: UUID | None = None) -> list[Result]:
    """Commit all entries; one result each, in order. A chat that fails does not take the others with it.

    Raises django.db.OperationalError and InterfaceError if the database cannot be reached. Whether anything was written is
    not known then: repeat it with the same key, and what was written is not written again.
    """
    group = _Group(entries, key or uuid4())
    try:
        return _commit(group)
    except _REFUSALS:
        chats = list(dict.fromkeys(entry.chat_id for entry in entries))
        if len(chats) == 1:
            return _alone(group)
    results = {id(entry): result for chat in chats for entry, result in _of_chat(group, chat)}
    return [results[id(entry)] for entry in entries]


def _of_chat(group: _Group, chat: UUID) -> Iterator[tuple[Entry, Result]]:
    mine = [entry for entry in group.entries if entry.chat_id == chat]
    return zip(mine, _alone(group.of(mine)), strict=True)


def _alone(group: _Group) -> list[Result]:
    """One chat's entries, together or, if the database refuses one of them, not at all."""
    try:
        return _commit(group)
    except _REFUSALS as error:
        return [error] * len(group.entries)


def _commit(group: _Group) -> list[Result]:
    fences = group.fences()
    late = {id(entry) for entry in group.entries if entry.fence is not None and entry.fence < fences[entry.chat_id]}
    if late:
        rest = iter(_commit(group.of([entry for entry in group.entries if id(entry) not in late])))
        return [Gone(_LATE) if id(entry) in late else next(rest) for entry in group.entries]
    db = connections["default"]
    db.ensure_connection()
    counts = group.counts()
    if db.vendor == "postgresql" and not any(entry.writes for entry in group.entries):
        last = _number_postgresql(db, group, counts)
        return _results(group.entries, counts, last | _made_before(db, group.key, counts.keys() - last))
    with _synchronous(db, any(entry.durable for entry in group.entries)), _transaction(db):
        return _write_all(db, group, counts)


def _write_all(db: BaseDatabaseWrapper, group: _Group, counts: dict[UUID, int]) -> list[Result]:
    number = _number_postgresql if db.vendor == "postgresql" else _number_sqlite
    last = number(db, group, counts)
    results = _results(group.entries, counts, last | _made_before(db, group.key, counts.keys() - last))
    for entry, result in zip(group.entries, results, strict=True):
        if isinstance(result, Committed) and entry.chat_id in last:
            for write in entry.writes:
                _write(db, write, result.last)
    return results


def _made_before(db: BaseDatabaseWrapper, key: UUID, chats: Collection[UUID]) -> dict[UUID, int]:
    """Of these chats, those in which this very commit was made, though its answer was lost; with its last event."""
    if not chats:
        return {}
    if db.vendor == "postgresql":
        sql = _MADE_BEFORE.format(mark="%s", marks=", ".join(["%s"] * len(chats)))
        return dict(_execute(db, sql, [key, *chats]).fetchall())
    sql = _MADE_BEFORE.format(mark="?", marks=", ".join("?" * len(chats)))
    return {UUID(chat): seq for chat, seq in _execute(db, sql, [key.hex, *(c.hex for c in chats)]).fetchall()}


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


def _number_sqlite(db: BaseDatabaseWrapper, group: _Group, counts: dict[UUID, int]) -> dict[UUID, int]:
    last: dict[UUID, int] = {}
    fences, key = group.fences(), group.key.hex
    for chat, n in counts.items():
        if row := _execute(db, _NUMBER_ONE, (n, n, key, chat.hex, fences.get(chat), key)).fetchone():
            last[chat] = row[0]
    following = {chat: last[chat] - counts[chat] for chat in last}
    now = db.ops.adapt_datetimefield_value(timezone.now())
    rows = []
    for entry in group.entries:
        if entry.chat_id in last:
            for kind, body in entry.events:
                following[entry.chat_id] += 1
                rows.append((entry.chat_id.hex, following[entry.chat_id], str(kind), body, now))
    with db.wrap_database_errors:
        db.connection.cursor().executemany(_INSERT_ONE, rows)
    return last


def _number_postgresql(db: BaseDatabaseWrapper, group: _Group, counts: dict[UUID, int]) -> dict[UUID, int]:
    nth, fences = dict.fromkeys(counts, 0), group.fences()
    chats, places, kinds, bodies = [], [], [], []
    for entry in group.entries:
        for kind, body in entry.events:
            nth[entry.chat_id] += 1
            chats.append(entry.chat_id)
            places.append(nth[entry.chat_id])
            kinds.append(str(kind))
            bodies.append(body)
    wanted = [list(counts), list(counts.values()), [fences.get(chat) for chat in counts]]
    parameters = (*wanted, group.key, group.key, chats, places, kinds, bodies)
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
