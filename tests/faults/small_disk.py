"""Servers whose disk can run full. Neither kind needs root, nor anything prepared.

`OnSmallDisk` has a file system of its own, in namespaces of its own, where the system lets people make one. `OnQuota`
works everywhere: of no file may it write what lies beyond a size, which fails as a quota on a disk does.
"""

from __future__ import annotations

import errno
import resource
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import IO, Any

from tests.services.process import ServiceFailed
from tests.services.server import ROOT, Server

SIZE = 32_000_000
MOUNT = f'mount -t tmpfs -o size={SIZE} small "$0" && echo ready && exec cat'
KEEPER = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", MOUNT]
QUOTA = 16_384
"""Bytes: less than any commit writes after a few others, and more than the log of a test."""
IMPATIENT = "from agentchat import conf; conf.RETRY_SECONDS = {}; import manage; manage.main()"


@cache
def can_be_made() -> bool:
    """Whether this user may make a file system here; in most containers nobody may."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            made = subprocess.run([*KEEPER, folder], stdin=subprocess.DEVNULL, capture_output=True, check=False)
        except FileNotFoundError:
            return False
    return made.returncode == 0


class SmallServer(Server):
    """`patience` is how many seconds the journal repeats a commit, instead of a minute."""

    def __init__(self, var: Path, patience: float | None = None, **more: Any) -> None:
        super().__init__(var=var, **more)
        self.program = [sys.executable, *(["manage.py"] if patience is None else ["-c", IMPATIENT.format(patience)])]

    def _open(self, log: IO[bytes], **more: Any) -> subprocess.Popen[bytes]:
        command = [*self.program, "serve", "--port", str(self.port), *self.arguments]
        return super()._open(log, **({"args": command} | more))

    def fill(self) -> None:
        """From now on nothing has room."""
        raise NotImplementedError

    def make_room(self) -> None:
        raise NotImplementedError

    def is_whole(self) -> bool:
        """Nothing in the database is corrupt, no row hangs in the air, and the audit is as it was written."""
        look = "print([connection.cursor().execute(f'PRAGMA {it}_check').fetchall() for it in ('integrity', 'foreign_key')])"
        said = self.manage("shell", "-v0", "-c", f"from django.db import connection; {look}").stdout
        return said.strip() == "[[('ok',)], []]" and self.manage("verify_resolutions").returncode == 0


class OnSmallDisk(SmallServer):
    """Its `var` is the disk, which only processes `within` the namespaces see; we come to it through their keeper."""

    def __init__(self, var: Path, patience: float | None = None, **more: Any) -> None:
        super().__init__(var, patience, **more)
        self.keeper = subprocess.Popen([*KEEPER, var], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.keeper.stdout is not None
        if self.keeper.stdout.readline() != b"ready\n":
            raise ServiceFailed("A small disk could not be made.")
        enter = ["nsenter", f"--target={self.keeper.pid}", "--user", "--mount", "--preserve-credentials"]
        self.within = [*enter, "env", "-C", str(ROOT)]
        self.program = [*self.within, *self.program]

    @property
    def ballast(self) -> Path:
        return Path(f"/proc/{self.keeper.pid}/root{self.var}/ballast")

    def manage(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [*self.within, sys.executable, "manage.py", *arguments]
        return subprocess.run(command, env=self.env, capture_output=True, text=True, check=check)

    def fill(self) -> None:
        with self.ballast.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError as error:
                assert error.errno == errno.ENOSPC, error

    def make_room(self) -> None:
        self.ballast.unlink()

    def close(self) -> None:
        super().close()
        self.keeper.communicate()


class OnQuota(SmallServer):
    """The limit below the hard one, so that we may raise it again."""

    usual = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(self) -> None:
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (QUOTA, self.usual[1]))

    def make_room(self) -> None:
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, self.usual)
