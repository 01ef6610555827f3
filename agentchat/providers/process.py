"""Processes that a run starts: how they are marked, found and killed. Linux only: it reads /proc.

Every process of a run carries `AGENTCHAT_RUN=<run id>` in its environment. A process that clears its
environment is still found as long as one of its ancestors carries the mark; one that clears it AND leaves its
parents is not.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

MARK = "AGENTCHAT_RUN"
KEPT = frozenset({"PATH", "HOME", "LANG", "TERM", "USER", "SHELL", "TZ", "TMPDIR"})
ROUNDS = 50
PAGE = os.sysconf("SC_PAGE_SIZE")
GUARD = 'read -r _ || kill -s KILL -- -"$1"'

Family = dict[int, str]
"""Process id -> start time; both together name one process for good, since ids are used again."""


def environment(run_id: str, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of an agent's process: nothing of the server's secrets, and the mark of the run."""
    kept = {key: value for key, value in os.environ.items() if key in KEPT or key.startswith("LC_")}
    return {"PATH": os.defpath, **kept, **(extra or {}), MARK: run_id}


class Guard:
    """Kills a process group when this process dies, however it dies.

    The guard is a shell in a session of its own that reads from a pipe which only this process holds open.
    """

    def __init__(self, group: int) -> None:
        reader, self._held = os.pipe()
        try:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", GUARD, "guard", str(group)],
                stdin=reader,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"PATH": os.defpath},
                start_new_session=True,
            )
        except BaseException:
            os.close(self._held)
            raise
        finally:
            os.close(reader)

    def release(self) -> None:
        """End the guard without a kill. Call it while the group's leader is not yet waited for."""
        self._process.kill()
        self._process.wait()
        os.close(self._held)


def signal_group(group: int, number: int = signal.SIGKILL) -> None:
    """Send a signal to a process group; it is no error if the group is gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def signal_family(family: Family, number: int = signal.SIGKILL) -> None:
    """Send a signal to each of these processes that is still the same one."""
    for pid, start in family.items():
        if _stat(pid)[1] == start:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)


def family(run_id: str) -> Family:
    """The live processes with the run's mark, and their descendants; never this process or its ancestors."""
    if not run_id:
        return {}
    stats = {pid: stat for pid in _pids() if (stat := _stat(pid))[1]}
    parents = {pid: parent for pid, (parent, _) in stats.items()}
    found = {pid for pid in stats if _carries(pid, run_id)}
    found |= {pid for pid in stats if found.intersection(_ancestors(pid, parents))}
    return {pid: stats[pid][1] for pid in found.difference(_ancestors(os.getpid(), parents), {os.getpid()})}


def memory(run_id: str) -> int:
    """Bytes that the processes of a run hold; pages that they share count for each."""
    return sum(map(_resident, family(run_id)))


def reap(run_id: str) -> int:
    """Kill every process of the run with SIGKILL; return how many there were.

    It looks again until a look finds nobody new, so that what was just being started is found as well.
    """
    killed: set[tuple[int, str]] = set()
    for _ in range(ROUNDS):
        found = family(run_id)
        signal_family(found)
        if killed.issuperset(found.items()):
            break
        killed.update(found.items())
    return len(killed)


def _pids() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def _stat(pid: int) -> tuple[int, str]:
    """The parent and the start time of a process; `(0, "")` if it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0, ""
    if len(fields) < 20 or fields[0] in (b"Z", b"X"):
        return 0, ""
    return int(fields[1]), fields[19].decode()


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    except (OSError, IndexError):
        return 0


def _carries(pid: int, run_id: str) -> bool:
    try:
        entries = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return f"{MARK}={run_id}".encode() in entries


def _ancestors(pid: int, parents: Mapping[int, int]) -> set[int]:
    found: set[int] = set()
    while (pid := parents.get(pid, 0)) and pid not in found:
        found.add(pid)
    return found
