from __future__ import annotations

from dataclasses import dataclass
from html import escape


@dataclass(frozen=True, slots=True)
class Block:
    html: str
    end: int


class MarkdownStream:
    def __init__(self, done: int = 0) -> None:
        self.done, self.tail = done, ""

    def feed(self, text: str) -> list[Block]:
        self.tail += text
        return []

    def finish(self) -> list[Block]:
        tail, self.tail = self.tail, ""
        self.done += len(tail)
        return [Block(f"<p>{escape(tail)}</p>", self.done)] if tail.strip() else []
