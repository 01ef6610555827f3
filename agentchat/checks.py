"""System checks: what must hold before the server starts."""

from __future__ import annotations

from typing import Any

from django.core.checks import Tags, Warning, register

from agentchat.models import triggers


@register(Tags.database)
def audit_is_insert_only(databases: Any = None, **kwargs: Any) -> list[Warning]:
    """With `check --database default`: the triggers that keep resolutions as they were written are there."""
    return [
        Warning(
            f"The trigger {name} is missing, so a resolution could be changed.",
            hint="Run manage.py migrate: it puts the triggers back.",
            id="agentchat.W001",
        )
        for using in databases or ()
        for name in triggers.missing(using)
    ]
