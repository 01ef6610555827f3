from __future__ import annotations

from typing import Any, NoReturn

from django.conf import settings
from django.db import models
from django.db.models import Q

from agentchat.events import Action, Cause, Scope, Via
from agentchat.models.chat import Chat
from agentchat.models.item import OutputItem
from agentchat.models.run import Run


class InsertOnly(models.Model):
    """A row that is written once. Triggers in the database refuse UPDATE and DELETE too (models/triggers.py)."""

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            self._refuse("changed")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        self._refuse("deleted")

    def _refuse(self, what: str) -> NoReturn:
        raise TypeError(f"A {type(self).__name__} cannot be {what}: it is part of the audit.")


class Resolution(InsertOnly):
    """What became of one request, decided once, by whoever was first. Only `services.approvals.decide` makes one.

    `prev_hash` and `hash` chain the resolutions of a chat (services/chain.py says over what).
    """

    item = models.OneToOneField(OutputItem, models.PROTECT, related_name="resolution")
    chat = models.ForeignKey(Chat, models.PROTECT, related_name="resolutions")
    action = models.CharField(max_length=20, choices=[(a, a) for a in Action])
    cause = models.CharField(max_length=20, choices=[(c, c) for c in Cause])
    tool = models.CharField(max_length=200)
    arguments = models.TextField(blank=True, default="")
    """The arguments as the person edited them, as exact JSON text; empty if they were not edited."""
    answers = models.JSONField(null=True, blank=True)
    reason = models.TextField(blank=True, default="")
    scope = models.CharField(max_length=20, choices=[(s, s) for s in Scope], default=Scope.ONCE)
    rule = models.CharField(max_length=200, blank=True, default="")
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, blank=True, related_name="resolutions"
    )
    decided_by_name = models.CharField(max_length=200, blank=True, default="")
    """The name at that time: people are renamed."""
    decided_via = models.CharField(max_length=20, choices=[(v, v) for v in Via])
    proof = models.CharField(max_length=200, blank=True, default="")
    """How the person proved who they are: `session:…`, `token:…`, `link:…`."""
    displayed_at = models.DateTimeField(null=True, blank=True)
    digest = models.CharField(max_length=64)
    """Of the arguments that were shown."""
    final_digest = models.CharField(max_length=64)
    """Of the arguments that may run: the same, unless they were edited."""
    decided_at = models.DateTimeField()
    prev_hash = models.CharField(max_length=64, blank=True, default="")
    hash = models.CharField(max_length=64)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["chat", "prev_hash"], name="resolution_chain_does_not_fork"),
            models.CheckConstraint(name="resolution_action_is_known", condition=Q(action__in=list(Action))),
            models.CheckConstraint(name="resolution_cause_is_known", condition=Q(cause__in=list(Cause))),
            models.CheckConstraint(
                name="resolution_only_a_person_a_rule_or_a_mode_approves",
                condition=Q(action=Action.REJECT) | Q(cause__in=[Cause.PERSON, Cause.RULE, Cause.MODE]),
            ),
            models.CheckConstraint(
                name="resolution_by_a_person_names_the_person",
                condition=~Q(cause=Cause.PERSON) | (Q(decided_by__isnull=False) & ~Q(decided_by_name="")),
            ),
        ]
        indexes = [models.Index(fields=["-decided_at"], name="resolution_newest")]

    def __str__(self) -> str:
        return f"{self.action} by {self.decided_by_name or self.cause}"


class Receipt(InsertOnly):
    """The waiting run took the decision. Unique, so a decision is used at most once."""

    resolution = models.OneToOneField(Resolution, models.PROTECT, related_name="receipt")
    run = models.ForeignKey(Run, models.PROTECT, null=True, blank=True, related_name="receipts")
    worker = models.CharField(max_length=200)
    delivered_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"receipt of resolution {self.resolution_id}"
