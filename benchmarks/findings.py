"""What an area found: figures with floors, a record per contender, curves, who was not there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Self

OURS = "Rankwright"
HELD_OUT = "NDCG@10 on held-out queries"


@dataclass(frozen=True)
class Record:
    """One contender at one task: who, with which settings, how long, how well, how much memory.

    Several tasks may stand in one area; contenders of one task did the same work. ``quality`` is in
    the unit that ``measure`` names, larger is better; ``same`` says in words that results agree,
    where that is the whole of quality. ``note`` says what the numbers do not.
    """

    task: str
    peer: str
    version: str
    settings: str
    seconds: float | None = None
    quality: float | None = None
    measure: str = HELD_OUT
    peak_megabytes: float | None = None
    same: str = ""
    note: str = ""


def by_task(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Return the records of each task, tasks in the order in which they began."""
    found: dict[str, list[Record]] = {}
    for one in records:
        found.setdefault(one.task, []).append(one)
    return found


@dataclass(frozen=True)
class Curve:
    """Seconds of one contender at one task as one thing grows; slopes are in log-log.

    ``megabytes`` are what the work adds to the memory in use, where that was measured.
    """

    task: str
    axis: str
    peer: str
    version: str
    sizes: list[float]
    seconds: list[float]
    slope: float
    settings: str = ""
    megabytes: list[float] = field(default_factory=list)
    memory_slope: float | None = None


@dataclass
class Findings:
    """All that an area found."""

    figures: dict[str, float] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def add(self, other: Findings) -> Findings:
        """Take over what another found; return it."""
        self.figures |= other.figures
        self.records += other.records
        self.curves += other.curves
        self.absent |= other.absent
        self.failed |= other.failed
        return other

    def seconds(self, peer: str) -> float | None:
        """Return the least seconds of a contender, None where it was not there."""
        found = [one.seconds for one in self.records if one.peer == peer and one.seconds]
        return min(found) if found else None

    def ratio(self, above: str, below: str) -> float | None:
        """Return the seconds of ``above`` over those of ``below``, None where one is missing."""
        a, b = self.seconds(above), self.seconds(below)
        return a / b if a and b else None

    def note_figure(self, name: str, value: float | None) -> None:
        """Keep a figure, unless the peer that it needs was not there."""
        if value is not None:
            self.figures[name] = float(value)

    def as_json(self) -> dict[str, Any]:
        """Return plain objects."""
        return asdict(self)

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Self:
        """Return what `as_json` gave; other keys are passed over."""
        return cls(
            found["figures"],
            [Record(**one) for one in found["records"]],
            [Curve(**one) for one in found["curves"]],
            found["absent"],
            found["failed"],
        )
