"""The form that starts a chat."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from agentchat import conf
from agentchat.events import Mode
from agentchat.exceptions import AgentChatError
from agentchat.providers import registry
from agentchat.services import chats

MODES = (
    (Mode.ASK, "Ask", "Everything risky waits for you."),
    (Mode.AUTO_EDIT, "Auto-edit", "Files in the folder change without asking. Commands still ask."),
    (Mode.FULL, "Full access", "Nothing waits for you, except questions."),
)


def choices() -> dict[str, Any]:
    providers = registry.describe()
    return {
        "providers": providers,
        "ready": [row for row in providers if row["ready"]],
        "workspaces": [str(folder) for folder in settings.AGENTCHAT_WORKSPACES],
        "modes": MODES,
    }


@dataclass(slots=True)
class Form:
    text: str = ""
    provider: str = ""
    workspace: str = ""
    mode: str = Mode.ASK
    problems: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Form:
        """What was sent, with the first possible choice where nothing was."""
        return cls(
            text=str(data.get("text", "")).replace("\r\n", "\n"),
            provider=str(data.get("provider", ""))
            or next((row["key"] for row in registry.describe() if row["ready"]), ""),
            workspace=str(data.get("workspace", "")) or str(settings.AGENTCHAT_WORKSPACES[0]),
            mode=str(data.get("approval_mode", "")) or Mode.ASK,
        )

    def check(self) -> None:
        if not self.text.strip():
            self.problems["text"] = "Write what the agent should do."
        elif len(self.text) > conf.MESSAGE_CHARS:
            self.problems["text"] = f"This has {len(self.text):,} characters; {conf.MESSAGE_CHARS:,} is the most."
        if self.provider not in {row["key"] for row in registry.describe() if row["ready"]}:
            self.problems["provider"] = "Choose an agent that is ready."
        if self.workspace not in {str(folder) for folder in settings.AGENTCHAT_WORKSPACES}:
            self.problems["workspace"] = "Choose one of these folders."
        if self.mode not in list(Mode):
            self.problems["mode"] = "Choose one of these."

    def start(self, user: Any) -> uuid.UUID | None:
        """Make the chat and send the message; a refusal of the service becomes a problem of the form."""
        try:
            chat = chats.create(
                user=user, provider=self.provider, workspace=self.workspace, approval_mode=self.mode, title=""
            )
            chats.post(user=user, chat_id=chat.pk, text=self.text)
        except AgentChatError as error:
            self.problems["text"] = error.message
            return None
        return uuid.UUID(str(chat.pk))
