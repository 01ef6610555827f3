"""A process that takes runs and nothing else."""

from __future__ import annotations

import subprocess
import sys
from typing import IO, Any

from tests.services.server import Server

READY = "The worker takes runs."


class Worker(Server):
    """`manage.py worker`."""

    def _open(self, log: IO[bytes], **more: Any) -> subprocess.Popen[bytes]:
        return super()._open(log, **({"args": [sys.executable, "manage.py", "worker"]} | more))

    def healthy(self) -> bool:
        return READY in self.log()
