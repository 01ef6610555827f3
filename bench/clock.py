"""A loop whose sleeps take no time: the clock jumps to the next timer as soon as nothing is left to do.

Work in threads (the database) takes no time of this clock either: it stands still until the work is done. So a stream
of 500 s at 200 tokens a second, with its commits 20 times a second, is measured in the time that its work takes.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class VirtualClock(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.now = 0.0
        self.in_threads = 0
        super().__init__(_Jumping(self))

    def time(self) -> float:
        return self.now

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        self.in_threads += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._is_back)
        return future

    def _is_back(self, future: Any) -> None:
        self.in_threads -= 1


class _Jumping(selectors.DefaultSelector):  # type: ignore[valid-type, misc]
    def __init__(self, loop: VirtualClock) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        if timeout is not None and timeout <= 0:
            return super().select(0)
        if self._loop.in_threads or timeout is None:
            return super().select(None)
        self._loop.now += timeout
        return super().select(0)


def run(main: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualClock) as runner:
        return runner.run(main)
