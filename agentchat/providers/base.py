"""What a provider is: something that turns one message of a person into calls on an Output.

A provider knows `Output` (by the protocol below) and nothing else of agentchat. Core never imports a provider
by name: the registry maps a key to a dotted path.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

JSON = Any


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a person, and where and how the agent may act on it."""

    run_id: str
    """Marks every process that the run starts (environment `AGENTCHAT_RUN`)."""
    text: str
    workspace: Path
    """An existing folder; the agent starts in it."""
    mode: str = "ask"
    """`ask`, `auto-edit`, `full` or `plan`. The gate itself is `Output.approve`; this is for agents that have
    modes."""
    state: Mapping[str, JSON] = field(default_factory=dict)
    """What the provider left in `output.state` at the end of the chat's last run; verified, `{}` if there is
    none."""
    resumed: bool = False
    """The run began in another process, which is gone. `state` is then what this run had kept when it last asked, and the
    provider asks the same again: a request for the same tool and arguments gets the card that stands there, and the
    decision that may have been made."""


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether this server can run a provider, and if not, what it needs, as a sentence."""

    ready: bool
    detail: str = ""


class Output(Protocol):
    """The part of `agentchat.services.output.Output` that providers use. See there for the full contract."""

    state: dict[str, JSON]
    usage: dict[str, JSON] | None

    async def text(self, text: str, reasoning: bool = False) -> None: ...

    async def tool(
        self,
        call_id: str,
        name: str,
        arguments: JSON,
        native: JSON = None,
        result: JSON = None,
        done: bool = False,
        *,
        failed: bool = False,
        meta: Mapping[str, JSON] | None = None,
        parent_call_id: str = "",
    ) -> None: ...

    async def tool_output(self, call_id: str, text: str) -> None: ...

    async def approve(
        self,
        name: str,
        arguments: JSON,
        native: JSON = None,
        timeout: float | None = None,
        *,
        call_id: str | None = None,
        request: Mapping[str, JSON] | None = None,
    ) -> dict[str, JSON]: ...

    async def cannot_resume(self) -> None: ...

    async def notice(self, text: str, level: str = "info") -> None: ...

    async def plan(self, steps: list[dict[str, str]]) -> None: ...

    async def flush(self, done: bool = False, force: bool = False, persist: bool = False) -> None: ...


class Provider(ABC):
    """One kind of agent. An instance serves one run and is then thrown away."""

    key: ClassVar[str]
    label: ClassVar[str]
    about: ClassVar[str] = ""
    resumable: ClassVar[bool] = False
    """True if another process can go on where this one asked: after it died, or gave the run back because nobody
    decided. Everything that this takes must be in `output.state` when `approve` is called."""

    @abstractmethod
    async def run(self, output: Output, turn: Turn) -> None:
        """Act on the turn until it is done.

        Cancelling the task is how a run is stopped: everything that was started must be dead within 2 s, and
        the CancelledError must be raised on. Any other exception ends the run as failed, with `str(error)`
        shown.
        """

    @classmethod
    def availability(cls) -> Availability:
        """Look (without running anything) whether the agent is installed and usable here."""
        return Availability(True)

    @classmethod
    def memory(cls, run_id: str) -> int:
        """Bytes that the processes of a run hold; pages that they share count for each."""
        return 0

    @classmethod
    def reap(cls, run_id: str) -> int:
        """Kill what a run of a dead process left behind; return how many processes that were."""
        return 0
