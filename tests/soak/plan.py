"""What the agents play: text in numbered pieces, requests, and a side effect after each yes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.e2e.conftest import script

PIECES, EVERY = 20, 0.08
KINDS = ("plain", "plain", "unresumable", "parallel")


@dataclass(frozen=True)
class Turn:
    """One message to one chat. Its files in the workspace: `did-<turn>-<request>` and `said-<turn>`."""

    number: int

    @property
    def kind(self) -> str:
        return KINDS[self.number % len(KINDS)]

    def message(self) -> str:
        before = [{"unresumable": True}] if self.kind == "unresumable" else []
        asked = [self._asks(1), self._asks(2)]
        if self.kind == "parallel":
            return script(*before, *self._says(0), {"parallel": [[one] for one in asked]}, *self._says(PIECES))
        return script(*before, *self._says(0), asked[0], *self._says(PIECES), asked[1])

    def text(self) -> str:
        """All that it says, if it comes to its end."""
        return "".join(map(piece, range(2 * PIECES)))

    def _says(self, first: int) -> list[Any]:
        """The file is written right after a piece was handed over."""
        numbers = range(first, first + PIECES)
        said = {"counter": f"said-{self.number}"}
        return [step for n in numbers for step in ({"text": piece(n)}, said, {"delay": EVERY})]

    def _asks(self, nth: int) -> Any:
        name = f"{self.number}-{nth}"
        asked = {"id": name, "name": "shell", "arguments": {"command": name}}
        done = {"tool": {"id": name, "name": "shell", "result": "ok", "done": True}}
        return {"approve": asked, "then": [{"counter": f"did-{name}"}, done]}


def piece(number: int) -> str:
    return f"<{number}> "
