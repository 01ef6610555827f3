"""`make bench`: each group of figures in a process of its own; written to bench/results.json and printed beside the bars.

`python -m bench streams waiting` measures some groups only, and leaves the other figures of the file as they are.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from bench.figures import Figure, read, table, write

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).with_name("results.json")
GROUPS = {
    "streams": ("sqlite",),
    "saves": ("sqlite", "postgresql"),
    "waiting": ("sqlite", "postgresql"),
    "parked": ("own",),
    "runs": ("sqlite", "postgresql"),
    "viewers": ("sqlite",),
    "latency": ("sqlite", "postgresql"),
    "opening": ("sqlite", "postgresql"),
    "inbox": ("sqlite", "postgresql"),
    "start": ("sqlite",),
}


def measure(group: str, database: str) -> list[Figure]:
    """In a process of its own; it may write to stderr, and its figures to stdout."""
    with ExitStack() as stack:
        env = dict(os.environ) | {"PYTHONPATH": str(ROOT)}
        if database == "postgresql":
            from tests.services.postgres import Postgres
            from tests.services.redis import Redis

            env["DATABASE_URL"] = stack.enter_context(Postgres()).create("bench")
            env["REDIS_URL"] = stack.enter_context(Redis()).url
        command = [sys.executable, "-m", "bench", "--here", group]
        done = subprocess.run(command, env=env, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    suffix = f" ({'PostgreSQL, Redis' if database == 'postgresql' else 'SQLite'})" if len(GROUPS[group]) > 1 else ""
    return read(done.stdout.decode().splitlines()[-1], suffix)


def here(group: str) -> None:
    from bench.world import installation

    with installation():
        figures = importlib.import_module(f"bench.{group}").measure()
    print(json.dumps([figure.row() for figure in figures]))


def main(words: list[str]) -> None:
    if words[:1] == ["--here"]:
        here(words[1])
        return
    figures: dict[str, Figure] = {}
    if words and RESULTS.exists():
        figures = {figure.name: figure for figure in read(RESULTS.read_text())}
    for group in words or GROUPS:
        for database in GROUPS[group]:
            print(f"{group}, {database} ...", file=sys.stderr, flush=True)
            new = measure(group, database)
            figures |= {figure.name: figure for figure in new}
            print(table(new), file=sys.stderr, flush=True)
            write(figures.values(), RESULTS)
    print(table(figures.values()))


if __name__ == "__main__":
    main(sys.argv[1:])
