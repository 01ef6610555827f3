"""The list of providers."""

from __future__ import annotations

import pytest

from agentchat.providers import registry
from agentchat.providers.shell import Shell


def test_a_provider_is_loaded_by_its_key() -> None:
    assert registry.load("shell") is Shell
    for key in registry.PROVIDERS:
        assert registry.load(key).key == key


def test_an_unknown_key_names_the_known_ones() -> None:
    with pytest.raises(registry.UnknownProvider, match=r"named 'x'.*scripted, shell"):
        registry.load("x")
    assert issubclass(registry.UnknownProvider, ValueError)


def test_all_are_described() -> None:
    rows = {row["key"]: row for row in registry.describe()}
    assert list(rows) == list(registry.PROVIDERS)
    assert set(rows["shell"]) == {"key", "label", "about", "ready", "detail", "resumable", "version"}
    assert rows["shell"]["label"] == "Shell" and rows["scripted"]["ready"]


def test_one_that_cannot_be_imported_is_listed_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.PROVIDERS, "broken", "agentchat.providers.nowhere.Broken")
    row = registry.describe()[-1]
    assert row["key"] == row["label"] == "broken" and not row["ready"]
    assert "nowhere" in row["detail"]


def test_the_shell_needs_bash(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Shell.availability().ready
    monkeypatch.setenv("PATH", "/nowhere")
    assert not Shell.availability().ready and "bash" in Shell.availability().detail
