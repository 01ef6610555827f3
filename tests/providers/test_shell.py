"""The shell: what runs, what is streamed, and that nothing is left."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from agentchat.providers import process
from agentchat.providers.base import Turn
from agentchat.providers.shell import Shell
from tests.providers.fake import FakeOutput, alive, allow, deny, gone, pids_in

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.asyncio


def turn(text: str, workspace: Path, **more: Any) -> Turn:
    return Turn(run_id=uuid.uuid4().hex, text=text, workspace=workspace, **more)


async def play(text: str, workspace: Path, output: FakeOutput | None = None, **more: Any) -> FakeOutput:
    output = output or FakeOutput()
    await Shell().run(output, turn(text, workspace, **more))
    return output


async def within(condition: Any, seconds: float = 10) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


async def test_output_arrives_while_the_command_still_runs(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    output = FakeOutput()
    run = asyncio.create_task(play("echo first; read x < go; echo second", tmp_path, output))
    await within(lambda: output.printed == "first\n")
    assert not run.done() and not output.of("tool")
    await asyncio.to_thread((tmp_path / "go").write_text, "now\n")
    await run
    assert output.printed == "first\nsecond\n"


async def test_stdout_and_stderr_keep_their_order(tmp_path: Path) -> None:
    output = await play("echo 1; echo 2 >&2; echo 3; echo 4 >&2", tmp_path)
    assert output.printed == "1\n2\n3\n4\n"


async def test_nothing_more_is_read_before_the_last_piece_was_taken(tmp_path: Path) -> None:
    output = FakeOutput()
    output.gate = asyncio.Event()
    run = asyncio.create_task(play("yes | head -c 5000000", tmp_path, output))
    await output.streamed.wait()
    await asyncio.sleep(0.3)
    assert len(output.of("tool_output")) == 1 and not run.done()
    output.gate.set()
    await run
    assert len(output.printed) == 5_000_000


@pytest.mark.parametrize(("command", "code"), [("true", 0), ("exit 3", 3), ("kill -9 $$", 137), ("nope-nope", 127)])
async def test_the_exit_code_is_told(tmp_path: Path, command: str, code: int) -> None:
    [end] = (await play(command, tmp_path)).of("tool")
    assert end["meta"]["exit_code"] == code and end["failed"] == (code != 0)
    assert end["done"] and end["result"] is None and end["meta"]["seconds"] >= 0


async def test_the_request_shows_command_folder_and_risk(tmp_path: Path) -> None:
    output = await play("rm -rf build", tmp_path)
    [asked] = output.of("approve")
    assert asked["name"] == "shell" and asked["call_id"].startswith("sh_")
    assert asked["arguments"] == {"command": "rm -rf build", "cwd": str(tmp_path)}
    assert asked["request"]["kind"] == "command" and asked["request"]["risk"]["level"] == "destructive"
    assert output.of("tool")[0]["call_id"] == asked["call_id"]


async def test_the_folder_is_kept_between_commands_and_turns(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    output = await play("cd a\n\npwd\ncd b; exit 4", tmp_path)
    assert output.printed == f"{tmp_path}/a\n"
    assert output.state == {"cwd": f"{tmp_path}/a/b"}
    assert (await play("pwd", tmp_path, state=output.state)).printed == f"{tmp_path}/a/b\n"


@pytest.mark.parametrize("left", ["/", "/nowhere", "../..", 5, None, "a\0b"])
async def test_a_turn_does_not_start_outside_the_workspace(tmp_path: Path, left: Any) -> None:
    assert (await play("pwd", tmp_path, state={"cwd": left})).printed == f"{tmp_path}\n"


async def test_the_edited_command_is_what_runs(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    final = {"command": "touch edited", "cwd": str(tmp_path / "other")}
    output = await play("touch asked", tmp_path, FakeOutput(lambda *_: {"action": "approve", "arguments": final}))
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["edited"]
    assert (tmp_path / "other" / "edited").exists()
    assert output.of("tool")[0]["arguments"] == final


async def test_a_rejected_command_never_runs_and_ends_the_turn(tmp_path: Path) -> None:
    def decide(name: str, arguments: Any) -> dict[str, Any]:
        return deny(name, arguments) if "2" in arguments["command"] else allow(name, arguments)

    output = await play("\n".join(f"echo {n} >> counter" for n in (1, 2, 3)), tmp_path, FakeOutput(decide))
    assert (tmp_path / "counter").read_text() == "1\n"
    assert len(output.of("approve")) == 2 and len(output.of("tool")) == 1
    [notice] = output.of("notice")
    assert "not allowed" in notice["text"] and "command after it" in notice["text"]


async def test_an_empty_message_is_told(tmp_path: Path) -> None:
    assert "no command" in (await play(" \n\n", tmp_path)).of("notice")[0]["text"]


@pytest.mark.parametrize(
    "final", [{"command": "a\0b", "cwd": ""}, {"command": 5}, ["ls"], {"command": "ls", "cwd": "no"}]
)
async def test_what_cannot_be_started_is_a_failed_result(tmp_path: Path, final: Any) -> None:
    output = await play("ls", tmp_path, FakeOutput(lambda *_: {"action": "approve", "arguments": final}))
    [end] = output.of("tool")
    assert end["failed"] and end["done"] and end["result"].startswith("Nothing ran: ")


async def test_a_command_is_never_taken_for_shell_code_of_ours(tmp_path: Path) -> None:
    output = await play("""echo "$#" '$1' "it's" # )}' EXIT""", tmp_path)
    assert output.printed == "0 $1 it's\n"


async def test_the_environment_is_scrubbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = ("SECRET_KEY", "DATABASE_URL", "DJANGO_SETTINGS_MODULE", "BASH_ENV", "PYTHONPATH")
    for name in secrets:
        monkeypatch.setenv(name, "hidden-value")
    monkeypatch.setenv("LC_TIME", "C")
    at = turn("env; stty size < /dev/stdout", tmp_path)
    output = FakeOutput()
    await Shell().run(output, at)
    names = {line.split("=")[0] for line in output.printed.splitlines() if "=" in line}
    allowed = process.KEPT | {"AGENTCHAT_RUN", "LC_TIME", "PAGER", "GIT_PAGER", "PWD", "OLDPWD", "SHLVL", "_"}
    assert {name for name in names if not name.startswith("LC_")} <= allowed
    assert "hidden-value" not in output.printed
    assert f"AGENTCHAT_RUN={at.run_id}\n" in output.printed and "TERM=xterm-256color\n" in output.printed
    assert output.printed.endswith("40 120\n")


async def test_a_program_that_reads_gets_the_end_of_input(tmp_path: Path) -> None:
    async with asyncio.timeout(5):
        output = await play("cat; test -t 1 && echo terminal; cat /dev/tty || echo none", tmp_path)
    assert output.printed.startswith("terminal\n") and output.printed.endswith("none\n")


async def test_utf8_that_is_cut_by_a_read_is_joined(tmp_path: Path) -> None:
    output = await play(r"printf '\xe6\xbc'; sleep 0.2; printf '\xa2 \xff.\xe2'", tmp_path)
    assert output.printed == "漢 \ufffd.\ufffd"


async def test_nul_bytes_are_output_like_any_other(tmp_path: Path) -> None:
    assert (await play(r"printf 'a\0b'", tmp_path)).printed == "a\0b"


async def test_too_much_output_kills_the_command(tmp_path: Path) -> None:
    output = FakeOutput()
    async with asyncio.timeout(10):
        await Shell(limit=100_000).run(output, turn("yes; touch after", tmp_path))
    assert len(output.printed) == 100_000 and not (tmp_path / "after").exists()
    assert output.of("tool")[0]["failed"] and "100,000 bytes" in output.of("notice")[0]["text"]


async def test_what_is_left_in_the_background_ends_with_the_command(tmp_path: Path) -> None:
    started = time.monotonic()
    await play("(echo $BASHPID >> pids; exec sleep 60) & setsid sh -c 'echo $$ >> pids; exec yes' & "
               "while [ $(wc -l < pids) != 2 ]; do :; done 2>/dev/null", tmp_path)  # fmt: skip
    assert time.monotonic() - started < 5
    assert gone(pids_in(tmp_path / "pids", 2), 1)


STUBBORN = "trap '' TERM; echo $BASHPID >> pids; while :; do sleep 60; done"
FAMILY = {
    "grandchildren": "bash -c 'echo $$ >> pids; (echo $BASHPID >> pids; sleep 60); :'; :",
    "ignores-sigterm": f'bash -c "{STUBBORN}" & ({STUBBORN})',
    "daemons": "setsid -f bash -c 'echo $$ >> pids; sleep 60; :'; echo $$ >> pids; sleep 60; :",
    "without-environment": "setsid env -i bash -c 'echo $$ >> pids; sleep 60; :' & echo $$ >> pids; wait",
}


@pytest.mark.parametrize("command", FAMILY.values(), ids=FAMILY)
async def test_a_stop_kills_the_whole_family(tmp_path: Path, command: str) -> None:
    run = asyncio.create_task(play(command.replace("\\$", "$"), tmp_path))
    pids = await asyncio.to_thread(pids_in, tmp_path / "pids", 2)
    assert all(map(alive, pids))
    started = time.monotonic()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert time.monotonic() - started < 1.8
    assert gone(pids, 0.2)


async def test_a_stop_while_nobody_takes_the_output(tmp_path: Path) -> None:
    output = FakeOutput()
    output.gate = asyncio.Event()
    run = asyncio.create_task(play("echo $$ > pids; yes", tmp_path, output))
    await output.streamed.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert gone(pids_in(tmp_path / "pids", 1), 0.2)


async def test_an_output_that_fails_ends_the_command(tmp_path: Path) -> None:
    class Broken(FakeOutput):
        async def tool_output(self, call_id: str, text: str) -> None:
            raise RuntimeError("The journal is closed.")

    with pytest.raises(RuntimeError, match="journal"):
        await play("echo $$ > pids; echo; sleep 60", tmp_path, Broken())
    assert gone(pids_in(tmp_path / "pids", 1), 0.2)


async def test_no_descriptor_and_no_process_is_left_over(tmp_path: Path) -> None:
    await play("true", tmp_path)
    before = len(os.listdir("/proc/self/fd"))
    at = turn("true\ncd nowhere\nexit 3", tmp_path)
    await Shell().run(FakeOutput(), at)
    await play("ls", tmp_path, FakeOutput(lambda *_: {"action": "approve", "arguments": {"command": "a\0b"}}))
    assert len(os.listdir("/proc/self/fd")) == before
    assert not process.family(at.run_id)
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    assert not [pid for pid in children if "guard" in Path(f"/proc/{pid}/cmdline").read_text()]


SERVER = """
import asyncio, sys
from pathlib import Path
from agentchat.providers.base import Turn
from agentchat.providers.shell import Shell
from tests.providers.fake import FakeOutput
command = "trap '' TERM HUP; echo $$ >> pids; (echo $BASHPID >> pids; sleep 60; :) & sleep 60; :"
asyncio.run(Shell().run(FakeOutput(), Turn(sys.argv[1], command, Path(sys.argv[2]))))
"""


async def test_the_death_of_the_server_leaves_no_child(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SERVER), "r1", str(tmp_path)], env=environment
    ) as server:
        try:
            pids = pids_in(tmp_path / "pids", 2)
            assert all(map(alive, pids))
        finally:
            server.kill()
    assert gone(pids, 2)


async def test_reap_kills_all_of_a_run_and_nothing_else(tmp_path: Path) -> None:
    ours, other = uuid.uuid4().hex, uuid.uuid4().hex
    command = ["bash", "-c", "setsid bash -c 'sleep 60; :' & sleep 60; :"]
    mine = subprocess.Popen(command, env=process.environment(ours), start_new_session=True)
    spared = subprocess.Popen(["sleep", "60"], env=process.environment(other))
    try:
        await within(lambda: len(process.family(ours)) == 4)
        pids = list(process.family(ours))
        assert await asyncio.to_thread(Shell.reap, ours) == 4
        mine.wait(5)
        assert gone(pids, 1) and alive(spared.pid)
        assert Shell.reap(ours) == 0 and Shell.reap("") == 0
    finally:
        spared.kill()
        spared.wait()
