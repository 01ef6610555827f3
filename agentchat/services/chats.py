"""Chats and what people write in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from agentchat import conf, wire
from agentchat.events import ENDED, Cause, Kind, Mode, RunStatus
from agentchat.exceptions import ChatBusy, Invalid, NotFound
from agentchat.journal import append, process
from agentchat.journal.entry import event
from agentchat.models import Chat, Message, Run, clock
from agentchat.models.message import ASSISTANT, USER
from agentchat.providers import registry
from agentchat.services import clean, closing, runs

CHANGEABLE = ("title", "approval_mode", "pinned", "archived")


def create(*, user: Any, provider: str, workspace: str = "", approval_mode: str = Mode.ASK, title: str = "") -> Chat:
    """Raises Invalid if the provider is unknown, the mode too, or the folder is not one in which agents may work."""
    if provider not in registry.PROVIDERS:
        raise Invalid(f"There is no agent {provider!r}. Choose one of: {', '.join(registry.PROVIDERS)}.")
    now = clock.now()
    return Chat.objects.create(
        owner=user,
        provider=provider,
        workspace=str(_workspace(workspace)),
        approval_mode=_mode(approval_mode),
        title=_title(title),
        created_at=now,
        updated_at=now,
    )


def _workspace(given: str) -> Path:
    roots = [Path(root).resolve() for root in settings.AGENTCHAT_WORKSPACES]
    try:
        folder = Path(given).expanduser().resolve() if given else roots[0]
        is_there = folder.is_dir()
    except (OSError, ValueError, RuntimeError) as error:
        raise Invalid(f"{given!r} is no folder: {error}.") from error
    if not any(folder.is_relative_to(root) for root in roots):
        raise Invalid(f"Agents may not work in {given}. Choose a folder in: {', '.join(map(str, roots))}.")
    if not is_there:
        raise Invalid(f"There is no folder {given}. Make it first, or choose another.")
    return folder


def _mode(mode: str) -> str:
    if mode not in list(Mode):
        raise Invalid(f"There is no mode {mode!r}. Choose one of: {', '.join(Mode)}.")
    return mode


def _title(title: str) -> str:
    cleaned = " ".join(clean.text(title).split())
    if len(cleaned) > conf.TITLE_CHARS:
        raise Invalid(f"A title has at most {conf.TITLE_CHARS} characters; this has {len(cleaned)}.")
    return cleaned


@transaction.atomic
def post(*, user: Any, chat_id: UUID, text: str) -> tuple[Message, Run]:
    """What a person says, the message that the agent will answer with, and the queued run: one transaction.

    Raises NotFound, Invalid (empty, too long), ChatBusy (too many wait).
    """
    cleaned = _message_text(text)
    chat = _locked(user, chat_id)
    if Run.objects.queued().filter(chat=chat).count() >= conf.QUEUED_MESSAGES:
        raise ChatBusy()
    now = clock.now()
    said = Message.objects.create(
        chat=chat, role=USER, author=user, text=cleaned, position=chat.last_seq + 1, created_at=now, ended_at=now
    )
    answer = Message.objects.create(chat=chat, role=ASSISTANT, parent=said, position=chat.last_seq + 2, created_at=now)
    resumable = registry.resumable(chat.provider)
    run = Run.objects.create(chat=chat, message=answer, provider=chat.provider, resumable=resumable, created_at=now)
    _touch(chat, now, cleaned)
    added = [wire.message(said, [], None), wire.message(answer, [], wire.run(run))]
    events = [event(Kind.MESSAGE_ADDED, message=message) for message in added]
    append.append(chat, [*events, event(Kind.CHAT_CHANGED, chat=wire.chat(chat))])
    transaction.on_commit(lambda: process.signal(runs.TOPIC))
    transaction.on_commit(lambda: process.signal(f"user:{user.pk}"))
    return said, run


def _message_text(text: str) -> str:
    cleaned = clean.text(text)
    if not cleaned.strip():
        raise Invalid("The message is empty. Write what the agent should do.")
    if len(cleaned) > conf.MESSAGE_CHARS:
        raise Invalid(f"A message has at most {conf.MESSAGE_CHARS:,} characters; this has {len(cleaned):,}.")
    return cleaned


def _touch(chat: Chat, now: Any, text: str) -> None:
    """A chat without a title is called after its first message."""
    chat.updated_at = now
    chat.title = chat.title or " ".join(text.split())[:80]
    chat.save(update_fields=["updated_at", "title"])


def _locked(user: Any, chat_id: UUID) -> Chat:
    chat = Chat.objects.visible_to(user).locked().filter(pk=chat_id).first()
    if chat is None:
        raise NotFound()
    return chat


@transaction.atomic
def change(*, user: Any, chat_id: UUID, **changes: Any) -> Chat:
    """Rename, pin, archive, or change the mode; `changes` holds some of CHANGEABLE. Raises NotFound, Invalid."""
    if unknown := sorted(set(changes) - set(CHANGEABLE)):
        raise Invalid(f"{unknown[0]!r} cannot be changed. What can: {', '.join(CHANGEABLE)}.")
    chat = _locked(user, chat_id)
    if "title" in changes:
        chat.title = _title(changes["title"])
    if "approval_mode" in changes:
        chat.approval_mode = _mode(changes["approval_mode"])
    if "pinned" in changes:
        chat.pinned = bool(changes["pinned"])
    if "archived" in changes:
        chat.archived_at = (chat.archived_at or clock.now()) if changes["archived"] else None
    chat.save(update_fields=["title", "approval_mode", "pinned", "archived_at"])
    append.append(chat, [event(Kind.CHAT_CHANGED, chat=wire.chat(chat))])
    transaction.on_commit(lambda: process.signal(f"user:{user.pk}"))
    return chat


@transaction.atomic
def delete(*, user: Any, chat_id: UUID) -> None:
    """Nobody sees the chat any more, what runs in it ends, open requests are closed. Its resolutions stay."""
    chat = _locked(user, chat_id)
    now = clock.now()
    for run in Run.objects.filter(chat=chat).exclude(status__in=ENDED).select_related("message"):
        closing.close_requests(run.message, Cause.STOPPED)
        if run.status == RunStatus.QUEUED or not run.worker:
            run.status, run.ended_at = RunStatus.CANCELLED, now
        run.stop_requested_at = now
        run.save()
    chat.refresh_from_db(fields=["last_seq"])
    append.append(chat, [event(Kind.CHAT_DELETED)])
    chat.deleted_at = now
    chat.save(update_fields=["deleted_at"])
    transaction.on_commit(lambda: process.signal(runs.TOPIC))
    transaction.on_commit(lambda: process.signal(f"user:{user.pk}"))
