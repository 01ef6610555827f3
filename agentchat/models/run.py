from __future__ import annotations

from django.db import models
from django.db.models import Q

from agentchat.events import ACTIVE, RunStatus
from agentchat.models import ids
from agentchat.models.chat import Chat
from agentchat.models.message import Message


class RunQuerySet(models.QuerySet["Run"]):
    def active(self) -> RunQuerySet:
        return self.filter(status__in=ACTIVE)

    def parked(self) -> RunQuerySet:
        """They wait for a decision, and no worker holds them meanwhile."""
        return self.filter(status=RunStatus.WAITING, worker="")

    def held(self) -> RunQuerySet:
        return self.active().exclude(worker="")

    def queued(self) -> RunQuerySet:
        return self.filter(status=RunStatus.QUEUED)


class Run(models.Model):
    """An agent at work on one message. `message` is the assistant's message that the run writes."""

    id = models.UUIDField(primary_key=True, default=ids.ordered, editable=False)
    chat = models.ForeignKey(Chat, models.PROTECT, related_name="runs")
    message = models.OneToOneField(Message, models.PROTECT, related_name="run")
    provider = models.CharField(max_length=50)
    status = models.CharField(max_length=20, choices=[(s, s) for s in RunStatus], default=RunStatus.QUEUED)
    worker = models.CharField(max_length=200, blank=True, default="")
    attempt = models.PositiveIntegerField(default=0)
    fence = models.BigIntegerField(default=0, db_default=0)
    """The chat's, when the run was taken last."""
    resumable = models.BooleanField(default=False, db_default=False)
    """Another process could go on where this run asked."""
    priority = models.SmallIntegerField(default=0, db_default=0)
    """Higher goes first: somebody decided, and the agent is to go on."""
    error = models.TextField(blank=True, default="")
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    stop_requested_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = RunQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["chat"], condition=Q(status__in=ACTIVE), name="run_is_the_only_active_one_of_its_chat"
            ),
            models.CheckConstraint(name="run_status_is_known", condition=Q(status__in=list(RunStatus))),
        ]
        indexes = [
            models.Index(
                fields=["created_at"],
                name="run_not_ended",
                condition=Q(status__in=[RunStatus.QUEUED, *ACTIVE]),
            )
        ]

    def __str__(self) -> str:
        return f"{self.provider} run {self.id}"
