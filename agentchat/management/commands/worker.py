"""`manage.py worker`: takes runs and nothing else, beside servers with AGENTCHAT_QUEUE=workers."""

from __future__ import annotations

import asyncio
import logging
import signal
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from agentchat.models import outage
from agentchat.supervisor import lifecycle

log = logging.getLogger(__name__)


class Command(BaseCommand):
    help = "Take runs and drive their agents, until SIGTERM or Ctrl-C. Several workers may share a database."

    def handle(self, *arguments: Any, **options: Any) -> None:
        try:
            asyncio.run(_work())
        except (OSError, *outage.ERRORS) as error:
            if away := outage.of(error):
                raise CommandError(f"{away.message} ({error})") from error
            raise


async def _work() -> None:
    """What only waits when the end comes is given back; what works is interrupted and says so."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    await lifecycle.start(takes_runs=True)
    log.info("The worker takes runs.")
    try:
        await told.wait()
    finally:
        await lifecycle.stop()
