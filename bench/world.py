"""What the measurements share: a private installation in this process, outputs, and viewers that only count."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

FOLDER = tempfile.mkdtemp(prefix="agentchat-bench-")
os.environ |= {"AGENTCHAT_VAR": FOLDER, "LOG_LEVEL": "ERROR", "AGENTCHAT_PRODUCTION": "0"}
os.environ.setdefault("SECRET_KEY", "only-to-measure-" * 4)
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")

import django  # noqa: E402

django.setup()

from asgiref.sync import sync_to_async  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402

from agentchat.journal import process, reader  # noqa: E402
from agentchat.journal.outbox import Wire  # noqa: E402
from agentchat.services import chats, runs, signin, snapshot  # noqa: E402
from agentchat.services.output import Output  # noqa: E402
from agentchat.supervisor import lifecycle  # noqa: E402

TOKEN = "abc "
"""80 KB are 20,000 of it."""


@contextmanager
def installation() -> Iterator[None]:
    call_command("migrate", verbosity=0)
    connection.close()
    try:
        yield
    finally:
        connection.close()
        shutil.rmtree(FOLDER, ignore_errors=True)


@asynccontextmanager
async def journal() -> AsyncIterator[None]:
    """The journal, the hub and, with REDIS_URL, the bus in this process; no runs are taken."""
    await lifecycle.start(host_runs=False)
    try:
        yield
    finally:
        await lifecycle.stop()


async def db(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    return await sync_to_async(function, thread_sensitive=True)(*arguments, **named)


async def fresh_output() -> tuple[Any, Output]:
    """A new chat, and the output of its first answer."""
    owner = await db(signin.owner)
    chat = await db(chats.create, user=owner, provider="scripted")
    _, run = await db(chats.post, user=owner, chat_id=chat.pk, text="go")
    await db(runs.claim, "bench:worker")
    return chat, Output({"chat_id": chat.pk, "message_id": run.message_id, "task_id": run.pk}, owner)


@dataclass
class Viewer:
    """What one browser got: frames and bytes; the frames themselves if `keep`."""

    take: Callable[[str], None] | None = None
    frames: int = 0
    bytes: int = 0
    texts: list[str] = field(default_factory=list)

    async def send(self, text: str) -> None:
        self.frames += 1
        self.bytes += len(text.encode())
        if self.take:
            self.take(text)


@contextmanager
def watching(
    chat_id: Any, user: Any, take: Callable[[str], None] | None = None, viewed: bool = True
) -> Iterator[Viewer]:
    """A viewer at the hub, with the outbox that a socket has, from the beginning of the chat on; or none."""
    viewer, here = Viewer(take), process.current()
    if not viewed:
        yield viewer
        return
    outbox = here.hub.attach(chat_id, 0)

    async def read(after: int) -> Any:
        return await here.run(reader.read, chat_id, after)

    async def taken() -> tuple[int, str]:
        found = await here.run(snapshot.chat_snapshot, user, chat_id)
        return found["cursor"], str(found)

    task = asyncio.ensure_future(outbox.drain(Wire(viewer.send, read, taken)))
    yield viewer
    outbox.close()
    task.cancel()
    here.hub.detach(chat_id, outbox)


@contextmanager
def cpu() -> Iterator[Callable[[], float]]:
    """Seconds of CPU of this process, all threads, from here to the end of the block (or to the call)."""
    begun = time.process_time()
    ended: list[float] = []
    yield lambda: (ended[0] if ended else time.process_time()) - begun
    ended.append(time.process_time())


def resident() -> int:
    """Bytes of memory that this process holds."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
