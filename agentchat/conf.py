"""The bounds of the system. Each is reached visibly: with an error sentence, or with a cut that says how much."""

from __future__ import annotations

from django.conf import settings

MESSAGE_CHARS = 100_000
"""A person's message."""
TITLE_CHARS = 200
REASON_CHARS = 10_000
NAME_CHARS = 200
CALL_ID_CHARS = 200
ARGUMENTS_BYTES = 4_000_000
RESULT_CHARS = 16_777_216
"""One result or one message of an agent; beyond it the text is cut, with a line that says so."""
QUEUED_MESSAGES = 20
"""Messages that wait in one chat."""
ITEMS_PER_MESSAGE = 20_000
RUN_CHARS = 67_108_864
"""What an agent may say in one message, results included; beyond it the run fails with a sentence."""
DELTA_CHARS = 32_768
"""The longest text of one event; longer text becomes several."""
SNAPSHOT_MESSAGES = 50
EVENTS_PER_READ = 500
EVENT_BYTES_PER_READ = 1_000_000
OUTBOX_BYTES = 1_000_000
"""What may wait for one socket; beyond it the socket catches up from the journal."""
CONDENSED_OUTBOX_BYTES = 32_000
"""The same where catching up costs less than what waits: a page on a slow line is soon at the end again."""
CONDENSED_PAGES = 20
"""Of the journal, said in few events; who is further behind gets a snapshot."""
BACKLOG_CHARS = 8_000_000
"""Text that may wait for the database in one process; beyond it `Output.text` waits too."""
RETRY_SECONDS = 60
"""How long the journal repeats a commit that the database refused, before the runs are told."""
STOP_SECONDS = 2
LEAVE_SECONDS = 10
"""How long a server that is told to stop waits for its runs to be ended; what is left then is closed by the next start."""
LAST_TRY_SECONDS = 3
"""How long its journal then still repeats a commit."""
ATTEMPTS = 20
"""How often a run is taken whose workers die. More would be a run that kills them."""
HEARTBEAT_SECONDS = 3
DEAD_AFTER_SECONDS = 15


def poll_seconds() -> float:
    return float(settings.AGENTCHAT_POLL_SECONDS)


def tick_seconds() -> float:
    return float(settings.AGENTCHAT_TICK_SECONDS)
