"""What one run may take. The bounds of what it may say are in the journal's doors (agentchat.conf)."""

from __future__ import annotations

from django.conf import settings

from agentchat.models import Run
from agentchat.providers import registry

MB = 2**20


def passed(run: Run, worked: float) -> str:
    """The limit that a run has passed, as a sentence; nothing if it has not. `worked`: seconds. It looks at processes."""
    seconds, most = settings.AGENTCHAT_RUN_SECONDS, settings.AGENTCHAT_RUN_MEMORY_MB
    if seconds and worked > seconds:
        return f"The agent worked for more than {seconds:g} s (AGENTCHAT_RUN_SECONDS), so it was ended."
    if most and (held := registry.load(run.provider).memory(str(run.pk)) / MB) > most:
        return f"Its processes held {held:,.0f} MB, more than {most:,.0f} (AGENTCHAT_RUN_MEMORY_MB), so it was ended."
    return ""
