"""The helpers themselves: what they start answers, and nothing is left of it afterwards."""

from __future__ import annotations

import os
import subprocess
import sys

import httpx
import psycopg
import pytest
import redis

from tests.services.postgres import Postgres
from tests.services.process import ServiceFailed
from tests.services.redis import Redis
from tests.services.server import ROOT, Server

pytestmark = pytest.mark.services


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_postgres_answers_and_leaves_nothing() -> None:
    with Postgres() as server:
        assert server.process is not None and server.folder is not None
        pid, folder = server.process.pid, server.folder
        with psycopg.connect(server.url) as connection:
            assert connection.execute("SELECT current_database()").fetchone() == ("agentchat",)
        with psycopg.connect(server.create("other")) as connection:
            assert connection.execute("SELECT current_database()").fetchone() == ("other",)
    assert gone(pid)
    assert not folder.exists()


def test_postgres_that_cannot_start_says_why_and_leaves_nothing() -> None:
    server = Postgres("no_such_setting=1")
    with pytest.raises(ServiceFailed, match="no_such_setting"):
        server.start()
    assert server.process is None and server.folder is None


def test_redis_answers_restarts_and_leaves_nothing() -> None:
    with Redis() as server:
        assert server.process is not None and server.folder is not None
        first = server.process.pid
        server.stop()
        assert gone(first)
        server.start()
        assert server.process is not None and server.folder is not None
        pid, folder = server.process.pid, server.folder
        with redis.Redis.from_url(server.url) as client:
            assert client.ping()
    assert gone(pid)
    assert not folder.exists()


def test_wrapper_gives_both_urls_and_the_code_of_the_command() -> None:
    command = (
        "import os, sys;"
        "sys.exit(7 if os.environ['DATABASE_URL'].startswith('postgresql://')"
        " and os.environ['REDIS_URL'].startswith('redis://') else 1)"
    )
    wrapper = [sys.executable, "-m", "tests.services.with_postgres", "--redis", "--"]
    done = subprocess.run([*wrapper, sys.executable, "-c", command], cwd=ROOT, check=False)
    assert done.returncode == 7


def test_wrapper_without_a_command_says_how_to_use_it() -> None:
    wrapper = [sys.executable, "-m", "tests.services.with_postgres"]
    done = subprocess.run(wrapper, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "usage:" in done.stderr


def test_server_starts_stops_is_killed_and_starts_again() -> None:
    with Server() as server:
        assert httpx.get(f"{server.url}/healthz").status_code == 200
        assert server.link.startswith(f"{server.url}/accounts/link/")
        first, var, log = server.pid, server.var, server.log_file
        server.kill()
        assert gone(first)
        server.restart()
        assert server.pid != first
        assert server.healthy()
        server.stop()
        assert not server.healthy()
        assert var.is_dir()
    assert not var.exists()
    assert not log.exists()


def test_server_that_cannot_start_shows_its_log() -> None:
    with pytest.raises(ServiceFailed, match="LOG_LEVEL"):
        Server(env={"LOG_LEVEL": "LOUD"}).__enter__()
