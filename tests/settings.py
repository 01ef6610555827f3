"""The project's settings, with private files. Each test process reads this module first, before any conftest.

SQLite, in a file and not in memory, since threads and other processes open it too; or what DATABASE_URL says.
Other variables of the person who runs the tests must not decide whether a test passes.
"""

from __future__ import annotations

import os
import tempfile

for _name in list(os.environ):
    if _name.startswith(("AGENTCHAT_", "REDIS_URL", "SECRET_KEY", "ALLOWED_HOSTS", "DEBUG", "LOG_LEVEL")):
        del os.environ[_name]
TEMPORARY = tempfile.mkdtemp(prefix="agentchat-tests-")
"""Removed by conftest at the end."""
os.environ |= {
    "AGENTCHAT_VAR": TEMPORARY,
    "AGENTCHAT_PRODUCTION": "0",
    "SECRET_KEY": "only-for-tests-" * 4,
}

from project.settings import *  # noqa: E402, F403
from project.settings import DATABASES, VAR  # noqa: E402

if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    DATABASES["default"]["TEST"] = {"NAME": str(VAR / "test.sqlite3")}

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # fast; tests make many people
