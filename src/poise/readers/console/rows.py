"""Which lines belong to one record: those of one step, however many lines its numbers are spread over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poise.records import Floats, Ints


@dataclass(slots=True)
class Rows:
    """The record that is being written, while blocks of lines pass by.

    A line opens a new record where it states another step than the record, or repeats a number of it. A bar that is
    drawn again at the same step stays in its record: its last numbers count.
    """

    row: int = -1
    step: float = float("nan")
    seen: int = 0
    rank: float = -1.0
    last_step: float = float("nan")
    fell: bool = False

    def assign(self, steps: Floats, masks: list[int], bars: list[bool], ranks: Floats | None) -> Ints:
        """Record numbers of some lines, in file order.

        Args:
            steps: (n,) the step that each line states, NaN for none.
            masks: (n,) or (1,) where all are alike: a bit for each column that the line fills, positions left out.
            bars: (n,) or (1,): redrawn lines.
            ranks: (n,) who wrote the line; None where nobody says.
        """
        count = len(steps)
        self._follow(steps)
        if len(masks) == 1 and masks[0] and not bars[0]:
            first = self._first(steps, masks[0], ranks)
            self.row = first + count - 1
            self.step, self.seen = float(steps[-1]), masks[0]
            self.rank = float(ranks[-1]) if ranks is not None else self.rank
            return np.arange(first, first + count, dtype=np.int64)
        many = count if len(masks) == 1 else 1
        return self._each(steps.tolist(), masks * many, bars * many, None if ranks is None else ranks.tolist())

    def _first(self, steps: Floats, mask: int, ranks: Floats | None) -> int:
        rank = None if ranks is None else ranks[:1].tolist()
        return int(self._each(steps[:1].tolist(), [mask], [False], rank)[0])

    def _each(self, steps: list[float], masks: list[int], bars: list[bool], ranks: list[float] | None) -> Ints:
        row, now, seen = self.row, self.step, self.seen
        rows = []
        for i, step in enumerate(steps):
            mask = masks[i]
            same = step == now
            other = step == step and now == now and not same
            if ranks is not None and ranks[i] != self.rank:
                other, self.rank = True, ranks[i]
            if row < 0 or other or (seen & mask and not (same and bars[i])):
                row, now, seen = row + 1, step, mask
            else:
                seen |= mask
                if step == step:
                    now = step
            rows.append(row)
        self.row, self.step, self.seen = row, now, seen
        return np.array(rows, np.int64)

    def _follow(self, steps: Floats) -> None:
        """Remember the last step, and whether steps ever went back."""
        stated = steps[~np.isnan(steps)]
        if len(stated):
            before = self.last_step
            self.fell |= bool(stated[0] < before) or bool(np.any(stated[1:] < stated[:-1]))
            self.last_step = float(stated[-1])
