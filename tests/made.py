"""Rows that an agent would have left, for tests that need no agent."""

from __future__ import annotations

import itertools
import json
from typing import Any

from agentchat.events import ItemStatus, ItemType, RunStatus
from agentchat.models import Chat, Message, OutputItem, Run, clock
from agentchat.services import canonical, chats

_numbers = itertools.count(1)


def answer_in(chat: Chat) -> Message:
    """An assistant's message that a run is writing."""
    _, run = chats.post(user=chat.owner, chat_id=chat.pk, text="Clean up")
    Run.objects.filter(pk=run.pk).update(status=RunStatus.RUNNING, started_at=clock.now())
    chat.refresh_from_db()
    return run.message


def item_in(message: Message, type: ItemType = ItemType.MESSAGE, **columns: Any) -> OutputItem:
    columns = {"status": ItemStatus.COMPLETED, "created_at": clock.now(), "position": next(_numbers), **columns}
    return OutputItem.objects.create(message=message, type=type, **columns)


def request_in(message: Message, arguments: Any = None, *, request: Any = None, **columns: Any) -> OutputItem:
    """A request that waits."""
    text = json.dumps(arguments or {"command": "rm -rf build"})
    return item_in(
        message,
        ItemType.CALL,
        **{
            "name": "shell",
            "call_id": f"call_{next(_numbers)}",
            "arguments": text,
            "digest": canonical.digest(text),
            "request": request or {"kind": "command", "risk": {"level": "high", "why": "Deletes files."}},
            "status": ItemStatus.PENDING,
            **columns,
        },
    )


def question_in(message: Message) -> OutputItem:
    questions = [{"id": "colour", "question": "Which colour?", "options": [{"label": "red"}, {"label": "blue"}]}]
    return request_in(message, {"q": 1}, name="ask_user", request={"kind": "question", "questions": questions})
