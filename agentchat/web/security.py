"""The headers that every response carries, whoever made it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponseBase

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'; manifest-src 'self'; connect-src 'self'"
)
PERMISSIONS = "camera=(), microphone=(), geolocation=(), payment=(), usb=()"


class SecurityHeaders:
    """Content-Security-Policy without any 'unsafe-inline', also for the admin and for errors."""

    async_capable = True
    sync_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase | Awaitable[HttpResponseBase]]) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        response = self.get_response(request)
        if isinstance(response, HttpResponseBase):
            return add_headers(request, response)
        return self._later(request, response)

    async def _later(self, request: HttpRequest, response: Awaitable[HttpResponseBase]) -> HttpResponseBase:
        return add_headers(request, await response)


def add_headers(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    response.headers.setdefault("Content-Security-Policy", f"{POLICY}{own_socket(request)}")
    response.headers.setdefault("Permissions-Policy", PERMISSIONS)
    return response


def own_socket(request: HttpRequest) -> str:
    """The socket of this very host: older Safari does not read 'self' as covering it."""
    try:
        host = request.get_host()
    except DisallowedHost:
        return ""
    return f" {'wss' if request.is_secure() else 'ws'}://{host}"
