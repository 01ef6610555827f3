"""Starts the whole product in one process: database, journal, runs, pages."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError, CommandParser, call_command
from django.utils import autoreload

CHILD = "AGENTCHAT_SERVE_CHILD"


class Command(BaseCommand):
    help = "Start agentchat and print a link that signs the owner in."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=int(os.environ.get("PORT") or 8000))
        parser.add_argument("--dev", action="store_true", help="start again when a file of the project changes")

    def handle(self, *args: Any, host: str, port: int, dev: bool, **options: Any) -> None:
        if dev and CHILD not in os.environ:
            sys.exit(_reloading(host, port))
        _require_free(host, port)
        call_command("migrate", verbosity=0, interactive=False)
        if settings.PRODUCTION:
            call_command("collectstatic", verbosity=0, interactive=False)
        from agentchat.services import signin
        from agentchat.supervisor import daphne

        again = os.environ.get(CHILD) == "again"
        token = "" if again else signin.token(signin.owner())
        if CHILD in os.environ:
            _demonstrate(signin.owner())
        daphne.serve(host, port, ready=lambda: self._greet(host, port, token))

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


def _require_free(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, OverflowError) as error:
            raise CommandError(f"Port {port} of {host} cannot be used: {error}. Choose another: PORT=8001.") from error


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
