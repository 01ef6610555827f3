"""manage.py with one more agent, which says when it speaks: `python -m bench.stamping serve`.

A stamp is a word: the process, and its monotonic clock in nanoseconds, which all processes of a machine share.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from random import uniform

from agentchat.providers import registry
from agentchat.providers.base import Output, Provider, Turn

PAUSE = 0.1
"""More than a tick, so that every token finds the journal idle."""


class Stamping(Provider):
    """`tokens 100`: so many stamps, each on its way as soon as it is made. `requests 100`: a stamp as each returns."""

    key = "stamping"
    label = "Stamps"

    async def run(self, output: Output, turn: Turn) -> None:
        what, count = turn.text.split()
        for n in range(int(count)):
            if what == "requests":
                await output.approve("shell", {"command": f"make step-{n}"})
            await output.text(stamp())
            await asyncio.sleep(uniform(PAUSE, 1.5 * PAUSE))


def stamp() -> str:
    return f"{os.getpid()}:{time.monotonic_ns()} "


def stamps(text: str) -> list[tuple[int, int]]:
    """Process and nanoseconds of each stamp in a text."""
    return [(int(pid), int(moment)) for pid, moment in (word.split(":") for word in text.split())]


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    registry.PROVIDERS[Stamping.key] = "bench.stamping.Stamping"
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
