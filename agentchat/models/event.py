from __future__ import annotations

from django.db import models

from agentchat.models.chat import Chat


class Event(models.Model):
    """One line of a chat's journal. `body` is the JSON of the event without its `seq`, encoded once for everybody.

    A replay buffer, not the truth: the rows of the other tables say the same; old events are dropped.
    """

    pk = models.CompositePrimaryKey("chat_id", "seq")
    chat = models.ForeignKey(Chat, models.CASCADE, related_name="events", db_index=False)
    seq = models.BigIntegerField()
    kind = models.CharField(max_length=40)
    body = models.TextField()
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.kind} {self.seq}"
