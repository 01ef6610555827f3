"""Writes a run as a trace for `agentack check`."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from django.core.management import BaseCommand, CommandError, CommandParser

from agentchat.exceptions import NotFound
from agentchat.services import trace


class Command(BaseCommand):
    help = "Write what was asked, decided and done in a run, as JSON Lines that `agentack check` reads."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", metavar="RUN", help="the run's id; the API shows it at each message of an agent")

    def handle(self, *args: Any, run: str, **options: Any) -> None:
        try:
            rows = trace.read(UUID(run))
        except ValueError:
            raise CommandError(f"{run!r} is not the id of a run. {WHERE}") from None
        except NotFound as error:
            raise CommandError(f"{error.message} {WHERE}") from None
        if rows.run.ended_at is None:
            self.stderr.write("This run has not ended, so its trace has no end yet and a check finds it incomplete.")
        for record in trace.records(rows):
            self.stdout.write(json.dumps(record, ensure_ascii=False, separators=(",", ":")))


WHERE = "GET /api/v1/chats/<id>/messages/ shows it as `run.id` of an agent's message."
