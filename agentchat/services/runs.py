"""The life of a run: queued, claimed, beating, ended. Every change is a row and an event in one transaction."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Count

from agentchat import conf, wire
from agentchat.events import ENDED, Cause, Kind, RunStatus
from agentchat.exceptions import NotFound
from agentchat.journal import append, process
from agentchat.journal.entry import Event, event
from agentchat.models import Chat, Message, Run, clock
from agentchat.models.lock import one_at_a_time
from agentchat.models.run import RunQuerySet
from agentchat.services import closing, parking

log = logging.getLogger(__name__)
TOPIC = parking.TOPIC


ORDER = ("-priority", "created_at")
PLACES = 1_000


def claim(worker: str) -> Run | None:
    """Take the run that has waited longest in a chat where nothing runs; None if there is none, or limits are reached."""
    for chat_id in _waiting().exclude(chat__owner__in=_busy_people()).values_list("chat_id", flat=True)[:20]:
        if run := _claim(worker, chat_id):
            return run
    return None


def _waiting() -> RunQuerySet:
    """Those that a free worker would take, in their order."""
    busy = Run.objects.active().values("chat_id")
    waiting = Run.objects.queued().filter(chat__deleted_at=None, chat__owner__is_active=True)
    return waiting.exclude(chat_id__in=busy).order_by(*ORDER)


def _busy_people() -> Any:
    """Those who have as many runs as one person may have at a time."""
    if not settings.AGENTCHAT_MAX_RUNS_OF_A_PERSON:
        return []
    held = Run.objects.held().values("chat__owner").annotate(n=Count("pk"))
    return held.filter(n__gte=settings.AGENTCHAT_MAX_RUNS_OF_A_PERSON).values("chat__owner")


def _is_full(owner_id: int) -> bool:
    """By the limits for all and for one person, which must not be passed by two workers at once."""
    for limit, held in (
        (settings.AGENTCHAT_MAX_RUNS_IN_ALL, Run.objects.held()),
        (settings.AGENTCHAT_MAX_RUNS_OF_A_PERSON, Run.objects.held().filter(chat__owner=owner_id)),
    ):
        if limit:
            one_at_a_time()
            if held.count() >= limit:
                return True
    return False


def place(run_id: UUID) -> int | None:
    """How many runs a free worker would take before and with this one; None if it is not its turn for another reason."""
    for number, waiting in enumerate(_waiting().values_list("pk", flat=True)[:PLACES], 1):
        if waiting == run_id:
            return number
    return None


def stop_of_the_deactivated() -> None:
    """Whoever may not sign in any more has nothing running."""
    rows = Run.objects.active().filter(chat__owner__is_active=False, stop_requested_at=None, chat__deleted_at=None)
    for run in rows.select_related("chat__owner")[:100]:
        stop(run.chat.owner, run.pk)


@transaction.atomic
def _claim(worker: str, chat_id: UUID) -> Run | None:
    """Compare and swap, under the chat's lock: two workers never take the same run, nor two of one chat."""
    chat = Chat.objects.locked().filter(pk=chat_id, deleted_at=None).first()
    run = Run.objects.queued().filter(chat=chat_id).order_by("message__position").first()
    if chat is None or run is None or Run.objects.active().filter(chat=chat).exists() or _is_full(chat.owner_id):
        return None
    now = clock.now()
    run.status, run.worker, run.attempt, run.fence = RunStatus.RUNNING, worker, run.attempt + 1, parking.fence(chat)
    run.started_at, run.heartbeat_at = run.started_at or now, now
    run.save()
    append.append(chat, [_changed(run, "status", "started_at")])
    _shown_elsewhere(chat)
    return run


@transaction.atomic
def put_back(run_id: UUID, worker: str) -> bool:
    """Queue a run again that was taken and has not begun. False if it is not this worker's, or is to be stopped."""
    chat = Chat.objects.locked().get(runs=run_id)
    run = Run.objects.active().filter(pk=run_id, worker=worker, stop_requested_at=None).first()
    if run is None:
        return False
    run.status, run.worker, run.attempt = RunStatus.QUEUED, "", run.attempt - 1
    run.started_at = run.started_at if run.attempt else None
    run.save(update_fields=["status", "worker", "attempt", "started_at"])
    append.append(chat, [_changed(run, "status", "started_at")])
    transaction.on_commit(lambda: process.signal(TOPIC))
    return True


def beat(worker: str) -> set[UUID]:
    """Say that the worker lives; returns those of its runs that are to be stopped.

    A run whose row somebody writes right now is left to the next beat: waiting for it while we hold others would be
    a deadlock with the journal, which writes several runs in one transaction.
    """
    mine = Run.objects.active().filter(worker=worker)
    with transaction.atomic():
        free = mine.select_for_update(skip_locked=True, no_key=True).values("pk")
        Run.objects.filter(pk__in=free).update(heartbeat_at=clock.now())
    return to_stop(worker)


def to_stop(worker: str) -> set[UUID]:
    """The worker's runs that somebody wants to be stopped."""
    wanted = Run.objects.active().filter(worker=worker, stop_requested_at__isnull=False)
    return set(wanted.values_list("pk", flat=True))


def held_by(worker: str) -> list[Run]:
    return list(Run.objects.active().filter(worker=worker))


def stop(user: Any, run_id: UUID) -> Run:
    """Ask for a stop: a queued run is taken back at once, an active one ends within 2 s. Repeating changes nothing.

    Raises NotFound.
    """
    chat_id = Run.objects.filter(pk=run_id, chat__owner=user, chat__deleted_at=None).values_list("chat_id", flat=True)
    if not (found := chat_id.first()):
        raise NotFound()
    with transaction.atomic():
        chat = Chat.objects.locked().get(pk=found)
        run = Run.objects.select_related("message").get(pk=run_id)
        if run.status == RunStatus.QUEUED and not run.attempt:
            _take_back(chat, run)
        elif run.status not in ENDED and run.stop_requested_at is None:
            _request_stop(chat, run)
            if run.status == RunStatus.QUEUED or not run.worker:
                _end(chat, run, RunStatus.CANCELLED, "")
    return run


def _request_stop(chat: Chat, run: Run) -> None:
    run.stop_requested_at = clock.now()
    run.save(update_fields=["stop_requested_at"])
    append.append(chat, [_changed(run, "stopping")])
    transaction.on_commit(lambda: process.signal(TOPIC))


def _take_back(chat: Chat, run: Run) -> None:
    """A message that waited for its turn goes, with the answer that it would have had."""
    now = clock.now()
    run.status, run.ended_at = RunStatus.CANCELLED, now
    run.save(update_fields=["status", "ended_at"])
    messages = list(Message.objects.filter(pk__in=[run.message_id, run.message.parent_id]))
    Message.objects.filter(pk__in=[message.pk for message in messages]).update(removed_at=now)
    events = [event(Kind.MESSAGE_CHANGED, message=str(message.pk), changes={"removed": True}) for message in messages]
    append.append(chat, [_changed(run, "status", "ended_at"), *events])
    _shown_elsewhere(chat)


def finish(run_id: UUID, status: RunStatus, error: str = "", worker: str | None = None) -> bool:
    """End a run and close what its agent left open. False if it had ended, or is another worker's."""
    chat_id = Run.objects.filter(pk=run_id).values_list("chat_id", flat=True).first()
    if chat_id is None:
        return False
    with transaction.atomic():
        chat = Chat.objects.locked().get(pk=chat_id)
        run = Run.objects.select_related("message").get(pk=run_id)
        if run.status in ENDED or (worker is not None and run.worker != worker):
            return False
        _end(chat, run, status, error)
        return True


def _end(chat: Chat, run: Run, status: RunStatus, error: str) -> None:
    if run.stop_requested_at and status != RunStatus.COMPLETED:
        status, error = RunStatus.CANCELLED, ""
    cause = Cause.STOPPED if run.stop_requested_at else Cause.AGENT_GONE
    message = run.message
    parking.fence(chat)
    Run.objects.filter(pk=run.pk).update(status=status)  # it has ended, so no decision brings it back
    closing.close_requests(message, cause)
    now = clock.now()
    chat.refresh_from_db(fields=["last_seq"])
    events = closing.close_items(chat, message, cause, now)
    run.status, run.error, run.ended_at = status, error, now
    run.save(update_fields=["status", "error", "ended_at"])
    events += _end_message(message, error, now)
    chat.updated_at = now
    chat.save(update_fields=["updated_at"])
    ended = _changed(run, "status", "error", "ended_at", "stopping")
    append.append(chat, [*events, ended, event(Kind.CHAT_CHANGED, chat=wire.chat(chat))])
    _shown_elsewhere(chat)
    transaction.on_commit(lambda: process.signal(TOPIC))


def _end_message(message: Message, error: str, now: Any) -> list[Event]:
    changes: dict[str, Any] = {}
    if message.ended_at is None:
        message.ended_at = now
        changes["ended_at"] = wire.time(now)
    if error:
        message.error = changes["error"] = error
    message.save(update_fields=["ended_at", "error"])
    return [event(Kind.MESSAGE_CHANGED, message=str(message.pk), changes=changes)] if changes else []


def dead(alive: set[str], host: str, *, by_silence: bool = True) -> list[Run]:
    """Active runs whose worker is gone: of this host and not among the living, or silent for too long (or
    heard of last at a time that is to come: the clock was set back since).

    Without `by_silence` only the former: after the database was away every worker has been silent.
    """
    now, silence = clock.now(), timedelta(seconds=conf.DEAD_AFTER_SECONDS)
    return [
        run
        for run in Run.objects.held().order_by("created_at")
        if (by_silence and abs(now - (run.heartbeat_at or run.created_at)) > silence)
        or (run.worker.startswith(f"{host}:") and run.worker not in alive)
    ]


def _changed(run: Run, *names: str) -> Event:
    row = wire.run(run)
    return event(Kind.RUN_CHANGED, message=str(run.message_id), changes={name: row[name] for name in names})


def _shown_elsewhere(chat: Chat) -> None:
    """The chat lists of its owner show what runs."""
    transaction.on_commit(lambda: process.signal(f"user:{chat.owner_id}"))
