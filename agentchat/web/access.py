"""Who may see a page, and how a service's refusal becomes a response."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AbstractBaseUser
from django.http import Http404, HttpRequest, HttpResponse

from agentchat.exceptions import NotFound

View = Callable[..., HttpResponse]


def page(view: View) -> View:
    """For signed-in people; what is not theirs is not found."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except NotFound as error:
            raise Http404(error.message) from error

    return login_required(guarded)


def fragment(view: View) -> View:
    """A piece of a page, fetched by its script: never cached, and 401 instead of the sign-in page."""
    inner = page(view)

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not request.user.is_authenticated:
            return HttpResponse("Sign in again.", status=401, content_type="text/plain")
        response = inner(request, *args, **kwargs)
        response["Cache-Control"] = "no-store"
        return response

    return guarded


def name_of(user: AbstractBaseUser | Any) -> str:
    return str(user.get_username())
