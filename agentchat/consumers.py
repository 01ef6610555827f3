"""WebSockets that only send. What people do goes through POST, where there are status codes and idempotency."""

from __future__ import annotations

import asyncio
import json
import logging
from functools import partial
from typing import Any
from urllib.parse import parse_qs
from uuid import UUID

from channels.generic.websocket import AsyncWebsocketConsumer

from agentchat import conf
from agentchat.exceptions import Gone, NotFound
from agentchat.journal import condense, process, reader
from agentchat.journal.hub import Hub
from agentchat.journal.outbox import Wire
from agentchat.models import Chat, outage
from agentchat.services import lists, snapshot

log = logging.getLogger(__name__)
SIGN_IN, NOT_YOURS, ONLY_LISTEN, GOING_AWAY = 4401, 4404, 4400, 1001
BROKEN, TRY_AGAIN = 1011, 1013
"""After both, as after every other code, the page connects again by its cursor."""
INBOX_PAUSE = 0.2
"""The least time between two looks at the inbox, in seconds."""


class SendingConsumer(AsyncWebsocketConsumer):
    """Accepts, runs `send_all` in a task of its own, and closes on whatever the client sends."""

    channel_layer_alias = None
    """No channel per socket: the hub sends."""
    _task: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        await self.accept()
        if not self.scope["user"].is_authenticated:
            await self.close(SIGN_IN)
        elif not process.is_running():
            await self.close(GOING_AWAY)
        else:
            self._task = asyncio.create_task(self._run(), name=f"socket {self.scope['path']}")

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        await self.close(ONLY_LISTEN)

    async def disconnect(self, code: int) -> None:
        if self._task:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        try:
            await self.send_all(process.current().hub)
        except (NotFound, Gone):
            await self.close(NOT_YOURS)
        except outage.ERRORS as error:
            log.warning("A socket is closed, since the database is away: %s", error)
            await self.close(TRY_AGAIN)
        except Exception:
            log.exception("A socket is closed, since something broke.")
            await self.close(BROKEN)
        else:
            await self.close(GOING_AWAY)

    async def send_all(self, hub: Hub) -> None:
        raise NotImplementedError


class ChatConsumer(SendingConsumer):
    """The events of one chat after a cursor, for ever; a snapshot first where the cursor cannot be continued."""

    async def send_all(self, hub: Hub) -> None:
        chat_id: UUID = self.scope["url_route"]["kwargs"]["chat_id"]
        await process.current().run(_require, self.scope["user"], chat_id)
        query = parse_qs(self.scope["query_string"].decode("latin-1"))
        condensed = query.get("condense") == ["1"]
        bound = conf.CONDENSED_OUTBOX_BYTES if condensed else conf.OUTBOX_BYTES
        outbox = hub.attach(chat_id, _after(query), bound)
        try:
            await outbox.drain(self._condensed(chat_id) if condensed else self._exact(chat_id))
        finally:
            hub.detach(chat_id, outbox)

    def _exact(self, chat_id: UUID) -> Wire:
        run, user = process.current().run, self.scope["user"]

        async def take() -> tuple[int, str]:
            taken = await run(snapshot.chat_snapshot, user, chat_id)
            return taken["cursor"], json.dumps({"type": "snapshot", **taken}, ensure_ascii=False)

        return Wire(self.send, partial(run, reader.read, chat_id), take)

    def _condensed(self, chat_id: UUID) -> Wire:
        """For the page, which has its own way to draw a chat anew."""
        run, user = process.current().run, self.scope["user"]

        async def take() -> tuple[int, str]:
            cursor = await run(_last_seq, user, chat_id)
            return cursor, json.dumps({"type": "snapshot", "cursor": cursor})

        return Wire(self.send, partial(run, condense.read, chat_id), take)


def _require(user: Any, chat_id: UUID) -> None:
    if not Chat.objects.visible_to(user).filter(pk=chat_id).exists():
        raise NotFound()


def _last_seq(user: Any, chat_id: UUID) -> int:
    _require(user, chat_id)
    return reader.last_seqs([chat_id])[chat_id]


def _after(query: dict[str, list[str]]) -> int:
    """The cursor; without one (or with nonsense) -1, which is older than every event kept: a snapshot comes first."""
    value = query.get("after", [""])[0]
    return int(value) if value.isdecimal() and value.isascii() and len(value) < 19 else -1


class InboxConsumer(SendingConsumer):
    """How many requests wait for this person, whenever that may have changed."""

    async def send_all(self, hub: Hub) -> None:
        changed = asyncio.Event()
        changed.set()
        stop_listening = hub.listen(f"user:{self.scope['user'].pk}", lambda kinds: changed.set())
        try:
            while True:
                await changed.wait()
                if hub.is_closed:
                    return
                changed.clear()
                pending = await process.current().run(lists.pending_count, self.scope["user"])
                await self.send(json.dumps({"type": "inbox", "pending": pending}))
                await asyncio.sleep(INBOX_PAUSE)
        finally:
            stop_listening()
