from __future__ import annotations

from django.apps import AppConfig


class AgentchatConfig(AppConfig):
    name = "agentchat"
    verbose_name = "agentchat"

    def ready(self) -> None:
        from django.db.models.signals import post_migrate

        from agentchat import checks  # noqa: F401  (registers the system checks)
        from agentchat.models.triggers import install

        post_migrate.connect(install, sender=self, dispatch_uid="agentchat.triggers")
