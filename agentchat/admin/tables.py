"""Chats, messages, items, runs and receipts, as they stand in the database."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.db.models.functions import Left, Length
from django.http import HttpRequest
from django.utils.safestring import SafeString

from agentchat.admin import shown
from agentchat.admin.readonly import ReadOnly, ReadOnlyInline
from agentchat.models import Chat, Message, OutputItem, Receipt, Run

LONGEST = 20_000
"""How many characters of a text a page shows; the API has all of them."""


class RunsOfChat(ReadOnlyInline):
    model = Run
    fields = ("status", "provider", "worker", "error", "created_at", "started_at", "ended_at")


@admin.register(Chat)
class ChatAdmin(ReadOnly):
    owner = "owner"
    list_display = (
        "title_or_not",
        "owner",
        "provider",
        "approval_mode",
        "updated_at",
        "archived_at",
        "deleted_at",
    )
    list_filter = (
        "provider",
        "approval_mode",
        "pinned",
        "updated_at",
        ("deleted_at", admin.EmptyFieldListFilter),
    )
    list_select_related = ("owner",)
    search_fields = ("title", "owner__username", "workspace", "id")
    ordering = ("-updated_at",)
    inlines = [RunsOfChat]
    fields = (
        "id", "title", "owner", "provider", "workspace", "approval_mode", "pinned", "created_at",
        "updated_at", "archived_at", "deleted_at", "last_seq", "floor_seq",
    )  # fmt: skip

    @admin.display(description="Chat", ordering="title")
    def title_or_not(self, row: Chat) -> str:
        return str(row)


class ItemsOfMessage(ReadOnlyInline):
    model = OutputItem
    fields = ("position", "type", "name", "status", "call_id", "created_at", "ended_at")
    ordering = ("position",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        return rows.defer("text", "html", "arguments", "native")


@admin.register(Message)
class MessageAdmin(ReadOnly):
    list_display = ("created_at", "chat", "role", "author", "what", "ended_at", "removed_at")
    list_filter = ("role", "created_at", ("error", admin.EmptyFieldListFilter))
    list_select_related = ("chat", "author")
    search_fields = ("text", "chat__title", "chat__id", "id")
    ordering = ("-created_at",)
    inlines = [ItemsOfMessage]
    owner = "chat__owner"
    fields = (
        "id", "chat", "parent", "position", "role", "author", "said", "usage", "meta", "error", "created_at",
        "ended_at", "removed_at",
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request).defer("text")
        found: QuerySet[Any] = rows.annotate(start=Left("text", LONGEST), chars=Length("text"))
        return found

    @admin.display(description="Text")
    def what(self, row: Any) -> SafeString:
        return shown.short(row.start)

    @admin.display(description="Text")
    def said(self, row: Any) -> SafeString:
        return shown.block(row.start + _rest(row.chars))


@admin.register(OutputItem)
class OutputItemAdmin(ReadOnly):
    owner = "message__chat__owner"
    list_display = ("created_at", "chat", "type", "name", "status", "what", "ended_at")
    list_filter = ("type", "status", "created_at", ("request", admin.EmptyFieldListFilter))
    list_select_related = ("message__chat",)
    search_fields = ("name", "call_id", "digest", "id")
    ordering = ("-created_at",)
    fields = (
        "id", "message", "position", "type", "status", "name", "call_id", "parent_call_id", "output_of",
        "content", "exact_arguments", "digest", "asked", "expires_at", "meta", "version", "created_at",
        "ended_at",
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request).defer("text", "html", "arguments", "native")
        found: QuerySet[Any] = rows.annotate(
            start=Left("text", LONGEST), chars=Length("text"), arguments_start=Left("arguments", LONGEST)
        )
        return found

    @admin.display(description="Chat", ordering="message__chat__title")
    def chat(self, row: OutputItem) -> str:
        return str(row.message.chat)

    @admin.display(description="What")
    def what(self, row: Any) -> SafeString:
        return shown.short(row.start or row.arguments_start)

    @admin.display(description="Text")
    def content(self, row: Any) -> SafeString:
        return shown.block(row.start + _rest(row.chars))

    @admin.display(description="Arguments")
    def exact_arguments(self, row: OutputItem) -> SafeString:
        return shown.pretty(row.arguments)

    @admin.display(description="Request")
    def asked(self, row: OutputItem) -> SafeString:
        return shown.pretty(row.request) if row.request else SafeString(shown.NOTHING)


@admin.register(Run)
class RunAdmin(ReadOnly):
    list_display = ("created_at", "chat", "provider", "status", "worker", "started_at", "ended_at", "what")
    list_filter = ("status", "provider", "created_at", ("error", admin.EmptyFieldListFilter))
    list_select_related = ("chat",)
    search_fields = ("chat__title", "worker", "error", "id")
    ordering = ("-created_at",)
    fields = (
        "id", "chat", "message", "provider", "status", "worker", "attempt", "error", "created_at",
        "started_at", "heartbeat_at", "stop_requested_at", "ended_at",
    )  # fmt: skip

    @admin.display(description="Error")
    def what(self, row: Run) -> SafeString:
        return shown.short(row.error)


@admin.register(Receipt)
class ReceiptAdmin(ReadOnly):
    owner = "resolution__chat__owner"
    list_display = ("delivered_at", "resolution", "run", "worker")
    list_filter = ("delivered_at", "worker")
    list_select_related = ("resolution", "run")
    search_fields = ("worker", "resolution__tool", "resolution__decided_by_name")
    ordering = ("-delivered_at",)
    fields = ("resolution", "run", "worker", "delivered_at")


def _rest(chars: int) -> str:
    return f"\n[{chars - LONGEST:,} more characters are not shown here]" if chars > LONGEST else ""
