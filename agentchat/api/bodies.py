"""What requests say: bodies, and what stands behind the `?`."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from agentchat.api.fields import Flag, Shape, Text
from agentchat.events import Action, Cause, Scope

MOST = 2**63 - 1
LONGEST_WAIT = 30
PAGE = 50
LARGEST_PAGE = 100


class ChatBody(Shape):
    provider = Text()
    workspace = Text(default="", help_text="A folder in which agents may work; empty: the first of them.")
    approval_mode = Text(default="ask", help_text="`ask`, `auto-edit` or `full`.")
    title = Text(default="")


class ChatChanges(Shape):
    title = Text(required=False)
    approval_mode = Text(required=False, help_text="`ask`, `auto-edit` or `full`.")
    pinned = Flag(required=False)
    archived = Flag(required=False)


class MessageBody(Shape):
    text = Text()


class DecisionBody(Shape):
    action = serializers.ChoiceField(list(Action))
    digest = Text(help_text="The digest of the arguments that were shown.", allow_blank=False)
    reason = Text(default="", allow_null=True)
    answers = serializers.JSONField(
        required=False,
        allow_null=True,
        help_text="By question id: a text, a list of labels, or `{choices, text}`.",
    )
    arguments = serializers.JSONField(
        required=False,
        allow_null=True,
        help_text="The arguments as they were edited: JSON, or a text that holds it.",
    )
    scope = serializers.ChoiceField(list(Scope), default=Scope.ONCE)
    displayed_at = serializers.DateTimeField(required=False, allow_null=True)


class EmptyBody(Shape):
    """Nothing has to be said."""


class PageQuery(Shape):
    cursor = Text(required=False, help_text="From `next` of the page before.")
    limit = serializers.IntegerField(default=PAGE, min_value=1, max_value=LARGEST_PAGE)


class ChatsQuery(PageQuery):
    q = Text(default="", help_text="Searches titles and what was said.")
    archived = serializers.ChoiceField(["0", "1"], default="0")


class BeforeQuery(Shape):
    before = serializers.IntegerField(
        required=False, min_value=0, max_value=MOST, help_text="Only messages whose position is below this."
    )


class WaitQuery(Shape):
    wait = serializers.IntegerField(
        default=0, min_value=0, max_value=LONGEST_WAIT, help_text="Seconds to wait for news before answering."
    )


class EventsQuery(WaitQuery):
    after = serializers.IntegerField(default=0, min_value=0, max_value=MOST, help_text="The last event that was seen.")


class ApprovalsQuery(PageQuery):
    state = serializers.ChoiceField(["pending", "decided"], required=False)
    tool = Text(required=False)
    chat = serializers.UUIDField(required=False)
    risk = Text(required=False, help_text="`low`, `medium`, `high` or `destructive`.")


class ResolutionsQuery(PageQuery):
    action = serializers.ChoiceField(list(Action), required=False)
    cause = serializers.ChoiceField(list(Cause), required=False)
    tool = Text(required=False)
    chat = serializers.UUIDField(required=False)
    decided_by = Text(required=False, help_text="The name of a person.")

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """`from` is no name that Python takes."""
        moment = serializers.DateTimeField
        return super().get_fields() | {
            "from": moment(required=False, help_text="Decided at this time or later."),
            "to": moment(required=False, help_text="Decided before this time."),
        }
