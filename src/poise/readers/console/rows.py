"""Which lines belong to one record: those of one step, however many lines its numbers are spread over."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from poise.records import Floats, Ints

STEP, SAMPLE, EPOCH = 0, 1, 2
_NAN = float("nan")


def kind_of(rank: int | None) -> int:
    """What a position counts, by the rank of its name: numbers of different kinds are not compared."""
    return STEP if rank in (None, 0, 1, 2, 4) else SAMPLE if rank in (3, 5) else EPOCH


@dataclass(slots=True)
class Line:
    """What all lines of one shape have in common here.

    Args:
        mask: a bit for each column that the line fills, positions left out.
        bar: the line is drawn again and again while a step lasts.
        kind: what its position counts.
    """

    mask: int
    bar: bool
    kind: int


@dataclass(slots=True)
class Rows:
    """The record that is being written, while blocks of lines pass by.

    A line opens a new record where it states another step than the record, or repeats a number of it. A bar that is
    drawn again at the same step stays in its record: its last numbers count. Each rank may say a number once.
    """

    row: int = -1
    now: list[float] = field(default_factory=lambda: [_NAN, _NAN, _NAN])
    seen: dict[float, int] = field(default_factory=dict)
    last_step: float = _NAN
    fell: bool = False

    def assign(self, steps: Floats, epochs: Floats | None, lines: list[Line], ranks: Floats | None) -> Ints:
        """Record numbers of some lines, in file order.

        Args:
            steps: (n,) the position that each line states, NaN for none.
            epochs: (n,) the epoch that it states beside a finer position, NaN for none; None where none does.
            lines: (n,), or (1,) where all are alike.
            ranks: (n,) who wrote the line, -1 for nobody knows; None where nobody says.
        """
        count = len(steps)
        self._follow(steps)
        if len(lines) == 1 and lines[0].mask and not lines[0].bar and ranks is None:
            first = int(self._each(steps[:1].tolist(), None if epochs is None else epochs[:1].tolist(), lines, None)[0])
            self.row = first + count - 1
            if count > 1:
                self._open(lines[0], float(steps[-1]), -1.0, _NAN if epochs is None else float(epochs[-1]))
            return np.arange(first, first + count, dtype=np.int64)
        if len(lines) == 1:
            lines = lines * count
        stated = None if epochs is None else epochs.tolist()
        return self._each(steps.tolist(), stated, lines, None if ranks is None else ranks.tolist())

    def _open(self, line: Line, step: float, rank: float, epoch: float) -> None:
        self.now = [_NAN, _NAN, epoch]
        self.now[line.kind] = step
        self.seen = {rank: line.mask}

    def _each(
        self, steps: list[float], epochs: list[float] | None, lines: list[Line], ranks: list[float] | None
    ) -> Ints:
        rows = []
        for i, step in enumerate(steps):
            line = lines[i]
            rank = -1.0 if ranks is None else ranks[i]
            epoch = _NAN if epochs is None else epochs[i]
            same = step == self.now[line.kind]
            moved = step == step and not same and self._differs(line.kind, step)
            moved = moved or (epoch == epoch and self.now[EPOCH] == self.now[EPOCH] != epoch)
            repeats = self.seen.get(rank, 0) & line.mask and not (same and line.bar)
            if self.row < 0 or repeats or moved:
                self.row += 1
                self._open(line, step, rank, epoch)
            else:
                self.seen[rank] = self.seen.get(rank, 0) | line.mask
                if step == step:
                    self.now[line.kind] = step
                if epoch == epoch:
                    self.now[EPOCH] = epoch
            rows.append(self.row)
        return np.array(rows, np.int64)

    def _differs(self, kind: int, step: float) -> bool:
        """Whether another position of this kind means another record: the record has one, or an epoch follows steps."""
        now = self.now
        follows = kind == EPOCH and step != now[STEP] and (now[STEP] == now[STEP] or now[SAMPLE] == now[SAMPLE])
        return now[kind] == now[kind] or follows

    def _follow(self, steps: Floats) -> None:
        """Remember the last step, and whether steps ever went back."""
        stated = steps[~np.isnan(steps)]
        if len(stated):
            before = self.last_step
            self.fell |= bool(stated[0] < before) or bool(np.any(stated[1:] < stated[:-1]))
            self.last_step = float(stated[-1])
