"""Checks the chain of every chat's resolutions."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management import BaseCommand

from agentchat.models import Resolution, triggers
from agentchat.services import chain


class Command(BaseCommand):
    help = "Check that no resolution was changed, removed or added behind our back; exit 1 and the first broken row if one was."

    def handle(self, *args: Any, **options: Any) -> None:
        for name in triggers.missing():
            self.stderr.write(f"The trigger {name} is missing. Run manage.py migrate: it puts the triggers back.")
        broken = chain.verify_all()
        for found in broken:
            self.stderr.write(f"Chat {found.chat}, resolution {found.resolution}: {found.problem}.")
        if broken or triggers.missing():
            sys.exit(1)
        newest = Resolution.objects.order_by("-pk").values_list("hash", flat=True).first()
        self.stdout.write(
            f"{Resolution.objects.count()} resolutions, all as they were written. Newest hash: {newest or 'none'}"
        )
