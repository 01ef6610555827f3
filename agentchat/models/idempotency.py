from __future__ import annotations

from django.conf import settings
from django.db import models


class IdempotencyKey(models.Model):
    """The answer to an unsafe request that named a key, so that repeating the request changes nothing more."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    key = models.CharField(max_length=200)
    path = models.CharField(max_length=300)
    digest = models.CharField(max_length=64)
    """SHA-256 of the request's body: the same key with another body is refused."""
    status = models.PositiveSmallIntegerField()
    body = models.TextField()
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="idempotency_key_is_used_once")]
        indexes = [models.Index(fields=["created_at"], name="idempotency_oldest")]

    def __str__(self) -> str:
        return f"{self.path} {self.key}"
