"""The bus between processes: Redis pub/sub by the channel layer. Embedded there is none.

It carries hints: whoever misses one reads the journal. So nobody waits for it, what it cannot take is dropped, and
Redis may be away.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from channels.layers import get_channel_layer

from agentchat.events import Kind
from agentchat.journal.entry import Committed

log = logging.getLogger(__name__)
INLINE_BYTES = 32_000
QUEUE = 1_000
RETRY = 2.0
Receive = Callable[[dict[str, Any]], None]


class Bus:
    """One subscription per topic with local interest, one channel per process, one sending and one receiving task."""

    def __init__(self, receive: Receive) -> None:
        self._layer: Any = get_channel_layer()
        self._receive = receive
        self._topics: Counter[str] = Counter()
        self._outgoing: asyncio.Queue[tuple[str, str, dict[str, Any]]] = asyncio.Queue(QUEUE)
        self._channel = ""
        self._tasks: list[asyncio.Task[None]] = []
        self.dropped = 0

    def start(self) -> None:
        self._tasks = [
            asyncio.create_task(self._send_loop(), name="bus sends"),
            asyncio.create_task(self._receive_loop(), name="bus receives"),
        ]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if hasattr(self._layer, "close_pools"):
            await self._layer.close_pools()

    def join(self, topic: str) -> None:
        self._topics[topic] += 1
        if self._topics[topic] == 1:
            self._put("join", topic, {})

    def leave(self, topic: str) -> None:
        self._topics[topic] -= 1
        if self._topics[topic] <= 0:
            del self._topics[topic]
            self._put("leave", topic, {})

    def publish(self, committed: Sequence[Committed]) -> None:
        for batch in committed:
            message: dict[str, Any] = {"first": batch.first, "last": batch.last}
            message["kinds"] = sorted({str(kind) for kind, _ in batch.events})
            if sum(len(body) for _, body in batch.events) < INLINE_BYTES:
                message["events"] = [[str(kind), body] for kind, body in batch.events]
            self._put("send", str(batch.chat_id), message)

    def signal(self, topic: str) -> None:
        self._put("send", topic, {})

    def _put(self, act: str, topic: str, message: dict[str, Any]) -> None:
        try:
            self._outgoing.put_nowait((act, topic, message))
        except asyncio.QueueFull:
            self.dropped += 1
            if self.dropped % 1000 == 1:
                log.warning("The bus does not keep up; %d hints were dropped. Nothing is lost.", self.dropped)

    async def _send_loop(self) -> None:
        while True:
            act, topic, message = await self._outgoing.get()
            try:
                await self._act(act, topic, message)
            except Exception as error:
                log.warning("The bus is away (%s). Other processes find what is new by themselves.", error)
                await asyncio.sleep(RETRY)
                self._channel = ""

    async def _act(self, act: str, topic: str, message: dict[str, Any]) -> None:
        if act == "send":
            await self._layer.group_send(_group(topic), {"type": "agentchat", "topic": topic, **message})
        elif self._channel and act == "join":
            await self._layer.group_add(_group(topic), self._channel)
        elif self._channel:
            await self._layer.group_discard(_group(topic), self._channel)

    async def _receive_loop(self) -> None:
        while True:
            try:
                self._channel = await self._layer.new_channel()
                for topic in list(self._topics):
                    await self._layer.group_add(_group(topic), self._channel)
                while True:
                    self._receive(await self._layer.receive(self._channel))
            except Exception as error:
                log.warning("The bus is away (%s); it is tried again in %d s.", error, RETRY)
                await asyncio.sleep(RETRY)


def _group(topic: str) -> str:
    return "agentchat." + topic.replace(":", ".")


def committed(message: dict[str, Any]) -> Committed | None:
    """The events that a message carries, if it carries them."""
    if "events" not in message:
        return None
    events = tuple((Kind(kind), body) for kind, body in message["events"])
    return Committed(UUID(message["topic"]), message["first"], events)


def chat_of(message: dict[str, Any]) -> UUID:
    return UUID(message["topic"])
