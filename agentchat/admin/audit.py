"""The audit: who decided what exactly, when, by which door, how that was proven, and what came of it."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce, Left
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agentchat.admin import shown
from agentchat.admin.readonly import ReadOnly
from agentchat.models import Chat, Resolution
from agentchat.services import chain

SHORT = 200
_HEAVY = ("item__text", "item__html", "item__native", "item__arguments")


@admin.register(Resolution)
class ResolutionAdmin(ReadOnly):
    list_display = (
        "decided_at", "chain_state", "action", "cause", "tool", "what", "person", "decided_via", "outcome",
    )  # fmt: skip
    list_filter = (
        "action",
        "cause",
        "tool",
        ("decided_by_name", admin.AllValuesFieldListFilter),
        ("decided_at", admin.DateFieldListFilter),
    )
    date_hierarchy = "decided_at"
    ordering = ("-pk",)
    search_fields = ("tool", "reason", "decided_by_name", "arguments", "item__arguments")
    search_help_text = "Searches tool, reason, person and arguments; or give the id of a request or of a chat."
    fieldsets = (
        ("Who", {"fields": ("person", "decided_by", "decided_via", "proof")}),
        ("What exactly", {"fields": ("action", "cause", "rule", "scope", "tool", "reason", "given_answers")}),
        ("The arguments", {"fields": ("request_shown", "arguments_shown", "arguments_edited")}),
        ("When", {"fields": ("displayed_at", "decided_at")}),
        ("What came of it", {"fields": ("outcome", "delivered", "item", "chat")}),
        ("Proof", {"fields": ("digest", "final_digest", "prev_hash", "hash", "chain_state", "whole_chain")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        before = Resolution.objects.filter(chat=OuterRef("chat"), pk__lt=OuterRef("pk")).order_by("-pk")
        rows = super().get_queryset(request).select_related("item", "chat", "receipt").defer(*_HEAVY)
        found: QuerySet[Any] = rows.annotate(
            hash_before=Coalesce(Subquery(before.values("hash")[:1]), Value("")),
            arguments_start=Left("item__arguments", SHORT),
        )
        return found

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        if (id := Chat.parse_id(search_term.strip())) is not None:
            return queryset.filter(item=id) | queryset.filter(chat=id), False
        return super().get_search_results(request, queryset, search_term)

    @admin.display(description="What exactly")
    def what(self, row: Any) -> SafeString:
        return shown.short(row.arguments or row.arguments_start)

    @admin.display(description="Person", ordering="decided_by_name")
    def person(self, row: Resolution) -> str:
        return row.decided_by_name or f"nobody ({row.cause})"

    @admin.display(description="Outcome")
    def outcome(self, row: Resolution) -> str:
        """What became of the call; the receipt says that the decision was taken."""
        receipt = getattr(row, "receipt", None)
        return f"{row.item.status}, {'taken by the agent' if receipt else 'not taken'}"

    @admin.display(description="Chain")
    def chain_state(self, row: Any) -> str:
        """Of this row alone: it is what was hashed, and follows the row before it."""
        return "✓" if row.prev_hash == row.hash_before and row.hash == chain.hash_of(row) else "✗ broken"

    @admin.display(description="Chain of this chat")
    def whole_chain(self, row: Resolution) -> str:
        found = chain.verify(row.chat_id)
        return f"✗ broken at resolution {found.resolution}: {found.problem}" if found else "✓ every row is as written"

    @admin.display(description="Answers")
    def given_answers(self, row: Resolution) -> SafeString:
        return shown.pretty(row.answers) if row.answers is not None else SafeString(shown.NOTHING)

    @admin.display(description="Request")
    def request_shown(self, row: Resolution) -> SafeString:
        return shown.pretty(row.item.request)

    @admin.display(description="Arguments as shown")
    def arguments_shown(self, row: Resolution) -> SafeString:
        return _exactly(row.item.arguments)

    @admin.display(description="Arguments as edited")
    def arguments_edited(self, row: Resolution) -> SafeString:
        return _exactly(row.arguments) if row.arguments else SafeString("not edited")

    @admin.display(description="Receipt")
    def delivered(self, row: Resolution) -> str:
        receipt = getattr(row, "receipt", None)
        if receipt is None:
            return "none: no run has taken this decision"
        return f"taken at {receipt.delivered_at:%Y-%m-%d %H:%M:%S} UTC by {receipt.worker}, run {receipt.run_id}"


def _exactly(arguments: str) -> SafeString:
    """For people, and byte by byte."""
    return format_html(
        "{}<details><summary>Exact text</summary>{}</details>",
        shown.pretty(arguments),
        shown.block(arguments),
    )
