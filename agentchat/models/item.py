from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Q

from agentchat import conf
from agentchat.events import ItemStatus, ItemType
from agentchat.models import ids
from agentchat.models.message import Message


class OutputItemQuerySet(models.QuerySet["OutputItem"]):
    def requests(self) -> OutputItemQuerySet:
        return self.filter(request__isnull=False)

    def pending(self) -> OutputItemQuerySet:
        """Requests that nobody has decided. The status narrows the search to the partial index; the truth is the
        missing Resolution."""
        return self.requests().filter(
            status=ItemStatus.PENDING, resolution__isnull=True, message__chat__deleted_at=None
        )

    def visible_to(self, user: Any) -> OutputItemQuerySet:
        return self.filter(message__chat__owner=user, message__chat__deleted_at=None)


class OutputItem(models.Model):
    """A piece of an agent's message: text, reasoning, a call, its output, a plan, a notice. A call with a `request`
    is an approval request: it is pending as long as no Resolution points at it."""

    id = models.UUIDField(primary_key=True, default=ids.random, editable=False)
    message = models.ForeignKey(Message, models.PROTECT, related_name="items")
    position = models.PositiveIntegerField()
    type = models.CharField(max_length=30, choices=[(t, t) for t in ItemType])
    call_id = models.CharField(max_length=conf.CALL_ID_CHARS, blank=True, default="")
    parent_call_id = models.CharField(max_length=conf.CALL_ID_CHARS, blank=True, default="")
    output_of = models.ForeignKey("self", models.PROTECT, null=True, blank=True, related_name="outputs")
    """Of an output: the call that it belongs to, since a call id may repeat within a message."""
    name = models.CharField(max_length=conf.NAME_CHARS, blank=True, default="")
    text = models.TextField(blank=True, default="")
    html = models.TextField(blank=True, default="")
    """The finished blocks of a text, rendered and sanitised."""
    html_end = models.PositiveIntegerField(default=0)
    """How many code points of `text` the blocks cover."""
    blocks = models.PositiveIntegerField(default=0)
    arguments = models.TextField(blank=True, default="")
    """The exact JSON text."""
    digest = models.CharField(max_length=64, blank=True, default="")
    status = models.CharField(max_length=20, choices=[(s, s) for s in ItemStatus], default=ItemStatus.IN_PROGRESS)
    request = models.JSONField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    native = models.JSONField(null=True, blank=True)
    meta = models.JSONField(default=dict, blank=True)
    """`exit_code`, `seconds`, `level`, `steps`: small facts for people."""
    version = models.PositiveIntegerField(default=1)
    checkpoint_seq = models.BigIntegerField(default=0)
    """The event up to which `text`, `html`, `html_end` and `blocks` of this row are true."""
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = OutputItemQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["message", "position"], name="item_position_is_unique_in_its_message"),
            models.CheckConstraint(name="item_type_is_known", condition=Q(type__in=list(ItemType))),
            models.CheckConstraint(name="item_status_is_known", condition=Q(status__in=list(ItemStatus))),
            models.CheckConstraint(
                name="item_that_asks_is_a_call_with_a_digest",
                condition=Q(request__isnull=True) | (Q(type=ItemType.CALL) & ~Q(digest="")),
            ),
            models.CheckConstraint(
                name="item_is_pending_only_if_it_asks",
                condition=~Q(status=ItemStatus.PENDING) | Q(request__isnull=False),
            ),
        ]
        indexes = [
            models.Index(fields=["created_at"], name="item_pending", condition=Q(status=ItemStatus.PENDING)),
            models.Index(
                fields=["expires_at"],
                name="item_expires",
                condition=Q(status=ItemStatus.PENDING, expires_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.name}".strip()


class PendingApproval(OutputItem):
    """The requests that wait, as the admin lists them."""

    class Meta:
        proxy = True
