from __future__ import annotations

import uuid
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q

from agentchat import conf
from agentchat.events import Mode
from agentchat.models import ids


class ChatQuerySet(models.QuerySet["Chat"]):
    def alive(self) -> ChatQuerySet:
        return self.filter(deleted_at=None)

    def visible_to(self, user: Any) -> ChatQuerySet:
        return self.alive().filter(owner=user)

    def locked(self) -> ChatQuerySet:
        """Lock the rows, in id order (or two writers deadlock); the key stays free for foreign keys."""
        return self.order_by("id").select_for_update(no_key=True, of=("self",))


class Chat(models.Model):
    """A conversation. `last_seq` numbers its events; the row is the lock under which they are numbered."""

    id = models.UUIDField(primary_key=True, default=ids.ordered, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="chats")
    title = models.CharField(max_length=conf.TITLE_CHARS, blank=True, default="")
    provider = models.CharField(max_length=50)
    journal_key = models.UUIDField(null=True, blank=True, editable=False)
    journal_seq = models.BigIntegerField(default=0, db_default=0, editable=False)
    """The journal's last commit in this chat, and its last event: a commit whose answer was lost is not made twice."""
    fence = models.BigIntegerField(default=0, db_default=0)
    """Rises whenever a run of the chat is taken, given back or ended: whoever writes for an older one writes nothing."""
    workspace = models.CharField(max_length=1000)
    approval_mode = models.CharField(max_length=20, choices=[(m, m) for m in Mode], default=Mode.ASK)
    pinned = models.BooleanField(default=False)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    archived_at = models.DateTimeField(null=True, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True)
    last_seq = models.BigIntegerField(default=0, editable=False)
    floor_seq = models.BigIntegerField(default=0, editable=False)
    """Events up to here are no longer kept."""

    objects = ChatQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(name="chat_mode_is_known", condition=Q(approval_mode__in=list(Mode))),
            models.CheckConstraint(
                name="chat_floor_is_not_above_its_last_event", condition=Q(floor_seq__lte=models.F("last_seq"))
            ),
        ]
        indexes = [
            models.Index(fields=["owner", "-updated_at"], name="chat_by_owner_newest", condition=Q(deleted_at=None))
        ]

    def __str__(self) -> str:
        return self.title or "Untitled chat"

    def get_absolute_url(self) -> str:
        return f"/chats/{self.id}/"

    @staticmethod
    def parse_id(text: str) -> uuid.UUID | None:
        try:
            return uuid.UUID(text)
        except ValueError:
            return None
