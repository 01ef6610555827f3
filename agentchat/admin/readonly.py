"""Pages that only show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

if TYPE_CHECKING:
    Admin = admin.ModelAdmin[Any]
    Inline = admin.TabularInline[Any, Any]
else:
    Admin, Inline = admin.ModelAdmin, admin.TabularInline


class _Refuses:
    """Nothing is added, changed or deleted, by superusers neither."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ReadOnly(_Refuses, Admin):
    """Superusers see all rows; other staff, if they were given the permission, those of their chats."""

    owner = "chat__owner"
    """Where the owner of the row's chat is."""
    actions = None
    show_full_result_count = False
    list_per_page = 50

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)
        return rows if _sees_all(request) else rows.filter(**{self.owner: request.user})

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        """All that are shown, so that Django makes no form of them."""
        fieldsets = self.get_fieldsets(request, obj)
        return [str(name) for _, options in fieldsets for name in options["fields"]]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if request.method == "POST":
            raise PermissionDenied
        return super().changelist_view(request, extra_context)


class ReadOnlyInline(_Refuses, Inline):
    extra = 0
    can_delete = False
    show_change_link = True

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return [str(name) for name in self.fields or ()]


def _sees_all(request: HttpRequest) -> bool:
    return bool(getattr(request.user, "is_superuser", False))
