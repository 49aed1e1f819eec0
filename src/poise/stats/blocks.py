"""A whole run's course in a bounded number of block medians."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from poise.records import Floats, Ints
from poise.stats.robust import median

MAX_BLOCKS = 512


@dataclass(slots=True)
class Course:
    """Medians of consecutive blocks of rows. When there are too many blocks, neighbours are joined, so memory stays flat.

    Args:
        size: rows per block; doubles as the run grows.
    """

    size: int = 8
    medians: list[float] = field(default_factory=list)
    first_steps: list[int] = field(default_factory=list)
    pending: Floats = field(default_factory=lambda: np.empty(0))
    pending_steps: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    rows: int = 0

    def room(self) -> int:
        """Rows until the present block is full: the piece to give to `update` so that every block is looked at once."""
        return self.size - len(self.pending)

    def update(self, steps: Ints, values: Floats) -> None:
        """Take the next finite rows."""
        while len(values):
            space = (MAX_BLOCKS - len(self.medians)) * self.size - len(self.pending)
            take = min(len(values), space)
            self._fill(steps[:take], values[:take])
            steps, values = steps[take:], values[take:]
            if len(self.medians) >= MAX_BLOCKS:
                self._halve()

    def _fill(self, steps: Ints, values: Floats) -> None:
        self.rows += len(values)
        if self.size == 1:  # a block is a row
            self.medians += values.tolist()
            self.first_steps += steps.tolist()
            return
        joined, at = np.concatenate([self.pending, values]), np.concatenate([self.pending_steps, steps])
        whole = len(joined) // self.size * self.size
        self.medians += median(joined[:whole].reshape(-1, self.size)).tolist() if whole else []
        self.first_steps += at[: whole : self.size].tolist()
        self.pending, self.pending_steps = joined[whole:], at[whole:]

    def _halve(self) -> None:
        pairs = np.array(self.medians[: len(self.medians) // 2 * 2]).reshape(-1, 2)
        self.medians, self.first_steps = pairs.mean(axis=1).tolist(), self.first_steps[: len(pairs) * 2 : 2]
        self.size *= 2
