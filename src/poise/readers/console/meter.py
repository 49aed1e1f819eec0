"""Progress bars around records that state no step: their counts may be the missing steps."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from poise.readers.base import RawColumn

Sighting = tuple[int, int, tuple[float, float]]
"""Line, record number and weight of a record (the second number of the pair is unused); or line, -1, count and total of a bar."""
NONE = (-1.0, -1.0)


@dataclass(slots=True)
class Meter:
    """Bars seen so far, and for each record the bar before it and the one after it.

    Which bar is the training's is not known before the end: that of validation stands around its own records.
    """

    rows: list[int] = field(default_factory=list)
    after: list[tuple[float, float]] = field(default_factory=list)
    before: list[tuple[float, float]] = field(default_factory=list)
    last: tuple[float, float] = NONE
    open: bool = False
    weight: float = 0.0

    def follow(self, sightings: list[Sighting]) -> None:
        """Take in the bars and records of a block."""
        for _, row, pair in sorted(sightings):
            if row < 0:
                if self.open:
                    self.after[-1] = pair
                self.last, self.open = pair, False
            else:
                self._record(row, pair[0])

    def _record(self, row: int, weight: float) -> None:
        if self.rows and self.rows[-1] == row:
            if self.weight >= weight:
                return
            del self.rows[-1], self.before[-1], self.after[-1]
        self.rows.append(row)
        self.before.append(self.last)
        self.after.append(NONE)
        self.weight, self.open = weight, True

    def steps(self, losses: set[int]) -> tuple[RawColumn, float] | None:
        """The steps of the records and their total, by the bar that stands beside most losses; None if none counts.

        Args:
            losses: record numbers with a training loss; empty if the log has none.
        """
        pairs = list(zip(self.rows, self.after, self.before, strict=True))
        beside = [(after, before) for row, after, before in pairs if not losses or row in losses]
        totals = Counter(total for after, before in beside for total in {after[1], before[1]} if total > 1)
        if not totals:
            return None
        total = totals.most_common(1)[0][0]
        points = [(row, a[0] if a[1] == total else b[0]) for row, a, b in pairs if total in (a[1], b[1])]
        counts = np.array([count for _, count in points])
        if len(points) > 1 and np.all(counts == counts[0]):
            return None
        return RawColumn(np.array([row for row, _ in points], np.int64), counts), total
