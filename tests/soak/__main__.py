"""`make soak MINUTES=10`, or `python -m tests.soak --minutes 10`: counts at the end; 1 if one that must be zero is not."""

from __future__ import annotations

import argparse
import random
import sys

from tests.services.process import ServiceFailed
from tests.soak.soak import Soak, Wanted, failed, farm, table


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--chats", type=int, default=50)
    parser.add_argument(
        "--seed", type=int, default=random.randrange(1_000_000), help="what dies when, and who decides how"
    )
    asked = parser.parse_args(arguments)
    print(f"{asked.minutes:g} minutes, {asked.chats} chats, seed {asked.seed}", flush=True)
    with farm() as running:
        tally = Soak(running, Wanted(60 * asked.minutes, asked.chats, seed=asked.seed), _say).run()
    print("\n".join(table(tally)))
    return 1 if failed(tally) else 0


def _say(words: str) -> None:
    print(words, flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except ServiceFailed as problem:
        sys.exit(str(problem))
