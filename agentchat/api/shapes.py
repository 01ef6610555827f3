"""What responses look like, for the OpenAPI document only: what is sent is made by agentchat.wire.

tests/api/test_schema.py holds the two against each other.
"""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import serializers as s

from agentchat.events import Action, Cause, ItemStatus, ItemType, Kind, Mode, RunStatus, Scope, Via

Doc = s.Serializer[Any]


def _maybe_text(**options: Any) -> s.CharField:
    return s.CharField(allow_null=True, **options)


def _maybe_time() -> s.DateTimeField:
    return s.DateTimeField(allow_null=True)


class Chat(Doc):
    id = s.UUIDField()
    title = s.CharField(allow_blank=True)
    provider = s.CharField()
    workspace = s.CharField()
    approval_mode = s.ChoiceField(list(Mode))
    pinned = s.BooleanField()
    archived = s.BooleanField()
    created_at = s.DateTimeField()
    updated_at = s.DateTimeField()


class Run(Doc):
    id = s.UUIDField()
    chat = s.UUIDField()
    message = s.UUIDField()
    provider = s.CharField()
    status = s.ChoiceField(list(RunStatus))
    stopping = s.BooleanField()
    error = s.CharField(allow_blank=True)
    created_at = s.DateTimeField()
    started_at = _maybe_time()
    ended_at = _maybe_time()


class PlacedRun(Doc):
    """A run, with its place in the line."""

    run = Run()
    place = s.IntegerField(
        allow_null=True, help_text="1 is next; null if it does not wait, or if its chat is at work on something else."
    )


class Receipt(Doc):
    """The waiting run took the decision; a decision is used at most once."""

    delivered_at = s.DateTimeField()
    run = s.UUIDField(allow_null=True)


class Resolution(Doc):
    """What became of a request, decided once, by whoever was first."""

    id = s.IntegerField()
    item = s.UUIDField()
    action = s.ChoiceField(list(Action))
    cause = s.ChoiceField(list(Cause))
    tool = s.CharField()
    arguments = _maybe_text(help_text="The arguments as the person edited them, as JSON text.")
    answers = s.JSONField()
    reason = s.CharField(allow_blank=True)
    scope = s.ChoiceField(list(Scope))
    rule = s.CharField(allow_blank=True)
    decided_by = _maybe_text()
    decided_via = s.ChoiceField(list(Via))
    digest = s.CharField(help_text="Of the arguments that were shown.")
    final_digest = s.CharField(help_text="Of the arguments that may run.")
    displayed_at = _maybe_time()
    decided_at = s.DateTimeField()
    hash = s.CharField(help_text="Chains the resolutions of a chat.")
    receipt = Receipt(allow_null=True)


class AuditRow(Resolution):
    """A resolution with what the chain needs."""

    chat = s.UUIDField()
    proof = s.CharField(allow_blank=True)
    prev_hash = s.CharField(allow_blank=True)


class Cut(Doc):
    """Where code points are missing from the text of an output, and how many."""

    head = s.IntegerField()
    omitted = s.IntegerField()


class Item(Doc):
    """A piece of a message, shaped as an OpenAI Responses item. The type says which fields there are."""

    id = s.UUIDField()
    message = s.UUIDField()
    position = s.IntegerField()
    type = s.ChoiceField(list(ItemType))
    status = s.ChoiceField(list(ItemStatus))
    version = s.IntegerField()
    meta = s.DictField()
    created_at = s.DateTimeField()
    ended_at = _maybe_time()
    role = s.CharField(required=False)
    summary = s.ListField(required=False)
    content = s.ListField(child=s.DictField(), required=False)
    html = s.CharField(required=False, allow_blank=True)
    html_end = s.IntegerField(required=False)
    blocks = s.IntegerField(required=False)
    call = s.UUIDField(required=False, allow_null=True)
    call_id = s.CharField(required=False, allow_blank=True)
    parent_call_id = s.CharField(required=False, allow_blank=True)
    name = s.CharField(required=False, allow_blank=True)
    arguments = s.CharField(required=False, allow_blank=True, help_text="The exact JSON text.")
    arguments_bytes = s.IntegerField(required=False, help_text="Of the whole, where `arguments` is cut.")
    digest = s.CharField(required=False, allow_blank=True)
    request = s.DictField(required=False, allow_null=True)
    expires_at = s.DateTimeField(required=False, allow_null=True)
    resolution = Resolution(required=False, allow_null=True)
    output = s.ListField(child=s.DictField(), required=False)
    bytes = s.IntegerField(required=False)
    cut = Cut(required=False, allow_null=True)
    text = s.CharField(required=False, allow_blank=True)


class Message(Doc):
    """One turn of a person or of an agent."""

    id = s.UUIDField()
    position = s.IntegerField()
    parent = s.UUIDField(allow_null=True)  # type: ignore[assignment]
    role = s.ChoiceField(["user", "assistant"])
    author = _maybe_text()
    text = s.CharField(allow_blank=True)
    usage = s.JSONField()
    error = s.CharField(allow_blank=True)
    created_at = s.DateTimeField()
    ended_at = _maybe_time()
    items = Item(many=True)
    run = Run(allow_null=True)


class Posted(Doc):
    message = Message()
    run = Run()


class Snapshot(Doc):
    """A chat as it was right after the event `cursor`."""

    cursor = s.IntegerField()
    chat = Chat()
    messages = Message(many=True)
    more = s.BooleanField()


class Event(Doc):
    """More fields follow from the kind."""

    seq = s.IntegerField()
    kind = s.ChoiceField(list(Kind))


class Events(Doc):
    cursor = s.IntegerField(help_text="The `after` of the next request.")
    events = Event(many=True)


class Approval(Doc):
    id = s.UUIDField()
    item = Item()
    chat = Chat()
    resolution = Resolution(allow_null=True)


class Options(Doc):
    """What this request can be decided with."""

    actions = s.ListField(child=s.CharField())
    scopes = s.ListField(child=s.CharField())


class ApprovalDetail(Approval):
    request = s.DictField()
    digest = s.CharField(help_text="Send it with the decision.")
    options = Options()
    delivery = Receipt(allow_null=True)


class Decided(Doc):
    resolution = Resolution()


class Provider(Doc):
    key = s.CharField()
    label = s.CharField()  # type: ignore[assignment]
    about = s.CharField(allow_blank=True)
    ready = s.BooleanField()
    detail = s.CharField(allow_blank=True)
    resumable = s.BooleanField()
    version = s.CharField(allow_blank=True)


class Error(Doc):
    """Every error. Some have more: `errors` by field, or the `resolution` that stands."""

    code = s.CharField()
    detail = s.CharField()
    errors = s.DictField(required=False)  # type: ignore[assignment]
    resolution = Resolution(required=False)


class Chats(Doc):
    results = Chat(many=True)
    next = s.URLField(allow_null=True)


class Messages(Doc):
    results = Message(many=True)
    next = s.URLField(allow_null=True)


class Approvals(Doc):
    results = Approval(many=True)
    next = s.URLField(allow_null=True)


class AuditRows(Doc):
    results = AuditRow(many=True)
    next = s.URLField(allow_null=True)


KEY = OpenApiParameter(
    "Idempotency-Key",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="At most 200 characters. Repeating the request with the same key gives the stored answer.",
)
RANGE = OpenApiParameter(
    "Range", OpenApiTypes.STR, OpenApiParameter.HEADER, description="One range of bytes: `bytes=0-99`."
)
MEANINGS = {
    400: "The body is not JSON.",
    401: "Nobody is signed in.",
    403: "The CSRF token is missing or wrong.",
    404: "There is nothing here for this person.",
    409: "It conflicts with what is there.",
    410: "It is too late.",
    416: "The text has no such bytes.",
    422: "The request does not make sense.",
}


def answers(status: int | tuple[int, str], shape: Any, *errors: int) -> dict[Any, Any]:
    """The responses of a view: this one, and errors, all of one shape. 401 comes by itself."""
    return {status: shape} | {
        error: OpenApiResponse(Error, description=MEANINGS[error]) for error in sorted({401, *errors})
    }
