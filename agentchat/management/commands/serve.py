"""Starts the whole product: database, journal, runs, pages; in this process, or in several behind one port."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError, CommandParser, call_command
from django.db import connection, connections
from django.utils import autoreload

from agentchat.models import outage

CHILD = "AGENTCHAT_SERVE_CHILD"
BACKLOG = 2048


class Command(BaseCommand):
    help = "Start agentchat and print a link that signs the owner in."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=int(os.environ.get("PORT") or 8000))
        parser.add_argument("--dev", action="store_true", help="start again when a file of the project changes")
        parser.add_argument("--processes", type=int, metavar="N", help="uvicorn, in N processes, behind the one port")
        parser.add_argument("--inherited", type=int, help=argparse.SUPPRESS)  # one of those: the socket it was given

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self._serve(**options)
        except (OSError, *outage.ERRORS) as error:
            if away := outage.of(error):
                raise CommandError(f"{away.message} ({error})") from error
            raise

    def _serve(self, *, host: str, port: int, dev: bool, **options: Any) -> None:
        if (inherited := options.get("inherited")) is not None:
            return self._serve_inherited(inherited)
        processes: int | None = options.get("processes")
        if processes is not None:
            _require_possible(processes, dev)
        if dev and CHILD not in os.environ:
            sys.exit(_reloading(host, port))
        with _bound(host, port) as listener:
            token = self._prepare()
            if processes is not None:
                sys.exit(self._serve_processes(listener, processes, host, port, token))
        self._serve_here(host, port, token)

    def _prepare(self) -> str:
        """The database and the files; returns the token of the sign-in link."""
        call_command("migrate", verbosity=0, interactive=False)
        if settings.PRODUCTION:
            call_command("collectstatic", verbosity=0, interactive=False)
        from agentchat.services import signin

        if CHILD in os.environ:
            _demonstrate(signin.owner())
        return "" if os.environ.get(CHILD) == "again" else signin.token(signin.owner())

    def _serve_here(self, host: str, port: int, token: str) -> None:
        from agentchat.supervisor import daphne

        daphne.serve(host, port, ready=lambda: self._greet(host, port, token))

    def _serve_processes(self, listener: socket.socket, count: int, host: str, port: int, token: str) -> int:
        from agentchat.supervisor import processes

        for sentence in _concerns(count):
            self.stderr.write(sentence)
        _leave_database()
        listener.listen(BACKLOG)
        return processes.serve(listener, _command, count, ready=lambda: self._greet(host, port, token))

    def _serve_inherited(self, descriptor: int) -> None:
        from agentchat.supervisor import uvicorn

        _leave_database()
        uvicorn.serve(descriptor)

    def _greet(self, host: str, port: int, token: str) -> None:
        """After the port is open, so that the link works as soon as it can be read."""
        base = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        self.stdout.write(f"agentchat runs at {base}/\n")
        if token:
            self.stdout.write(f"\nSign in (works once, on this machine):\n  {base}/accounts/link/{token}/\n")
        self.stdout.write("Stop it with Ctrl-C.\n")
        self.stdout.flush()


DEMONSTRATION = (("shell", "ls -la"), ("scripted", "markdown"), ("scripted", "parallel"), ("scripted", "rehearsal"))


def _demonstrate(owner: Any) -> None:
    """For developers: a few chats to look at, if there are none."""
    from agentchat.services import chats

    if not owner.chats.exists():
        for provider, text in DEMONSTRATION:
            chat = chats.create(user=owner, provider=provider)
            chats.post(user=owner, chat_id=chat.pk, text=text)


def _bound(host: str, port: int) -> socket.socket:
    """A socket at the port, which proves that the port can be used; it does not listen yet."""
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
    except (OSError, OverflowError) as error:
        made.close()
        raise CommandError(f"Port {port} of {host} cannot be used: {error}. Choose another: PORT=8001.") from error
    return made


def _require_possible(processes: int, dev: bool) -> None:
    if processes < 1:
        raise CommandError(f"--processes {processes} makes no sense. Give 1 or more.")
    if dev:
        raise CommandError("--dev runs in one process. Leave out either --dev or --processes.")
    if processes > 1 and connection.vendor != "postgresql":
        raise CommandError(
            f"--processes {processes} needs PostgreSQL, since on SQLite the processes would wait for each other. "
            "Name one, DATABASE_URL=postgresql://..., or leave --processes out."
        )


def _concerns(count: int) -> list[str]:
    """What works, but not as well as it could."""
    found = []
    if count > 1 and not settings.REDIS_URL:
        found.append("Without REDIS_URL people see what happens in another process up to 2 s late.")
    pool: Any = (connection.settings_dict.get("OPTIONS") or {}).get("pool")
    if connection.vendor == "postgresql" and pool:
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('max_connections')::int")
            allowed = cursor.fetchone()[0]
        if count * pool["max_size"] >= allowed:
            found.append(
                f"{count} processes may open {count * pool['max_size']} connections, but this PostgreSQL allows "
                f"{allowed}. Set AGENTCHAT_DB_POOL lower, or its max_connections higher."
            )
    return found


def _leave_database() -> None:
    """What the checks and migrations have opened: nothing of it is needed beside the running server."""
    for each in connections.all(initialized_only=True):
        each.close()
        if each.vendor == "postgresql":
            each.close_pool()  # type: ignore[attr-defined]  # only this backend has it


def _command(descriptor: int) -> list[str]:
    return [sys.executable, sys.argv[0], "serve", "--inherited", str(descriptor), "--skip-checks"]


def _reloading(host: str, port: int) -> int:
    """Run the server as a child, and start it again whenever a Python file or template changes."""
    command = [sys.executable, sys.argv[0], "serve", "--host", host, "--port", str(port)]
    reloader = autoreload.StatReloader()
    seen = dict(reloader.snapshot_files())
    child = subprocess.Popen(command, env=os.environ | {CHILD: "first"})
    try:
        while child.poll() is None:
            _pause(child, reloader.SLEEP_TIME)
            now = dict(reloader.snapshot_files())
            if now != seen:
                seen = now
                _end(child)
                child = subprocess.Popen(command, env=os.environ | {CHILD: "again"})
    except KeyboardInterrupt:
        _end(child)
    return child.returncode or 0


def _pause(child: subprocess.Popen[bytes], seconds: float) -> None:
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        return


def _end(child: subprocess.Popen[bytes]) -> None:
    child.send_signal(signal.SIGTERM)
    child.wait()
