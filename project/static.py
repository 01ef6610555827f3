"""Static files: how they are served without another server, and how they are named in production."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.storage import CompressedManifestStaticFilesStorage


class StaticFiles(WhiteNoiseMiddleware):
    """WhiteNoise in an asynchronous chain. One middleware that is only synchronous would put every view, also one that
    waits for half a minute, into a thread of its own."""

    async_capable = True
    sync_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any], **options: Any) -> None:
        super().__init__(get_response, **options)
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        if iscoroutinefunction(self):
            return self._later(request)
        answer: HttpResponseBase = super().__call__(request)
        return answer

    async def _later(self, request: HttpRequest) -> HttpResponseBase:
        find = self.find_file if self.autorefresh else self.files.get
        if (file := find(request.path_info)) is None:
            response: HttpResponseBase = await self.get_response(request)
            return response
        return await asyncio.to_thread(self._whole, file, request)

    def _whole(self, file: Any, request: HttpRequest) -> HttpResponse:
        """Read at once: the files are small, and a stream would be read through a thread piece by piece."""
        streamed = self.serve(file, request)
        body = b"".join(streamed.streaming_content) if streamed.streaming else streamed.content
        streamed.close()
        return HttpResponse(body, status=streamed.status_code, headers=dict(streamed.items()))


class ModuleManifestStorage(CompressedManifestStaticFilesStorage):
    """Hashed names, also inside `import` statements of ES modules (Django leaves these out unless asked)."""

    support_js_module_import_aggregation = True
