from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("", include("agentchat.urls")),
]

handler403 = "agentchat.web.errors.forbidden"
handler404 = "agentchat.web.errors.not_found"
handler500 = "agentchat.web.errors.server_error"
handler400 = "agentchat.web.errors.bad_request"
