"""The form that decides a request."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils import timezone

from agentchat import conf
from agentchat.events import Action
from agentchat.models import OutputItem
from agentchat.services import permissions


class DecisionForm(forms.Form):
    """Carries the digest of the arguments that were shown, so that nothing else can be decided with it."""

    action = forms.ChoiceField(choices=[(one, one) for one in Action])
    digest = forms.CharField(widget=forms.HiddenInput)
    displayed_at = forms.DateTimeField(widget=forms.HiddenInput, required=False)
    reason = forms.CharField(
        required=False, strip=False, max_length=conf.REASON_CHARS, widget=forms.Textarea(attrs={"rows": 4})
    )

    def __init__(self, row: OutputItem, data: Any = None) -> None:
        shown = {"digest": row.digest, "displayed_at": timezone.now().isoformat()}
        super().__init__(data, initial=shown)
        self.questions: list[dict[str, Any]] = []
        self.is_question = permissions.is_question(row.name, row.request)
        if self.is_question:
            self.questions = list((row.request or {}).get("questions") or [])
        for number, question in enumerate(self.questions):
            self._add_question(number, question)

    def _add_question(self, number: int, question: dict[str, Any]) -> None:
        label = str(question.get("question") or f"Question {number + 1}")
        if offered := [_label(option) for option in question.get("options") or []]:
            self.fields[f"choices_{number}"] = forms.MultipleChoiceField(
                choices=[(one, one) for one in offered],
                widget=forms.CheckboxSelectMultiple,
                required=False,
                label=label,
            )
            label = "Or in your words"
        self.fields[f"text_{number}"] = forms.CharField(
            required=False, label=label, widget=forms.Textarea(attrs={"rows": 3})
        )

    def answer_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in self.fields if name.startswith(("choices_", "text_"))]

    def problems(self) -> list[str]:
        return [f"{name}: {' '.join(map(str, found))}" for name, found in self.errors.items()]

    def decision(self) -> dict[str, Any]:
        """The fields of a services.approvals.Decision."""
        given = self.cleaned_data
        said = {name: given[name] for name in ("action", "digest", "reason", "displayed_at")}
        return said | ({"answers": self._answers()} if given["action"] == Action.ANSWER else {})

    def _answers(self) -> dict[str, Any]:
        given = self.cleaned_data
        return {
            str(question.get("id", number)): {
                "choices": given.get(f"choices_{number}", []),
                "text": given.get(f"text_{number}", ""),
            }
            for number, question in enumerate(self.questions)
        }


def _label(option: Any) -> str:
    return str(option.get("label")) if isinstance(option, dict) else str(option)
