"""Starts the whole product in one process: database, journal, runs, pages."""

from __future__ import annotations

import logging
import os
import socket
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError, CommandParser, call_command

log = logging.getLogger(__name__)


class Command(BaseCommand):
    help = "Start agentchat and print a link that signs the owner in."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=int(os.environ.get("PORT") or 8000))

    def handle(self, *args: Any, host: str, port: int, **options: Any) -> None:
        _require_free(host, port)
        call_command("migrate", verbosity=0, interactive=False)
        if settings.PRODUCTION:
            call_command("collectstatic", verbosity=0, interactive=False)
        self._greet(host, port)
        from agentchat.supervisor import daphne

        daphne.serve(host, port)

    def _greet(self, host: str, port: int) -> None:
        from agentchat.services import signin

        base = f"http://{host}:{port}"
        link = f"{base}/accounts/link/{signin.token(signin.owner())}/"
        self.stdout.write(f"agentchat runs at {base}/\n\nSign in (works once, on this machine):\n  {link}\n")
        self.stdout.write("Stop it with Ctrl-C.\n")
        self.stdout.flush()


def _require_free(host: str, port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise CommandError(
                f"Port {port} of {host} cannot be used: {error.strerror}. Choose another: PORT=8001."
            ) from error
