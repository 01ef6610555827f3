"""What the templates need beyond Django's own: icons, times, and text of agents made visible."""

from __future__ import annotations

import re
from typing import Any

from django import template
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

from agentchat.rendering import terminal, times, visible

register = template.Library()
_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")


@register.simple_tag
def icon(name: str, extra: str = "") -> SafeString:
    """A picture of the sprite; the words beside it say the same."""
    if name == "spin":
        return mark_safe('<span class="spin"></span>')
    href = f"{static('agentchat/icons.svg')}#{name}"
    html = '<svg class="icon{}" aria-hidden="true"><use href="{}"/></svg>'
    return format_html(html, f" {extra}" if extra else "", href)


@register.simple_tag(name="moment")
def moment_tag(at: Any, clock: str = "") -> SafeString:
    """`<time>`: today the clock, else the day."""
    found = times.moment(at)
    if found is None:
        return mark_safe("")
    local = timezone.localtime(found)
    shown = local.strftime("%H:%M:%S" if clock else "%H:%M")
    if local.date() != timezone.localdate() and not clock:
        shown = f"{local.day} {local.strftime('%b')}"
    return format_html('<time class="num" datetime="{}" title="{}">{}</time>', at, local.strftime("%c"), shown)


@register.simple_tag
def age(at: Any) -> str:
    found = times.moment(at)
    return times.age((timezone.now() - found).total_seconds()) if found else ""


@register.simple_tag
def lasted(at: Any) -> int:
    """Whole seconds from then until now; the page's script counts on."""
    found = times.moment(at)
    return max(0, int((timezone.now() - found).total_seconds())) if found else 0


@register.filter
def clock(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@register.simple_tag
def late(at: Any) -> bool:
    """Whether something has waited for a quarter of an hour."""
    found = times.moment(at)
    return bool(found and (timezone.now() - found).total_seconds() > 900)


@register.filter
def marked(text: Any) -> SafeString:
    """Text of an agent, with every character that hides made visible."""
    return mark_safe(visible.mark(str(text)))


@register.filter
def tame(text: Any) -> SafeString:
    """Running text: only what would turn the order of the letters around is made visible."""
    html = escape(str(text))
    return mark_safe(_TURNING.sub(lambda char: visible.mark(char[0]), html))


@register.filter
def exact(text: Any) -> SafeString:
    """Escaped so that a script reads every character back: browsers turn a bare carriage return into a line feed."""
    return mark_safe(escape(str(text)).replace("\r", "&#13;"))


@register.filter
def command(text: Any) -> SafeString:
    return mark_safe(visible.command(str(text)))


@register.filter
def terminal_html(text: Any) -> SafeString:
    return mark_safe(terminal.html(str(text)))


@register.filter
def prose(html: Any) -> SafeString:
    """Blocks that were rendered and sanitised when they were finished (rendering/markdown.py)."""
    return mark_safe(str(html))


@register.filter
def seconds(number: Any) -> str:
    return times.duration(float(number)) if number is not None else ""
