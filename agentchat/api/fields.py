"""Fields that take what they name and nothing else: no number for a text, no "yes" for a flag."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from agentchat.services import clean


class Text(serializers.CharField):
    """A text as it is, with all its spaces; what no database can hold is replaced as everywhere."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_blank": True, "trim_whitespace": False, **options})
        self.validators = [one for one in self.validators if not type(one).__name__.startswith("Prohibit")]

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return clean.text(data)


class Flag(serializers.BooleanField):
    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class Shape(serializers.Serializer[Any]):
    """A request. A name that it does not know is an error: otherwise a typing mistake would pass unseen."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict) and (unknown := sorted(set(data) - set(self.fields))):
            known = ", ".join(self.fields) or "none"
            problem = f"There is no field {unknown[0]!r}. The fields are: {known}."
            raise serializers.ValidationError({"non_field_errors": [problem]})
        return super().to_internal_value(data)
