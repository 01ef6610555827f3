"""`make restarts`, or `python -m tests.restarts waiting`: one line a cell; 1 if something does not hold."""

from __future__ import annotations

import sys
import time

from tests.restarts.bed import made
from tests.restarts.matrix import all_cells, audit, play
from tests.services.process import ServiceFailed


def main(words: list[str]) -> int:
    begun, failed, count = time.monotonic(), 0, 0
    with made() as bed:
        for stage, fault in all_cells(words):
            result = play(bed, stage, fault)
            print(result.line(), flush=True)
            count, failed = count + 1, failed + result.fails
        wrong = audit(bed)
    for line in wrong:
        print(f"FAILED {line}")
    print(f"{count} cells, {failed} failed, in {time.monotonic() - begun:.0f} s")
    return 1 if failed or wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except ServiceFailed as problem:
        sys.exit(str(problem))
