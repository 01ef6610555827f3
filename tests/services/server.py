"""The real server as a process of its own, with private files, as `make run` starts it."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, ClassVar

import httpx

from tests.services.process import ServiceFailed, free_port, stop, tail, wait_until

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"https?://\S*/accounts/link/\S+")
OURS = ("AGENTCHAT_", "DATABASE_URL", "REDIS_URL", "SECRET_KEY", "ALLOWED_HOSTS", "DEBUG", "LOG_LEVEL")
"""Variables of the person who runs the tests do not reach the server; only the given ones do."""


class Server:
    """`with Server(env={"REDIS_URL": ...}) as server: httpx.get(server.url)`.

    `var` is the server's folder (SQLite file, secret, workspaces), made unless given. Servers that share
    a database also share SECRET_KEY, so it is set whenever DATABASE_URL is.
    """

    started: ClassVar[list[Server]] = []
    """Those whose log is shown when a test fails."""

    def __init__(
        self,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        var: Path | None = None,
        port: int | None = None,
        seconds: float = 60,
    ) -> None:
        self.arguments = arguments
        self.given = dict(env or {})
        self.seconds = seconds
        self.port = port or free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self._own_var = var is None
        self.var = var or Path(tempfile.mkdtemp(prefix="agentchat-server-"))
        descriptor, name = tempfile.mkstemp(prefix=f"agentchat-{self.port}-", suffix=".log")
        os.close(descriptor)
        self.log_file = Path(name)
        self._read_from = 0
        atexit.register(self.close)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def ws_url(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    @property
    def env(self) -> dict[str, str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        if "DATABASE_URL" in self.given:
            clean |= {"AGENTCHAT_PRODUCTION": "0", "SECRET_KEY": "only-for-tests-" * 4}
        own = {"AGENTCHAT_VAR": str(self.var), "PYTHONUNBUFFERED": "1"}
        return clean | own | {"DJANGO_SETTINGS_MODULE": "project.settings"} | self.given

    def start(self) -> Server:
        self._read_from = self.log_file.stat().st_size
        with self.log_file.open("ab") as log:
            self.process = self._open(log)
        if self not in Server.started:
            Server.started.append(self)
        wait_until(self.healthy, self.process, self.log_file, what="The server", seconds=self.seconds)
        return self

    def _open(self, log: IO[bytes], **more: Any) -> subprocess.Popen[bytes]:
        """`more` are arguments of `subprocess.Popen` that differ."""
        usual: dict[str, Any] = {
            "args": [sys.executable, "manage.py", "serve", "--port", str(self.port), *self.arguments],
            "cwd": ROOT,
            "env": self.env,
            "stdin": subprocess.DEVNULL,
            "stdout": log,
            "stderr": subprocess.STDOUT,
            "start_new_session": True,
        }
        return subprocess.Popen(**(usual | more))

    def healthy(self) -> bool:
        try:
            return httpx.get(f"{self.url}/healthz", timeout=2).status_code == 200
        except httpx.TransportError:
            return False

    @property
    def link(self) -> str:
        """The sign-in link that this start has printed."""
        end = time.monotonic() + 10
        while time.monotonic() < end:
            if found := LINK.search(self.log()):
                return found.group().rstrip(".,)")
            time.sleep(0.05)
        raise ServiceFailed(f"The server printed no sign-in link:\n{tail(self.log_file)}")

    def log(self) -> str:
        """What the server has printed since its last start."""
        with self.log_file.open("rb") as log:
            log.seek(self._read_from)
            return log.read().decode(errors="replace")

    def manage(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run another command of manage.py against the same files and database."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )
        if check and done.returncode != 0:
            raise ServiceFailed(
                f"manage.py {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
            )
        return done

    @property
    def pid(self) -> int:
        assert self.process is not None, "the server is not running"
        return self.process.pid

    def stop(self, seconds: float = 30) -> int:
        """SIGTERM, as a deployment does; returns the code with which the server ended."""
        assert self.process is not None, "the server is not running"
        code = stop(self.process, signal.SIGTERM, seconds=seconds)
        self._end_group()
        return code

    def kill(self) -> None:
        """SIGKILL to the server alone, as a crash does: what it started is left behind until `close`."""
        assert self.process is not None, "the server is not running"
        stop(self.process, signal.SIGKILL)

    def restart(self) -> Server:
        """Stop if it runs, and start again: same port, same files."""
        if self.process is not None and self.process.poll() is None:
            self.stop()
        return self.start()

    def _end_group(self) -> None:
        """The rest of the process group that began with our own process, if there is any."""
        if self.process is not None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                return

    def close(self) -> None:
        if self.process is not None:
            stop(self.process)
            self._end_group()
            self.process = None
        if self in Server.started:
            Server.started.remove(self)
        self.log_file.unlink(missing_ok=True)
        if self._own_var:
            shutil.rmtree(self.var, ignore_errors=True)
        atexit.unregister(self.close)

    def __enter__(self) -> Server:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
