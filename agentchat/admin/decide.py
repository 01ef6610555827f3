"""Pending approvals: the exact request, and a form to decide it. The services decide; this is a door."""

from __future__ import annotations

import hashlib
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString

from agentchat.admin import shown
from agentchat.admin.forms import DecisionForm
from agentchat.admin.readonly import ReadOnly
from agentchat.events import Via
from agentchat.exceptions import AgentChatError, Undecidable
from agentchat.models import Chat, PendingApproval
from agentchat.services import approvals
from agentchat.services.approvals import Decision

LIST = "admin:agentchat_pendingapproval_changelist"
TEMPLATE = "admin/agentchat/pendingapproval/decide.html"


@admin.register(PendingApproval)
class PendingApprovalAdmin(ReadOnly):
    """For all staff, but only of their own chats: nobody decides for somebody else."""

    list_display = ("created_at", "chat", "name", "what", "risk", "expires_at")
    list_filter = ("name", "created_at")
    list_select_related = ("message__chat",)
    search_fields = ("name", "arguments")
    ordering = ("created_at",)
    fields = ("name",)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_active and getattr(request.user, "is_staff", False))

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = PendingApproval.objects.visible_to(request.user).pending()
        return rows.select_related("message__chat").defer("text", "html", "native").order_by("created_at")

    @admin.display(description="Chat")
    def chat(self, row: PendingApproval) -> str:
        return str(row.message.chat)

    @admin.display(description="What exactly")
    def what(self, row: PendingApproval) -> SafeString:
        return shown.short(row.arguments)

    @admin.display(description="Risk")
    def risk(self, row: PendingApproval) -> str:
        risk = (row.request or {}).get("risk")
        return str(risk.get("level", "")) if isinstance(risk, dict) else ""

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        if not self.has_view_permission(request):
            return super().change_view(request, object_id, form_url, extra_context)  # which refuses
        item_id = _id(object_id)
        if request.method == "POST" and (done := self._decide(request, item_id)):
            return done
        row = self.get_queryset(request).filter(pk=item_id).first()
        if row is None:
            messages.warning(request, "This request does not wait for you, or no longer.")
            return HttpResponseRedirect(reverse(LIST))
        return self._page(request, row)

    def _decide(self, request: HttpRequest, item_id: UUID) -> HttpResponse | None:
        """None: show the form again, with what was wrong."""
        row = PendingApproval.objects.visible_to(request.user).requests().filter(pk=item_id).first()
        if row is None:
            raise Http404
        form = DecisionForm(row, request.POST)
        if not form.is_valid():
            messages.error(request, " ".join(form.problems()))
            return None
        try:
            decided = approvals.decide(
                request.user, item_id, Decision(**form.decision()), via=Via.ADMIN, proof=_proof(request)
            )
        except AgentChatError as error:
            return _refused(request, error)
        messages.success(request, f"Recorded: {decided.action}, {decided.tool}.")
        return HttpResponseRedirect(reverse(LIST))

    def _page(self, request: HttpRequest, row: PendingApproval) -> HttpResponse:
        data = request.POST.copy() if request.method == "POST" else None
        if data is not None:  # what is shown now is what may be decided now
            data["digest"], data["displayed_at"] = row.digest, timezone.now().isoformat()
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": f"Let it use {row.name}?",
            "row": row,
            "arguments": shown.pretty(row.arguments),
            "exact": shown.block(row.arguments),
            "asked": shown.pretty(row.request),
            "form": DecisionForm(row, data),
        }
        return TemplateResponse(request, TEMPLATE, context)


def _refused(request: HttpRequest, error: AgentChatError) -> HttpResponse | None:
    messages.error(request, error.message + _winner(error))
    return HttpResponseRedirect(reverse(LIST)) if isinstance(error, Undecidable) else None


def _winner(error: AgentChatError) -> str:
    resolution = error.context.get("resolution")
    if not resolution:
        return ""
    who = resolution["decided_by"] or f"nobody ({resolution['cause']})"
    return f" What stands: {resolution['action']} by {who}, {resolution['decided_at']}."


def _id(object_id: str) -> UUID:
    found = Chat.parse_id(object_id)
    if found is None:
        raise Http404
    return found


def _proof(request: HttpRequest) -> str:
    """Names the session without giving it away."""
    key = request.session.session_key or ""
    return f"session:{hashlib.sha256(key.encode()).hexdigest()[:16]}"
