"""What the tests of services do again and again."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from agentchat.events import Via
from agentchat.journal import reader
from agentchat.models import OutputItem, Resolution
from agentchat.services import approvals
from agentchat.services.approvals import Decision
from agentchat.services.output import Output


async def events(in_db: Any, chat: Any, after: int = 0) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while True:
        page = await in_db(reader.read, chat.pk, after)
        found += [json.loads(body) | {"seq": seq} for seq, body in enumerate(page.bodies, page.first)]
        if not page.bodies or page.cursor >= page.last_seq:
            return found
        after = page.cursor


async def pending(in_db: Any, count: int = 1) -> list[OutputItem]:
    """The requests that wait, once there are `count`."""
    for _ in range(500):
        rows = await in_db(lambda: list(OutputItem.objects.pending().order_by("created_at", "position")))
        if len(rows) >= count:
            return rows
        await asyncio.sleep(0.01)
    raise AssertionError("no request came")


async def decide(in_db: Any, user: Any, item: OutputItem, action: str = "approve", **more: Any) -> Resolution:
    decision = Decision(action, more.pop("digest", item.digest), **more)
    return await in_db(approvals.decide, user, item.pk, decision, via=Via.API, proof="test")


async def items(output: Output, in_db: Any) -> list[OutputItem]:
    await output.flush(force=True)
    return await in_db(lambda: list(OutputItem.objects.filter(message=output._writer.message_id).order_by("position")))
