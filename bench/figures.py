"""A figure, its bar, and the table of all."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from math import log
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Figure:
    """`value` is to be at most `bar`, both in `unit`; without a bar it is only shown. `how` says what was measured."""

    name: str
    value: float
    unit: str
    bar: float | None
    how: str

    @property
    def holds(self) -> bool | None:
        return None if self.bar is None else self.value <= self.bar

    def row(self) -> dict[str, object]:
        fields = asdict(self) | {"value": round(self.value, 4), "holds": self.holds}
        return {name: fields[name] for name in ("name", "value", "unit", "bar", "holds", "how")}


def exponent(points: Iterable[tuple[float, float]]) -> float:
    """Of the growth: the slope of the line that fits best through (log size, log cost)."""
    pairs = [(log(size), log(cost)) for size, cost in points]
    x, y = (sum(values) / len(pairs) for values in zip(*pairs, strict=True))
    return sum((a - x) * (b - y) for a, b in pairs) / sum((a - x) ** 2 for a, _ in pairs)


def write(figures: Iterable[Figure], file: Path) -> None:
    rows = ",\n".join("  " + json.dumps(figure.row(), ensure_ascii=False) for figure in figures)
    file.write_text(f"[\n{rows}\n]\n")


def table(figures: Iterable[Figure]) -> str:
    lines = [f"{'figure':<78} {'value':>10} {'bar':>8} unit"]
    for figure in figures:
        bar = "" if figure.bar is None else f"{figure.bar:g}"
        mark = "  MISSED" if figure.holds is False else ""
        lines.append(f"{figure.name:<78} {figure.value:>10.4g} {bar:>8} {figure.unit}{mark}")
    return "\n".join(lines)


def read(text: str, suffix: str = "") -> list[Figure]:
    """The figures of a file that `write` wrote, or of such a list; `suffix` goes behind their names."""
    rows = [{name: value for name, value in row.items() if name != "holds"} for row in json.loads(text)]
    return [Figure(**{**row, "name": row["name"] + suffix}) for row in rows]
