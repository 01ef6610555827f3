from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from agentchat.models import ids
from agentchat.models.chat import Chat

USER, ASSISTANT = "user", "assistant"


class Message(models.Model):
    """One turn of a person or of an agent. `position` is the number of the event that added it: unique, in commit order."""

    id = models.UUIDField(primary_key=True, default=ids.ordered, editable=False)
    chat = models.ForeignKey(Chat, models.PROTECT, related_name="messages")
    parent = models.ForeignKey("self", models.PROTECT, null=True, blank=True, related_name="replies")
    position = models.BigIntegerField(editable=False)
    role = models.CharField(max_length=20, choices=[(USER, USER), (ASSISTANT, ASSISTANT)])
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, blank=True, related_name="+")
    text = models.TextField(blank=True, default="")
    """What a person wrote; of an agent, the plain text of all its message items, once it has ended."""
    usage = models.JSONField(null=True, blank=True)
    meta = models.JSONField(default=dict, blank=True)
    error = models.TextField(blank=True, default="")
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    removed_at = models.DateTimeField(null=True, blank=True)
    """Set when a message that waited for its turn was taken back."""

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["chat", "position"], name="message_position_is_unique_in_its_chat"),
            models.CheckConstraint(name="message_role_is_known", condition=Q(role__in=[USER, ASSISTANT])),
            models.CheckConstraint(
                name="message_of_a_person_has_an_author", condition=Q(role=ASSISTANT) | Q(author__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.role} message {self.id}"
