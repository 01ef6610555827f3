"""The sign-in link of the embedded default: works once, for a short time, and only from this machine."""

from __future__ import annotations

import ipaddress
from typing import Any

from django.contrib.auth import get_user_model
from django.core import signing
from django.http import HttpRequest
from django.utils import timezone

from agentchat.exceptions import NotFound

SALT = "agentchat.signin"
MAX_AGE = 24 * 3600
OWNER = "owner"


def owner() -> Any:
    """The person who owns this server: made, as a superuser without a password, if there is none."""
    users = get_user_model().objects
    found = users.filter(is_superuser=True, is_active=True).order_by("pk").first()
    return found or users.create_superuser(username=OWNER, email="", password=None)


def token(user: Any) -> str:
    """Bound to the person's last sign-in, so that using it, or any other sign-in, makes it useless."""
    return signing.dumps([user.pk, _stamp(user.last_login)], salt=SALT)


def redeem(token: str, request: HttpRequest) -> Any:
    """The person, once. Raises NotFound if the link is used, old, forged, or opened from another machine."""
    if not is_local(request):
        raise NotFound("This link works only in a browser on the machine on which agentchat runs.")
    try:
        pk, stamp = signing.loads(token, salt=SALT, max_age=MAX_AGE)
    except (signing.BadSignature, ValueError, TypeError) as error:
        raise NotFound("This link is not valid, or too old. Start the server again to get a new one.") from error
    user = get_user_model().objects.filter(pk=pk, is_active=True).first()
    if user is None or _stamp(user.last_login) != stamp or not _use(user):
        raise NotFound("This link was used before. Start the server again to get a new one.")
    return user


def _use(user: Any) -> bool:
    """Compare and swap: of two who open the link in the same instant one gets in."""
    same = get_user_model().objects.filter(pk=user.pk, last_login=user.last_login)
    if user.last_login is None:
        same = get_user_model().objects.filter(pk=user.pk, last_login__isnull=True)
    return bool(same.update(last_login=timezone.now()) == 1)


def _stamp(moment: Any) -> str:
    return moment.isoformat() if moment else ""


def is_local(request: HttpRequest) -> bool:
    """Whether the request comes straight from this machine; what a proxy passes on does not."""
    if "HTTP_X_FORWARDED_FOR" in request.META or "HTTP_FORWARDED" in request.META:
        return False
    try:
        return ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False
