"""Signing in and out."""

from __future__ import annotations

from django.contrib.auth import login
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from agentchat.exceptions import NotFound
from agentchat.services import signin

BACKEND = "django.contrib.auth.backends.ModelBackend"


class SignIn(LoginView):
    template_name = "agentchat/sign-in.html"
    redirect_authenticated_user = True


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def link(request: HttpRequest, token: str) -> HttpResponse:
    """A link that signs in. Looking at it (as mail scanners do) uses nothing up; the button does."""
    if request.method != "POST":
        return render(request, "agentchat/sign-in-link.html")
    try:
        user = signin.redeem(token, request)
    except NotFound as error:
        return render(request, "agentchat/sign-in-link.html", {"problem": error.message}, status=404)
    login(request, user, backend=BACKEND)
    return redirect("agentchat:chats")
