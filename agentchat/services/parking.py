"""Runs that wait for a decision without a worker: what they asked stays open, and the decision queues them again.

A run can be given back only if another process can go on exactly there: it asked something that it has not been told
yet, and nothing else of it is under way.
"""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from agentchat import wire
from agentchat.events import ItemStatus, Kind, RunStatus
from agentchat.journal import append, process
from agentchat.journal.entry import Event, event
from agentchat.models import Chat, OutputItem, Resolution, Run

TOPIC = "runs"
"""Signalled when there is work to take, or a stop."""


def fence(chat: Chat) -> int:
    """From now on whoever wrote in this chat writes nothing any more. The row must be locked."""
    chat.fence += 1
    chat.save(update_fields=["fence"])
    return chat.fence


@transaction.atomic
def park(run_id: UUID, worker: str) -> bool:
    """Give a run back. False, with nothing changed, if it is not this worker's, or cannot go on from here elsewhere."""
    chat = Chat.objects.locked().get(runs=run_id)
    run = Run.objects.active().filter(pk=run_id, worker=worker, resumable=True, stop_requested_at=None).first()
    if run is None or chat.deleted_at or not _only_waits(run):
        return False
    fence(chat)
    run.worker, run.status = "", RunStatus.WAITING
    run.save(update_fields=["worker", "status"])
    if Resolution.objects.filter(item__message=run.message_id, item__status=ItemStatus.PENDING).exists():
        _queue(run)
    append.append(chat, [_status(run)])
    return True


def _only_waits(run: Run) -> bool:
    """An item that is pending has not told its agent anything yet."""
    items = OutputItem.objects.filter(message=run.message_id)
    under_way = items.filter(status=ItemStatus.IN_PROGRESS).exists()
    return not under_way and items.filter(status=ItemStatus.PENDING).exists()


def unpark(message_id: UUID) -> list[Event]:
    """Something was decided: the run goes on, before those that have not begun. The chat's row must be locked."""
    run = Run.objects.parked().filter(message=message_id).first()
    if run is None:
        return []
    _queue(run)
    return [_status(run)]


def _queue(run: Run) -> None:
    run.status, run.priority = RunStatus.QUEUED, 1
    run.save(update_fields=["status", "priority"])
    transaction.on_commit(lambda: process.signal(TOPIC))


def _status(run: Run) -> Event:
    changes = {"status": wire.run(run)["status"]}
    return event(Kind.RUN_CHANGED, message=str(run.message_id), changes=changes)
