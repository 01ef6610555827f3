"""`runserver` is `serve`: pages without the journal and the runs would only look like the product."""

from __future__ import annotations

from typing import Any

from django.core.management import BaseCommand, CommandError, CommandParser, call_command


class Command(BaseCommand):
    help = "Start agentchat; takes a port, or an address and a port, as Django's own runserver does. Reloads by itself."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("addrport", nargs="?", default="127.0.0.1:8000")
        parser.add_argument("--noreload", action="store_true")

    def handle(self, *args: Any, addrport: str, noreload: bool, **options: Any) -> None:
        host, _, port = addrport.rpartition(":")
        if not port.isdecimal():
            raise CommandError(f"{addrport!r} is not a port, nor an address and a port such as 127.0.0.1:8000.")
        call_command("serve", host=host or "127.0.0.1", port=int(port), dev=not noreload)
