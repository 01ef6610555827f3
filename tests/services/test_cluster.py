"""`serve --processes`: one port, several processes, one of which may die."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services.client import Client, until
from tests.services.cluster import Cluster
from tests.services.process import ServiceFailed
from tests.services.server import Server

pytestmark = [pytest.mark.services, pytest.mark.slow]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as running:
        yield running


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_two_processes_serve_one_installation(cluster: Cluster) -> None:
    assert len(cluster.pids()) == 2
    client = Client(cluster.server)
    chat = client.chat("echo two")
    [asked] = client.pending()
    assert client.decide(asked["item"]).status_code == 200
    assert until(lambda: client.run(chat)["status"] == "completed")
    until(lambda: cluster.all_lead(2))


def test_a_process_that_dies_is_started_again(cluster: Cluster) -> None:
    until(lambda: cluster.all_lead(2))
    dead, stays = cluster.pids()
    os.kill(dead, signal.SIGKILL)
    until(lambda: len(cluster.pids()) == 2 and dead not in cluster.pids())
    assert stays in cluster.pids()
    assert "ended with -9. It is started again in 0.5 s." in cluster.server.log()
    assert cluster.server.healthy()


def test_a_process_that_is_told_to_end_is_started_again_too(cluster: Cluster) -> None:
    """So that processes can be replaced one by one."""
    until(lambda: cluster.all_lead(2))
    drained, stays = cluster.pids()
    os.kill(drained, signal.SIGTERM)
    until(lambda: len(cluster.pids()) == 2 and drained not in cluster.pids())
    assert stays in cluster.pids() and cluster.server.healthy()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_the_end_drains_all_processes_and_is_no_failure(how: signal.Signals) -> None:
    with Server("--processes", "1") as server:
        client = Client(server)
        chat = client.chat("echo x")
        [asked] = client.pending()
        hung = client.chat('{"hang": true}', provider="scripted")
        until(lambda: client.run(hung)["status"] == "running")
        assert server.process
        server.process.send_signal(how)
        assert server.process.wait(40) == 0
        assert not list((server.var / "workers").iterdir()), "each has said that it leaves"
        assert "Traceback" not in server.log()
        server.arguments = ()
        server.start()
        assert "was stopped while" in client.run(hung)["error"]
        assert client.decide(asked["item"]).status_code == 200
        assert until(lambda: client.run(chat)["status"] == "completed"), "what only waited goes on"


def test_processes_that_nobody_looks_after_end_by_themselves() -> None:
    with Server("--processes", "1") as server:
        pid = server.pid
        [child] = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        server.kill()
        until(lambda: not lives(child))
        assert not server.healthy()
        assert not list((server.var / "workers").iterdir()), "it has drained"


def test_processes_that_cannot_start_end_the_whole(tmp_path: Path) -> None:
    """A sentence and an exit code, instead of one attempt after the other."""
    (tmp_path / "workers").write_text("a file, where a folder must be")
    with pytest.raises(ServiceFailed, match="before any of them answered") as failed:
        Server("--processes", "1", var=tmp_path).start()
    assert "ended with 1 while starting" in str(failed.value)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--processes", "2"), "needs PostgreSQL"),
        (("--processes", "0"), "makes no sense"),
        (("--processes", "1", "--dev"), "Leave out either"),
    ],
)
def test_what_is_impossible_is_refused_with_a_sentence(arguments: tuple[str, ...], sentence: str) -> None:
    server = Server(*arguments)
    try:
        refused = server.manage("serve", *arguments, check=False)
    finally:
        server.close()
    assert refused.returncode == 1
    assert sentence in refused.stderr and "Traceback" not in refused.stderr
