"""One command on a pseudo-terminal of its own, streamed as it prints.

The terminal translates nothing (`\\n` stays `\\n`) and nobody types: stdin is /dev/null, and there is no
controlling terminal that could ask for a password. When the command has ended, everything that it left behind
is killed: its process group, and what carries the mark of the run. So what was approved is over when its
result says so.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from agentchat.providers import process

COLUMNS, ROWS = 120, 40
GRACE = 0.5
"""Seconds between SIGTERM and SIGKILL when a run is stopped."""
DRAIN = 0.2
"""Seconds that what a command left in the background may hold the terminal."""
CHUNK = 65_536
HIGH = 200
"""The shell's own file descriptors lie above those that commands use."""
EXTRA = {"TERM": "xterm-256color", "PAGER": "cat", "GIT_PAGER": "cat"}
"""A pager would wait for ever for a key."""
SCRIPT = r"""read -r _ <&{go} || exit 125
exec {go}<&-
trap '{{ builtin pwd -P; builtin printf "\0"; }} >&{cwd}' EXIT
eval "shift
$1"
"""
"""Waits until the guard stands. The command comes as an argument; only numbers are put into the script."""

Send = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended; `cwd` is None if it could not be told, and `cut` if it printed too much."""

    code: int
    seconds: float
    cwd: Path | None
    cut: bool


class Terminal:
    """A command that runs from the moment this is made. `run` must be awaited right after."""

    def __init__(self, command: str, cwd: Path, run_id: str, limit: int) -> None:
        self._run_id, self._limit = run_id, limit
        self._started = time.monotonic()
        self._bytes, self._cut, self._over = 0, False, False
        self._wait: asyncio.Future[None] | None = None
        self._open = contextlib.ExitStack()
        try:
            self._spawn(command, cwd)
        except BaseException:
            self._open.close()
            raise

    async def run(self, send: Send) -> Ended:
        """Stream to the end. If that is cancelled or fails, all is killed before the error is raised on."""
        pump = asyncio.create_task(self._pump(send))
        exited = asyncio.create_task(_readable(self._pidfd))
        try:
            await self._watch(pump, exited)
        except BaseException:
            await self._stop(pump, exited)
            raise
        finally:
            exited.cancel()
            code = self._close()
        seconds = round(time.monotonic() - self._started, 3)
        return Ended(code, seconds, self._left, self._cut)

    def _spawn(self, command: str, cwd: Path) -> None:
        with contextlib.ExitStack() as theirs:
            self._master, slave = _terminal(self._open, theirs)
            wait, go = _pipe(theirs, self._open)
            self._told, tell = _pipe(self._open, theirs)
            self._process = subprocess.Popen(
                ["bash", "--noprofile", "--norc", "-c", SCRIPT.format(go=wait, cwd=tell), "bash", command],
                stdin=subprocess.DEVNULL,
                stdout=slave,
                stderr=slave,
                cwd=cwd,
                env=process.environment(self._run_id, EXTRA),
                pass_fds=(wait, tell),
                start_new_session=True,
            )
        self._release(go)

    def _release(self, go: int) -> None:
        """Put the guard up, then let the command go."""
        self._group = self._process.pid
        try:
            self._pidfd = _closed_by(self._open, os.pidfd_open(self._group))
            self._guard = process.Guard(self._group)
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise
        with contextlib.suppress(BrokenPipeError):
            os.write(go, b"\n")

    async def _watch(self, pump: asyncio.Task[None], exited: asyncio.Task[None]) -> None:
        await asyncio.wait({pump, exited}, return_when=asyncio.FIRST_COMPLETED)
        if pump.done():
            pump.result()
        await exited
        await asyncio.wait({pump}, timeout=DRAIN)
        process.signal_group(self._group)
        await asyncio.to_thread(process.reap, self._run_id)
        self._over = True
        _wake(self._wait)
        await pump

    async def _stop(self, pump: asyncio.Task[None], exited: asyncio.Task[None]) -> None:
        """SIGTERM to all of the run, and SIGKILL as soon as all have let go or the grace is over."""
        family = process.family(self._run_id)
        process.signal_group(self._group, signal.SIGTERM)
        process.signal_family(family, signal.SIGTERM)
        pump.cancel()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(GRACE):
                    await asyncio.wait({pump})
                    await self._discard()
        finally:
            process.signal_group(self._group)
            process.signal_family(family)
            process.reap(self._run_id)
        await asyncio.wait({exited}, timeout=GRACE)

    def _close(self) -> int:
        """Collect the command and close everything. Its number cannot have been used again before."""
        process.signal_group(self._group)
        self._guard.release()
        code = self._process.poll()
        self._left = _folder(self._told)
        self._open.close()
        return 137 if code is None else code if code >= 0 else 128 - code

    async def _pump(self, send: Send) -> None:
        """Pass the output on; nothing more is read before the piece was taken."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while data := await self._read():
            room = self._limit - self._bytes
            self._bytes += len(data)
            await _pass(send, decoder.decode(data[:room]))
            if self._bytes > self._limit:
                self._cut = True
                process.signal_group(self._group)
                return
        await _pass(send, decoder.decode(b"", final=True))

    async def _discard(self) -> None:
        while await self._read():
            await asyncio.sleep(0)

    async def _read(self) -> bytes:
        """What there is to read now; empty if nobody holds the terminal any more."""
        while True:
            try:
                return _take(self._master)
            except BlockingIOError:
                if self._over:
                    return b""
            self._wait = asyncio.get_running_loop().create_future()
            await _readable(self._master, self._wait)


async def _pass(send: Send, text: str) -> None:
    """Also lets others run: a program that prints fast always has more to read."""
    if text:
        await send(text)
    await asyncio.sleep(0)


async def _readable(descriptor: int, wait: asyncio.Future[None] | None = None) -> None:
    loop = asyncio.get_running_loop()
    wait = wait or loop.create_future()
    loop.add_reader(descriptor, _wake, wait)
    try:
        await wait
    finally:
        loop.remove_reader(descriptor)


def _wake(wait: asyncio.Future[None] | None) -> None:
    if wait is not None and not wait.done():
        wait.set_result(None)


def _take(descriptor: int) -> bytes:
    """Read until nothing more is there. A terminal that nobody holds any more answers with an error (EIO)."""
    taken = b""
    while len(taken) < CHUNK:
        try:
            data = os.read(descriptor, CHUNK - len(taken))
        except OSError as error:
            if isinstance(error, BlockingIOError) and not taken:
                raise
            return taken
        if not data:
            return taken
        taken += data
    return taken


def _terminal(ours: contextlib.ExitStack, theirs: contextlib.ExitStack) -> tuple[int, int]:
    """Both ends of a new pseudo-terminal that passes every byte on as it is."""
    master, slave = pty.openpty()
    _closed_by(ours, master)
    _closed_by(theirs, slave)
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    attributes = termios.tcgetattr(slave)
    attributes[1] &= ~termios.OPOST
    attributes[3] &= ~termios.ECHO
    termios.tcsetattr(slave, termios.TCSANOW, attributes)
    os.set_blocking(master, False)
    return master, slave


def _pipe(reading: contextlib.ExitStack, writing: contextlib.ExitStack) -> tuple[int, int]:
    """A pipe whose ends have high numbers."""
    with contextlib.ExitStack() as low:
        ends = [_closed_by(low, end) for end in os.pipe()]
        reader = _closed_by(reading, fcntl.fcntl(ends[0], fcntl.F_DUPFD_CLOEXEC, HIGH))
        writer = _closed_by(writing, fcntl.fcntl(ends[1], fcntl.F_DUPFD_CLOEXEC, HIGH))
    return reader, writer


def _closed_by(stack: contextlib.ExitStack, descriptor: int) -> int:
    stack.callback(os.close, descriptor)
    return descriptor


def _folder(told: int) -> Path | None:
    """The folder that the shell said it ended in."""
    os.set_blocking(told, False)
    try:
        said = os.read(told, CHUNK).decode()
    except (OSError, UnicodeDecodeError):
        return None
    last = said.rstrip("\0").rpartition("\0")[2].removesuffix("\n")
    return Path(last) if last and Path(last).is_dir() else None
