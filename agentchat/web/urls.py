from __future__ import annotations

from django.contrib.auth.views import LogoutView
from django.urls import path

from agentchat.web import accounts, fragments, health, pages

app_name = "agentchat"
urlpatterns = [
    path("", pages.chats, name="chats"),
    path("chats/new/", pages.new_chat, name="new-chat"),
    path("chats/<uuid:chat_id>/", pages.chat, name="chat"),
    path("chats/<uuid:chat_id>/transcript/", fragments.whole, name="transcript"),
    path("chats/<uuid:chat_id>/dock/", fragments.dock, name="dock"),
    path("chats/<uuid:chat_id>/messages/<uuid:message_id>/fragment/", fragments.message, name="message"),
    path("chats/<uuid:chat_id>/items/<uuid:item_id>/fragment/", fragments.item, name="item"),
    path("side/", fragments.side, name="side"),
    path("approvals/", pages.approvals, name="approvals"),
    path("approvals/list/", fragments.approvals, name="approvals-list"),
    path("settings/", pages.settings, name="settings"),
    path("settings/look/", pages.look, name="look"),
    path("accounts/login/", accounts.SignIn.as_view(), name="login"),
    path("accounts/logout/", LogoutView.as_view(next_page="agentchat:login"), name="logout"),
    path("accounts/link/<str:token>/", accounts.link, name="link"),
    path("healthz", health.alive, name="healthz"),
    path("readyz", health.ready, name="readyz"),
]
