from __future__ import annotations

from django import template

register = template.Library()
