"""The end of a soak: what must not have happened is counted, and must have happened zero times."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.cases.helpers import marked_processes
from tests.faults.viewer import Viewer
from tests.services.farm import Farm
from tests.soak.people import Decider, Speaker

RUNS = "SELECT id::text, status, error FROM agentchat_run"
DECISIONS = """SELECT i.id::text, i.call_id, r.id::text, res.action, res.cause, receipt.id IS NOT NULL
FROM agentchat_resolution res JOIN agentchat_outputitem i ON i.id = res.item_id
JOIN agentchat_run r ON r.message_id = i.message_id
LEFT JOIN agentchat_receipt receipt ON receipt.resolution_id = res.id"""
TEXTS = """SELECT r.id::text, string_agg(i.text, '' ORDER BY i.position) FROM agentchat_run r
JOIN agentchat_outputitem i ON i.message_id = r.message_id AND i.type = 'message' GROUP BY 1"""
GAPS = """SELECT c.id FROM agentchat_chat c LEFT JOIN agentchat_event e ON e.chat_id = c.id
GROUP BY c.id HAVING count(e.seq) <> c.last_seq OR max(e.seq) <> c.last_seq"""
SEEN = "SELECT seq, body::json FROM agentchat_event WHERE chat_id = %s ORDER BY seq"


@dataclass(frozen=True)
class Decided:
    item: str
    call: str
    run: str
    action: str
    cause: str
    delivered: bool


class Tally:
    """`zero` are counts with an example each; `shown` are figures that may be anything."""

    def __init__(self, farm: Farm, speaker: Speaker, deciders: list[Decider]) -> None:
        self._farm, self._speaker, self._deciders = farm, speaker, deciders
        self.zero: dict[str, list[str]] = defaultdict(list)
        self.shown: dict[str, Any] = {}
        self._runs = {run: (status, error) for run, status, error in farm.query(RUNS)}
        self._decided = [Decided(*row) for row in farm.query(DECISIONS)]

    def take(self, viewers: dict[str, Viewer], must_be_there: dict[str, int]) -> None:
        parts = {
            "decisions lost": self._lost(),
            "decisions doubled": self._doubled(),
            "text lost": self._text_lost(must_be_there),
            "text that no script says": self._text_wrong(),
            "seen and not stored": self._unseen(viewers),
            "runs stuck": self._stuck(),
            "ends without a reason": self._unexplained(),
            "journals with a gap": (str(chat) for (chat,) in self._farm.query(GAPS)),
            "broken chains": self._audit(),
        }
        for name, found in parts.items():
            self.zero[name] = list(found)
        self._figures(viewers)

    def _figures(self, viewers: dict[str, Viewer]) -> None:
        self.shown["runs"] = dict(Counter(status for status, _ in self._runs.values()))
        self.shown["decisions answered by 200"] = sum(len(decider.won) for decider in self._deciders)
        self.shown["other answers"] = dict(
            Counter(word for decider in self._deciders for word in decider.lost.values())
        )
        self.shown["resolutions"] = dict(Counter(row.cause for row in self._decided))
        self.shown["decisions delivered"] = sum(row.delivered for row in self._decided)
        self.shown["side effects"] = sum(self._effects().values())
        self.shown["reasons of failures"] = dict(
            Counter(error[:90] for status, error in self._runs.values() if status == "failed")
        )
        self.shown["events seen by viewers"] = sum(len(viewer.events) for viewer in viewers.values())
        self.shown["connections of viewers"] = sum(viewer.connections for viewer in viewers.values())

    # Decisions

    def _won(self) -> dict[str, set[str]]:
        won: dict[str, set[str]] = defaultdict(set)
        for decider in self._deciders:
            for item, actions in decider.won.items():
                won[item] |= actions
        return won

    def _lost(self) -> Iterator[str]:
        """Answered by 200, and not stored so; or not used by a run that came to its end."""
        stored = {row.item: row for row in self._decided if row.cause == "person"}
        effects = self._effects()
        for item, actions in self._won().items():
            row = stored.get(item)
            if row is None or row.action not in actions:
                yield f"{item}: {actions}, stored is {row}"
            elif self._runs[row.run][0] == "completed" and not row.delivered:
                yield f"{row} was not delivered, and its run completed"
        for row in stored.values():
            if self._runs[row.run][0] == "completed" and row.action == "approve" and not effects[row.call]:
                yield f"{row} had no effect, and its run completed"

    def _doubled(self) -> Iterator[str]:
        yield from (f"{item}: {sorted(actions)}" for item, actions in self._won().items() if len(actions) > 1)
        by_call = {row.call: row for row in self._decided}
        for call, count in self._effects().items():
            row = by_call.get(call)
            if count > 1 or row is None or row.action != "approve" or not row.delivered:
                yield f"{count} effects of {row or call}"

    def _effects(self) -> Counter[str]:
        """By call, how often what was asked for has happened."""
        found: Counter[str] = Counter()
        for folder in self._speaker.workspaces.values():
            for file in folder.glob("did-*"):
                found[file.name.removeprefix("did-")] += len(file.read_text().splitlines())
        return found

    # Text

    def _texts(self) -> dict[str, str]:
        return {run: text for run, text in self._farm.query(TEXTS) if run in self._speaker.turns}

    def _text_lost(self, must_be_there: dict[str, int]) -> Iterator[str]:
        texts = self._texts()
        for run, pieces in must_be_there.items():
            if (kept := len(re.findall(r"<\d+>", texts.get(run, "")))) < pieces:
                yield f"run {run} had said {pieces} pieces, {kept} are there"

    def _text_wrong(self) -> Iterator[str]:
        for run, text in self._texts().items():
            whole = self._speaker.turns[run][1].text()
            if text != whole if self._runs[run][0] == "completed" else not whole.startswith(text):
                yield f"run {run}, {self._runs[run][0]}: {text}"

    def _unseen(self, viewers: dict[str, Viewer]) -> Iterator[str]:
        for chat, viewer in viewers.items():
            stored = [{"seq": seq, **body} for seq, body in self._farm.query(SEEN, chat)]
            if viewer.wrong:
                yield f"chat {chat}: {viewer.wrong}"
            elif viewer.events != stored:
                yield f"chat {chat}: {len(viewer.events)} events seen, {len(stored)} stored"

    # Runs

    def _stuck(self) -> Iterator[str]:
        ended = {"completed", "failed", "cancelled", "interrupted"}
        yield from (f"run {run} is {status}" for run, (status, _) in self._runs.items() if status not in ended)
        yield from (f"run {run} has processes" for run in self._runs if marked_processes(run))

    def _unexplained(self) -> Iterator[str]:
        for run, (status, error) in self._runs.items():
            if bool(error) != (status in ("failed", "interrupted")):
                yield f"run {run} is {status}: {error!r}"

    def _audit(self) -> Iterator[str]:
        checked = self._farm.web[0].manage("verify_resolutions", check=False)
        yield from checked.stderr.splitlines()
