from __future__ import annotations

from django.urls import URLPattern, path
from drf_spectacular.views import SpectacularJSONAPIView

from agentchat.api import approvals, audit, chats, events, items
from agentchat.api.polling import long_poll

urlpatterns: list[URLPattern] = [
    path("chats/", chats.Chats.as_view()),
    path("chats/<uuid:chat_id>/", chats.ChatDetail.as_view()),
    path("chats/<uuid:chat_id>/messages/", chats.Messages.as_view()),
    path("chats/<uuid:chat_id>/snapshot/", chats.Snapshot.as_view()),
    path("chats/<uuid:chat_id>/events/", long_poll(events.Events)),
    path("runs/<uuid:run_id>/", chats.ShowRun.as_view()),
    path("runs/<uuid:run_id>/stop/", chats.StopRun.as_view()),
    path("items/<uuid:item_id>/", items.Item.as_view()),
    path("items/<uuid:item_id>/text/", items.Text.as_view()),
    path("approvals/", approvals.Approvals.as_view()),
    path("approvals/<uuid:item_id>/", long_poll(approvals.Approval)),
    path("approvals/<uuid:item_id>/decision/", approvals.Decision.as_view()),
    path("resolutions/", audit.Resolutions.as_view()),
    path("providers/", audit.Providers.as_view()),
    path("schema/", SpectacularJSONAPIView.as_view()),
]
