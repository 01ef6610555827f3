from __future__ import annotations

from django.urls import include, path

urlpatterns = [
    path("api/v1/", include("agentchat.api.urls")),
    path("", include("agentchat.web.urls")),
]
