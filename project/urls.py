from __future__ import annotations

from django.contrib import admin
from django.templatetags.static import static
from django.urls import include, path
from django.views.generic.base import RedirectView

admin.site.site_header = admin.site.site_title = "agentchat: audit"
admin.site.index_title = "What was decided, and what it was about"


class Icon(RedirectView):
    """Browsers ask for it by this name on pages that name no other."""

    def get_redirect_url(self, *args: object, **kwargs: object) -> str:
        return static("agentchat/icon.svg")


urlpatterns = [
    path("favicon.ico", Icon.as_view()),
    path("admin/", admin.site.urls),
    path("", include("agentchat.urls")),
]

handler403 = "agentchat.web.errors.forbidden"
handler404 = "agentchat.web.errors.not_found"
handler500 = "agentchat.web.errors.server_error"
handler400 = "agentchat.web.errors.bad_request"
