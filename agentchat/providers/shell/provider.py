"""The provider `shell`: asks for each line, runs what was approved, streams what it prints."""

from __future__ import annotations

import os
import shutil
import uuid
from functools import partial
from pathlib import Path
from typing import Any

from agentchat.providers import process
from agentchat.providers.base import Availability, Output, Provider, Turn
from agentchat.providers.shell import risk
from agentchat.providers.shell.terminal import Ended, Terminal

LIMIT = 16 * 1024 * 1024
"""Bytes that one command may print."""
LINES_DONE = "lines_done"


class Shell(Provider):
    """Runs the lines of a message one after the other, in order, in one working directory that is kept."""

    key = "shell"
    label = "Shell"
    about = "Runs each line of your message as a command, once you have allowed it."
    resumable = True

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._cwd = Path()

    async def run(self, output: Output, turn: Turn) -> None:
        lines = commands(turn.text)
        if not lines:
            await output.notice("The message holds no command. Write one command on each line.", "warn")
        self._cwd = folder(turn)
        for number, line in list(enumerate(lines, 1))[begun(output, turn) :]:
            output.state[LINES_DONE] = number - 1
            if not await self._line(output, turn, line):
                await output.notice(refused(len(lines) - number), "warn")
                break
        output.state.pop(LINES_DONE, None)

    async def _line(self, output: Output, turn: Turn, line: str) -> bool:
        """Ask for one command and run it; False if it was not allowed."""
        call_id = f"sh_{uuid.uuid4().hex}"
        asked = {"command": line, "cwd": str(self._cwd)}
        request = {"kind": "command", "title": line, "cwd": asked["cwd"], "risk": risk.classify(line)}
        resolution = await output.approve("shell", asked, call_id=call_id, request=request)
        if resolution.get("action") != "approve":
            return False
        await self._execute(output, turn, call_id, resolution["arguments"])
        return True

    async def _execute(self, output: Output, turn: Turn, call_id: str, final: Any) -> None:
        """Run exactly the arguments that were approved."""
        try:
            terminal = self._start(final, turn.run_id)
        except (OSError, ValueError) as error:
            await output.tool(call_id, "shell", final, result=unstarted(error), done=True, failed=True)
            return
        ended = await terminal.run(partial(output.tool_output, call_id))
        self._cwd = ended.cwd or self._cwd
        output.state["cwd"] = str(self._cwd)
        meta = {"exit_code": ended.code, "seconds": ended.seconds}
        await output.tool(call_id, "shell", final, done=True, failed=ended.code != 0, meta=meta)
        await self._say_cut(output, ended)

    def _start(self, final: Any, run_id: str) -> Terminal:
        command = final.get("command") if isinstance(final, dict) else None
        cwd = final.get("cwd", "") if isinstance(final, dict) else None
        if not isinstance(command, str) or not isinstance(cwd, str):
            raise ValueError('the arguments are not an object with the texts "command" and "cwd"')
        return Terminal(command, self._cwd / cwd, run_id, self._limit)

    async def _say_cut(self, output: Output, ended: Ended) -> None:
        if ended.cut:
            await output.notice(
                f"The command was killed because it printed more than {self._limit:,} bytes. "
                "Write the output to a file instead, or print less of it.",
                "warn",
            )

    @classmethod
    def availability(cls) -> Availability:
        if not shutil.which("bash"):
            return Availability(False, "The program bash is not in the PATH of the server. Install it.")
        if not hasattr(os, "pidfd_open") or not Path("/proc/self/environ").exists():
            return Availability(False, "The shell needs Linux 5.3 or newer with /proc. Use such a server.")
        return Availability(True)

    @classmethod
    def memory(cls, run_id: str) -> int:
        return process.memory(run_id)

    @classmethod
    def reap(cls, run_id: str) -> int:
        return process.reap(run_id)


def commands(text: str) -> list[str]:
    """The lines that are not empty. Only a line feed ends a line, as in a shell."""
    return [line.rstrip("\r") for line in text.split("\n") if line.strip()]


def begun(output: Output, turn: Turn) -> int:
    """How many lines an earlier process had done."""
    done = output.state.pop(LINES_DONE, 0)
    return done if turn.resumed and isinstance(done, int) else 0


def folder(turn: Turn) -> Path:
    """Where the last run of the chat left off, if that is still inside the workspace; else the workspace."""
    workspace = turn.workspace.resolve()
    left = turn.state.get("cwd")
    if isinstance(left, str) and left and "\0" not in left:
        found = Path(left).resolve()
        if found.is_dir() and found.is_relative_to(workspace):
            return found
    return workspace


def refused(rest: int) -> str:
    more = {0: "", 1: " The command after it did not run either."}
    after = more.get(rest, f" The {rest} commands after it did not run either.")
    return f"The command was not allowed, so it did not run.{after}"


def unstarted(error: Exception) -> str:
    """Why a command could not be started, and what to do."""
    if isinstance(error, (FileNotFoundError, NotADirectoryError)):
        return f"Nothing ran: the folder {error.filename} does not exist. Choose one that does."
    return f"Nothing ran: {error}. Change the command and send it again."
