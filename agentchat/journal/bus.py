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
from django.conf import settings
from redis.asyncio import Redis

from agentchat.events import Kind
from agentchat.journal.entry import Committed

log = logging.getLogger(__name__)
INLINE_BYTES = 32_000
QUEUE = 1_000
AT_ONCE = 100
"""Hints in one round trip: the layer makes one for each."""
RETRY = 2.0
PULSE = 1.0
"""Seconds between two messages to ourselves, by which we know that the bus carries."""
SILENCE = 5.0
"""Seconds without an answer or a pulse after which the connection is given up for a new one."""
EVERYTHING = "*"
"""The topic of a message that says: I was away, so look at everything that you wait for."""
Receive = Callable[[dict[str, Any]], None]
Hint = tuple[str, dict[str, Any]]
"""A topic, and the message."""


class Bus:
    """One subscription per topic with local interest, and one channel per process.

    What it does is one attempt after another: connect, subscribe to whatever is wanted, carry. An attempt that fails
    ends with all its connections, and the next begins anew.
    """

    def __init__(self, receive: Receive) -> None:
        self._layer: Any = get_channel_layer()
        self._receive = receive
        self._topics: Counter[str] = Counter()
        self._changed = asyncio.Event()
        self._outgoing: asyncio.Queue[Hint] = asyncio.Queue(QUEUE)
        self._channel = ""
        self._heard = 0.0
        self._task: asyncio.Task[None] | None = None
        self.carries = False
        self.dropped = 0

    def start(self) -> None:
        self._task = asyncio.create_task(self._loop(), name="bus")

    async def stop(self) -> None:
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def join(self, topic: str) -> None:
        self._topics[topic] += 1
        self._changed.set()

    def leave(self, topic: str) -> None:
        self._topics[topic] -= 1
        if self._topics[topic] <= 0:
            del self._topics[topic]
        self._changed.set()

    def publish(self, committed: Sequence[Committed]) -> None:
        for batch in committed:
            message: dict[str, Any] = {"first": batch.first, "last": batch.last}
            message["kinds"] = sorted({str(kind) for kind, _ in batch.events})
            if sum(len(body) for _, body in batch.events) < INLINE_BYTES:
                message["events"] = [[str(kind), body] for kind, body in batch.events]
            self._put(str(batch.chat_id), message)

    def signal(self, topic: str) -> None:
        self._put(topic, {})

    def _put(self, topic: str, message: dict[str, Any]) -> None:
        try:
            self._outgoing.put_nowait((topic, message))
        except asyncio.QueueFull:
            self.dropped += 1
            if self.dropped % 1000 == 1:
                log.warning("The bus does not keep up; %d hints were dropped. Nothing is lost.", self.dropped)

    # Attempts

    async def _loop(self) -> None:
        while True:
            try:
                await self._attempt()
            except Exception as error:
                reason = str(error) or type(error).__name__
                log.warning(
                    "The bus is away (%s). Processes look for what is new themselves, until it is back.", reason
                )
            await asyncio.sleep(RETRY)

    async def _attempt(self) -> None:
        """Carry until something fails."""
        tasks: list[asyncio.Task[None]] = []
        try:
            async with asyncio.timeout(SILENCE):
                self._channel = await self._layer.new_channel()
            self._heard = asyncio.get_running_loop().time()
            parts = (self._receive_loop, self._send_loop, self._subscribe_loop, self._pulse_loop)
            tasks = [asyncio.create_task(part(), name=f"bus: {part.__name__}") for part in parts]
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            self.carries = False
            await self._end(tasks)

    async def _end(self, tasks: list[asyncio.Task[None]]) -> None:
        """The connections are closed before the receiving task is told: it would wait for them to say goodbye."""
        for task in tasks[1:]:
            task.cancel()
        try:
            async with asyncio.timeout(SILENCE):
                await asyncio.gather(*tasks[1:], return_exceptions=True)
                await self._layer.flush()
        except Exception as error:
            log.debug("The connection of the bus did not end cleanly: %s", error)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _receive_loop(self) -> None:
        while True:
            message = await self._layer.receive(self._channel)
            self._heard = asyncio.get_running_loop().time()
            if message.get("topic") == EVERYTHING:
                self._look_at_everything()
            elif "topic" in message and message["by"] != self._channel:
                self._receive(message)

    async def _send_loop(self) -> None:
        async with Redis.from_url(settings.REDIS_URL) as redis:
            while True:
                hints = [await self._outgoing.get()]
                while len(hints) < AT_ONCE and not self._outgoing.empty():
                    hints.append(self._outgoing.get_nowait())
                await self._send(redis, hints)

    async def _send(self, redis: Redis, hints: list[Hint]) -> None:
        """As the layer's `group_send` does, but in one round trip."""
        pipeline = redis.pipeline(transaction=False)
        for topic, message in hints:
            text = self._layer.serialize({"type": "agentchat", "by": self._channel, "topic": topic, **message})
            pipeline.publish(self._layer._get_group_channel_name(_group(topic)), text)
        async with asyncio.timeout(SILENCE):
            await pipeline.execute()

    async def _subscribe_loop(self) -> None:
        """Bring the subscriptions to what is wanted, whenever that changes. Of several changes only the last counts."""
        joined: set[str] = set()
        while True:
            self._changed.clear()
            wanted = {*self._topics, EVERYTHING}
            for topic in wanted - joined:
                await self._layer.group_add(_group(topic), self._channel)
            for topic in joined - wanted:
                await self._layer.group_discard(_group(topic), self._channel)
            joined = wanted
            if not self.carries:
                self.carries = True
                self._start_over()
            await self._changed.wait()

    async def _pulse_loop(self) -> None:
        """Our own messages come back, or something is wrong."""
        while asyncio.get_running_loop().time() - self._heard < SILENCE:
            async with asyncio.timeout(SILENCE):
                await self._layer.send(self._channel, {"type": "agentchat"})
            await asyncio.sleep(PULSE)
        raise TimeoutError(f"nothing came back for {SILENCE:g} s")

    def _start_over(self) -> None:
        """What waited to be sent is old: it is replaced by one message for all."""
        while not self._outgoing.empty():
            self._outgoing.get_nowait()
        self._put(EVERYTHING, {})

    def _look_at_everything(self) -> None:
        """Hints may have been lost, ours or those of another process."""
        for topic in list(self._topics):
            self._receive({"topic": topic})


def _group(topic: str) -> str:
    return "agentchat." + topic.replace(":", ".").replace(EVERYTHING, "everything")


def committed(message: dict[str, Any]) -> Committed | None:
    """The events that a message carries, if it carries them."""
    if "events" not in message:
        return None
    events = tuple((Kind(kind), body) for kind, body in message["events"])
    return Committed(UUID(message["topic"]), message["first"], events)


def chat_of(message: dict[str, Any]) -> UUID:
    return UUID(message["topic"])
