"""Long polls: a view that looks, and looks again when something happened, until its time is over.

Between two looks no database connection is held.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from asgiref.sync import sync_to_async
from django.db import close_old_connections, connection
from django.http import HttpRequest, HttpResponseBase
from rest_framework.response import Response

from agentchat import conf
from agentchat.api.base import View
from agentchat.journal import process

LOOK_EVERY = 0.5
"""In a process without a hub nobody wakes us."""
TOPIC, SECONDS = "waits_for", "waits_seconds"


def not_yet(response: Response, topic: object, seconds: float) -> Response:
    """Mark a response as one that should rather wait for something to happen on this topic."""
    if seconds > 0:
        setattr(response, TOPIC, str(topic))
        setattr(response, SECONDS, seconds)
    return response


def long_poll(view: type[View]) -> Callable[..., Any]:
    """A view whose `get` marks what is not final with `not_yet`, as an async view."""
    look = view.as_view()

    async def polled(request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        response = await _look(look, request, kwargs)
        if (topic := getattr(response, TOPIC, None)) is None:
            return response
        with _listening(topic) as woken:
            return await _until_news(look, request, kwargs, woken, getattr(response, SECONDS))

    return _like(polled, view)


async def _until_news(
    look: Any, request: HttpRequest, kwargs: Any, woken: asyncio.Event, seconds: float
) -> HttpResponseBase:
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while True:
        woken.clear()
        response = await _look(look, request, kwargs)
        left = end - loop.time()
        if left <= 0 or getattr(response, TOPIC, None) is None:
            return response
        pause = conf.poll_seconds() if process.is_running() else LOOK_EVERY
        try:
            async with asyncio.timeout(min(left, pause)):
                await woken.wait()
        except TimeoutError:
            pass


@contextmanager
def _listening(topic: str) -> Iterator[asyncio.Event]:
    """Set whenever something happens on a topic, if this loop is the one that hears of it."""
    woken = asyncio.Event()
    if not process.is_running() or process.current().loop is not asyncio.get_running_loop():
        yield woken
        return
    stop = process.current().hub.listen(topic, lambda kinds: woken.set())
    try:
        yield woken
    finally:
        stop()


async def _look(look: Any, request: HttpRequest, kwargs: Any) -> HttpResponseBase:
    response: HttpResponseBase = await sync_to_async(_look_now)(look, request, kwargs)
    return response


def _look_now(look: Any, request: HttpRequest, kwargs: Any) -> HttpResponseBase:
    try:
        response: HttpResponseBase = look(request, **kwargs)
        return response
    finally:
        if not connection.in_atomic_block:
            close_old_connections()


def _like(polled: Any, view: type[View]) -> Callable[..., Any]:
    """What the framework (its schema, too) reads off a view."""
    polled.cls, polled.initkwargs, polled.csrf_exempt = view, {}, True
    polled.__name__, polled.__doc__ = view.__name__, view.__doc__
    return polled  # type: ignore[no-any-return]
