"""What the services of the tests have in common: a free port, a log, and an end."""

from __future__ import annotations

import os
import pwd
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self


class ServiceFailed(RuntimeError):
    """A service did not start or did not stop; the message ends with its log."""


class Service(ABC):
    """Started by `with`, stopped at its end; also at the end of the process, should the end be forgotten."""

    @abstractmethod
    def start(self) -> Self: ...

    @abstractmethod
    def stop(self) -> None: ...

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def unprivileged() -> pwd.struct_passwd | None:
    """The user as whom to start a service that refuses to run as root; None: as ourselves."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise ServiceFailed("Tests run as root, but there is no user `postgres` or `nobody` for the database.")


def as_user(user: pwd.struct_passwd | None) -> dict[str, Any]:
    """Arguments of `subprocess` that start a program as this user."""
    return {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def tail(log: Path, lines: int = 60) -> str:
    if not log.exists():
        return "(no log)"
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


def wait_until(
    ready: Callable[[], bool], process: subprocess.Popen[Any], log: Path, *, what: str, seconds: float = 30
) -> None:
    """Return once `ready()` is true; raise with the log if the process ends or the time is over."""
    end = time.monotonic() + seconds
    while True:
        if (code := process.poll()) is not None:
            raise ServiceFailed(f"{what} ended with {code} while starting:\n{tail(log)}")
        if ready():
            return
        if time.monotonic() > end:
            raise ServiceFailed(f"{what} was not ready after {seconds:g} s:\n{tail(log)}")
        time.sleep(0.05)


def stop(process: subprocess.Popen[Any], how: signal.Signals = signal.SIGTERM, *, seconds: float = 10) -> int:
    """End this one process: politely, and after `seconds` by SIGKILL. Returns its code."""
    if process.poll() is None:
        process.send_signal(how)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    return int(process.returncode)
