"""A private PostgreSQL: own data in a temporary folder, own port, forgotten at the end."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Self

import psycopg

from tests.services.process import (
    Service,
    ServiceFailed,
    as_user,
    free_port,
    stop,
    tail,
    unprivileged,
    wait_until,
)

USER = "agentchat"
FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=200")


def programs() -> Path:
    """The folder with a working `initdb` and `postgres`; the newest version first."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version, reverse=True)
    if config := shutil.which("pg_config"):
        said = subprocess.run([config, "--bindir"], capture_output=True, text=True, check=False)
        folders.append(Path(said.stdout.strip()))
    if found := shutil.which("initdb"):
        folders.append(Path(found).resolve().parent)
    for folder in folders:
        if all(_works(folder / name) for name in ("initdb", "postgres")):
            return folder
    raise ServiceFailed("PostgreSQL is missing. `tests/services/prepare` says how to get it.")


def _version(folder: Path) -> int:
    number = re.match(r"\d+", folder.parent.name)
    return int(number.group()) if number else 0


def _works(program: Path) -> bool:
    if not program.is_file():
        return False
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    return said.returncode == 0 and "PostgreSQL" in said.stdout


class Postgres(Service):
    """`with Postgres() as server: server.url`. A second database: `server.create("name")`.

    `halt()`, then `resume()`, keep the port and the data, as a restart does. With `folder` the data lie there.
    """

    def __init__(self, *options: str, folder: Path | None = None) -> None:
        self.options = options
        self.within = folder
        self.port = 0
        self.process: subprocess.Popen[bytes] | None = None
        self.folder: Path | None = None

    @property
    def url(self) -> str:
        return self.database(USER)

    def database(self, name: str) -> str:
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{name}"

    def create(self, name: str, template: str = "template1") -> str:
        wanted = psycopg.sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        with psycopg.connect(self.database("postgres"), autocommit=True) as connection:
            connection.execute(wanted.format(psycopg.sql.Identifier(name), psycopg.sql.Identifier(template)))
        return self.database(name)

    def start(self) -> Self:
        atexit.register(self.stop)
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def _start(self) -> None:
        bin_folder, user = programs(), unprivileged()
        self.folder = Path(tempfile.mkdtemp(prefix="agentchat-postgres-", dir=self.within))
        if user is not None:
            os.chown(self.folder, user.pw_uid, user.pw_gid)
        data, self.log = self.folder / "data", self.folder / "log"
        made = subprocess.run(
            [bin_folder / "initdb", "-D", data, "-U", USER, "--auth=trust", "-E", "UTF8", "--locale=C", "-N"],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            **as_user(user),
        )
        if made.returncode != 0:
            raise ServiceFailed(f"initdb ended with {made.returncode}:\n{made.stdout}{made.stderr}")
        self.port = free_port()
        self.resume()
        self.create(USER)

    def resume(self) -> None:
        """Start on the data that are there."""
        assert self.folder is not None
        bin_folder, data = programs(), self.folder / "data"
        settings = (
            "listen_addresses=127.0.0.1",
            f"port={self.port}",
            f"unix_socket_directories={self.folder}",
            *FAST,
            *self.options,
        )
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [bin_folder / "postgres", "-D", data, *(part for one in settings for part in ("-c", one))],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                start_new_session=True,  # Ctrl-C in the terminal reaches the tests first, which then stop us
                **as_user(unprivileged()),
            )
        wait_until(self._answers, self.process, self.log, what="PostgreSQL")

    def halt(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT is a fast shutdown that closes all connections; SIGQUIT ends at once, as a crash does."""
        assert self.process is not None, "PostgreSQL is not running"
        stop(self.process, how)
        self.process = None

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.database("postgres"), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self) -> None:
        if self.process is not None:
            self.halt()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None
        atexit.unregister(self.stop)

    def says(self) -> str:
        return tail(self.log)
