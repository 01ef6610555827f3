"""The provider `scripted`: finds the script that a message means, and plays it."""

from __future__ import annotations

from pathlib import Path

from agentchat.providers.base import Output, Provider, Turn
from agentchat.providers.scripted.player import PLACE, Player
from agentchat.providers.scripted.script import ScriptError, parse

SCRIPTS = Path(__file__).parent / "scripts"


class Scripted(Provider):
    """The message is the name of a script that comes with it (more words may follow), or a script itself."""

    key = "scripted"
    label = "Script"
    about = "Plays a script, so that you can try everything without a model. Say rehearsal."
    resumable = True

    async def run(self, output: Output, turn: Turn) -> None:
        text = find(turn.text)
        if text is None:
            await output.notice(unknown(turn.text), "warn")
            return
        place = output.state.pop(PLACE, None)
        await Player(output, turn.workspace, place if turn.resumed else None).play_all(parse(text))


def names() -> list[str]:
    return sorted(path.stem for path in SCRIPTS.glob("*.jsonl"))


def find(message: str) -> str | None:
    """The text of the script that a message means; None if there is none of that name."""
    if message.lstrip().startswith("{"):
        return message
    name = next(iter(message.split()), "").lower()
    return (SCRIPTS / f"{name}.jsonl").read_text("utf-8") if name in names() else None


def unknown(message: str) -> str:
    name = next(iter(message.split()), "")[:60]
    return f"There is no script named {name!r}. Say one of these: {', '.join(names())}."


__all__ = ["SCRIPTS", "ScriptError", "Scripted", "find", "names"]
