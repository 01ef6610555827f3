"""Run a command with a private PostgreSQL: `python -m tests.services.with_postgres -- pytest -m databases`.

The command finds it in DATABASE_URL; with `--redis` also a private Redis in REDIS_URL.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from types import FrameType

from tests.services.postgres import Postgres
from tests.services.process import ServiceFailed, stop
from tests.services.redis import Redis


def main(arguments: list[str]) -> int:
    if "--" not in arguments or arguments[-1] == "--" or arguments[: arguments.index("--")] not in ([], ["--redis"]):
        print("usage: python -m tests.services.with_postgres [--redis] -- COMMAND ...", file=sys.stderr)
        return 2
    split = arguments.index("--")
    signal.signal(signal.SIGTERM, _leave)
    with ExitStack() as stack:
        env = {**os.environ, "DATABASE_URL": stack.enter_context(Postgres()).url}
        if arguments[:split]:
            env["REDIS_URL"] = stack.enter_context(Redis()).url
        command = subprocess.Popen(arguments[split + 1 :], env=env)
        try:
            return command.wait()
        finally:
            stop(command)


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except ServiceFailed as failed:
        sys.exit(str(failed))
    except KeyboardInterrupt:
        sys.exit(130)
