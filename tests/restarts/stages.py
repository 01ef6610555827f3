"""The points at which something dies: each brings the run of a cell to exactly there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.e2e.conftest import script
from tests.restarts.bed import Cell
from tests.services.client import until

RECEIPTS = (
    "SELECT count(*) FROM agentchat_receipt JOIN agentchat_resolution r ON r.id = resolution_id WHERE r.chat_id = %s"
)
ENDS = frozenset({"completed", "interrupted"})
GOES_ON = frozenset({"completed"})
IS_CUT = frozenset({"interrupted"})
LONG = "".join(f"{number} " for number in range(150))
DONE = "done"


def asks(*then: Any) -> dict[str, Any]:
    asked = {"id": "act", "name": "shell", "arguments": {"command": "act"}}
    finish = {"tool": {"id": "act", "name": "shell", "result": "ok", "done": True}}
    return {"approve": asked, "then": [*then, {"counter": "act"}, finish]}


STREAMS = ({"text": LONG, "chunk": 4, "every": 0.02}, {"counter": "after"})
TOOL = (
    {"tool": {"id": "t", "name": "shell", "arguments": {"command": "t"}}},
    {"counter": "begun"},
    {"output": {"id": "t", "text": LONG}, "chunk": 4, "every": 0.02},
    {"counter": "over"},
    {"tool": {"id": "t", "name": "shell", "done": True}},
)
FLUSH = {"flush": {"persist": True}}


@dataclass(frozen=True)
class Stage:
    """`steps` are played. `killed` and `stopped`: how the run may end if its worker is, by SIGKILL and SIGTERM.

    Whatever else dies, it has to complete.
    """

    name: str
    steps: tuple[Any, ...] = (asks(),)
    killed: frozenset[str] = GOES_ON
    stopped: frozenset[str] = GOES_ON
    text: str = DONE
    """What the agent has said when it has completed."""
    provider: str = "scripted"
    mode: str = "ask"

    def message(self) -> str:
        return script(*self.steps, {"text": DONE})

    def reach(self, cell: Cell) -> None:
        cell.bed.person.say(cell.chat, self.message())
        self.wait(cell)

    def wait(self, cell: Cell) -> None:
        cell.is_("waiting")

    def go_on(self, cell: Cell) -> None:
        """Once everything runs again: what the agent waits for, besides people."""


class Queued(Stage):
    def reach(self, cell: Cell) -> None:
        cell.bed.freeze()
        super().reach(cell)

    def wait(self, cell: Cell) -> None:
        assert cell.run()["status"] == "queued"


@dataclass(frozen=True)
class Taken(Stage):
    """The worker takes it: on its way into the database, or stored there and not heard of."""

    place: str = "claim"

    def reach(self, cell: Cell) -> None:
        cell.bed.holds.take(self.place)
        super().reach(cell)

    def wait(self, cell: Cell) -> None:
        cell.bed.holds.reached()
        assert cell.run()["status"] == "queued"


class Streaming(Stage):
    def wait(self, cell: Cell) -> None:
        until(lambda: "20 " in str(cell.snapshot()["messages"][-1]["items"]))
        assert not cell.effects("after") and not cell.effects("over")


@dataclass(frozen=True)
class Command(Stage):
    provider: str = "shell"
    mode: str = "full"
    text: str = ""

    def message(self) -> str:
        return "echo x >> begun; until [ -e go ]; do sleep 0.05; done; echo x >> over"

    def wait(self, cell: Cell) -> None:
        until(lambda: cell.effects("begun"))

    def go_on(self, cell: Cell) -> None:
        (cell.workspace / "go").touch()


@dataclass(frozen=True)
class Asking(Stage):
    provider: str = "shell"
    text: str = ""

    def message(self) -> str:
        return "echo x >> act"


class Parked(Stage):
    """The worker is stopped and started: nobody holds the run, which waits."""

    def wait(self, cell: Cell) -> None:
        super().wait(cell)
        cell.bed.worker.restart()
        assert cell.count("SELECT count(*) FROM agentchat_run WHERE chat_id = %s AND worker = ''") == 1


class Decided(Stage):
    """Stored, while the worker stands still and cannot take it."""

    def wait(self, cell: Cell) -> None:
        super().wait(cell)
        cell.bed.freeze()
        assert cell.decide().result(30).status_code == 200
        assert cell.count(RECEIPTS) == 0


@dataclass(frozen=True)
class Held(Stage):
    """Decided, and held at a place of `holds.PLACES`; what is visible then."""

    place: str = ""
    receipts: int = 0
    acted: bool = False

    def wait(self, cell: Cell) -> None:
        super().wait(cell)
        cell.bed.holds.take(self.place)
        cell.decide()
        cell.bed.holds.reached()
        assert (cell.count(RECEIPTS), bool(cell.effects("act"))) == (self.receipts, self.acted)


class StreamingUnheard(Streaming):
    def wait(self, cell: Cell) -> None:
        super().wait(cell)
        cell.bed.holds.take("text, unheard")
        cell.bed.holds.reached()


ONCE: tuple[Any, ...] = ({"unresumable": True}, asks())
STAGES: tuple[Stage, ...] = (
    Queued("queued"),
    Taken("being taken"),
    Taken("taken, unheard", killed=ENDS, place="claim, unheard"),
    Streaming("streaming", STREAMS, IS_CUT, IS_CUT, LONG + DONE),
    StreamingUnheard("streaming, unheard", STREAMS, IS_CUT, IS_CUT, LONG + DONE),
    Streaming("tool running", TOOL, IS_CUT, IS_CUT),
    Command("command running (shell)", (), IS_CUT, IS_CUT),
    Stage("waiting"),
    Asking("waiting (shell)"),
    Stage("waiting, unresumable", ONCE, IS_CUT, IS_CUT),
    Parked("parked"),
    Held("being decided", stopped=ENDS, place="decision"),
    Held("decided, unheard", stopped=ENDS, place="decision, unheard"),
    Decided("decided, not delivered", stopped=ENDS),
    Decided("the same, unresumable", ONCE, IS_CUT, ENDS),
    Held("being delivered", stopped=ENDS, place="receipt"),
    Held("delivered, unheard", killed=IS_CUT, stopped=ENDS, place="receipt, unheard"),
    Held("delivered, not run", (asks(FLUSH),), IS_CUT, ENDS, place="flush", receipts=1),
    Held("finishing, the message", killed=ENDS, stopped=ENDS, place="message", receipts=1, acted=True),
    Held("finishing, unheard", killed=ENDS, stopped=ENDS, place="message, unheard", receipts=1, acted=True),
    Held("finishing, the run", killed=ENDS, place="run", receipts=1, acted=True),
    Held("ended, unheard", place="run, unheard", receipts=1, acted=True),
)
