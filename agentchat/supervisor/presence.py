"""Which workers of this machine live: each holds a lock on a file, which the system lets go when the process dies."""

from __future__ import annotations

import fcntl
import os
import socket
import uuid
from io import TextIOWrapper
from pathlib import Path

HOST = socket.gethostname()[:100]


class Presence:
    """`worker` is `<host>:<random>`; held from `enter` to `leave`, or to the death of the process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: TextIOWrapper | None = None
        self.worker = f"{HOST}:{uuid.uuid4().hex}"

    def enter(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._file = (self._folder / self.worker).open("w")
        fcntl.flock(self._file, fcntl.LOCK_EX)
        self._file.write(str(os.getpid()))
        self._file.flush()

    def leave(self) -> None:
        if self._file:
            (self._folder / self.worker).unlink(missing_ok=True)
            self._file.close()
            self._file = None

    def alive(self) -> set[str]:
        """The living workers of this machine that share the folder; files of the dead are removed."""
        living = {self.worker}
        for path in self._folder.iterdir():
            if path.name != self.worker and _is_held(path):
                living.add(path.name)
        return living


def _is_held(path: Path) -> bool:
    try:
        with path.open("r") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink(missing_ok=True)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False
