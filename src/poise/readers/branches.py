"""Where a log starts over, where its rows are merely out of order, and where they are said twice."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from poise.readers.steps import identity
from poise.records import Bools, Column, Floats, Frame, Ints

_LOOKED_AT = 64  # rows after a fall that are looked at
_MOST_FALLS = 4000  # beyond that it is disorder, not restarts
_MOST_TRIED = 500  # falls in a row that turned out to be none; bounds the time
_TWICE = 0.4  # share of rows equal to the one before, from which on two writers are assumed

Piece = tuple[slice, Ints, Ints | None]


def restarts(steps: Ints) -> list[int]:
    """Positions at which a new branch begins.

    A fall is a restart where the log then counts on from an earlier step, over steps that it has already had; a late or
    doubled line, which is soon followed by steps beyond the former ones, is not.
    """
    falls = np.flatnonzero(steps[1:] < steps[:-1]) + 1
    if not len(falls) or len(falls) > _MOST_FALLS:
        return []
    found: list[int] = []
    start, top, upto, tried = 0, int(steps[0]), 0, 0
    for fall in falls.tolist():
        if fall < upto:
            continue
        top = max(top, int(steps[max(start, upto) : fall].max(initial=top)))
        upto = fall
        stretch = steps[fall : fall + _LOOKED_AT]
        beyond = np.flatnonzero(stretch > top)
        length = int(beyond[0]) if len(beyond) else len(stretch)
        tried += 1
        if tried <= _MOST_TRIED and _starts_over(
            steps[start:fall], stretch[:length], len(falls) * 8 <= len(steps) + 16
        ):
            found.append(fall)
            start, top, tried = fall, int(steps[fall]), 0
        else:
            upto = fall + length
    return found


def _starts_over(before: Ints, stretch: Ints, rare: bool) -> bool:
    """Whether the rows after a fall repeat or interleave with what was already there, in order."""
    if stretch[0] <= before.min() and len(before) >= 3 and (len(stretch) >= 2 or len(before) >= 6):
        return rare
    if len(stretch) < 3 or not rare or np.any(stretch[1:] < stretch[:-1]):
        return False
    inside = before[(before >= stretch[0]) & (before <= stretch[-1])]
    repeated = np.count_nonzero(np.isin(stretch, inside))
    return bool(2 * repeated >= len(stretch) or len(np.unique(inside)) >= 2)


@dataclass(slots=True)
class Pieces:
    """Cuts columns at the restarts and puts each piece in step order; columns with the same records share their steps."""

    breaks: Ints  # record numbers at which branches begin, without the first
    disorder: int = 0  # rows that stood out of order, in the column with most of them
    _cache: dict[tuple[int, ...], tuple[object, list[Piece]]] = field(default_factory=dict)

    def cut(self, rows: Ints, steps: Ints) -> list[Piece]:
        """For each branch: the slice of points, their steps in order, and the order if it had to be changed."""
        key = (*identity(rows), *identity(steps))
        if key not in self._cache:
            edges = [0, *np.searchsorted(rows, self.breaks).tolist(), len(rows)]
            pieces = [self._piece(slice(a, b), steps[a:b]) for a, b in pairwise(edges)]
            self._cache[key] = ((rows, steps), pieces)
            self.disorder = max(
                self.disorder, sum(_out_of_order(steps[s]) for s, _, order in pieces if order is not None)
            )
        return self._cache[key][1]

    @staticmethod
    def _piece(where: slice, steps: Ints) -> Piece:
        if len(steps) < 2 or not np.any(steps[1:] < steps[:-1]):
            return where, steps, None
        order = np.argsort(steps, kind="stable")
        return where, steps[order], order


def _out_of_order(steps: Ints) -> int:
    return int(np.count_nonzero(steps < np.maximum.accumulate(steps)))


def said_twice(steps: Ints, values: Floats) -> bool:
    """Whether about every point of a series comes twice in a row, as two writers of one file leave it."""
    return len(steps) >= 6 and float(np.count_nonzero(_same_as_before(steps, values))) >= _TWICE * len(steps)


def fold(column: Column) -> tuple[Column, int]:
    """Drop the points that repeat the one before; also say how many."""
    same = _same_as_before(column.steps, column.values)
    count = int(np.count_nonzero(same))
    if not count:
        return column, 0
    return Column(column.steps[~same], column.values[~same], column.resolution, column.shape), count


def is_copy(frame: Frame, before: Frame) -> bool:
    """Whether a branch repeats the one before number by number: the text was printed or pasted twice."""
    if not frame.columns or frame.columns.keys() != before.columns.keys():
        return False
    return all(_equal(c, before.columns[name]) for name, c in frame.columns.items())


def _equal(a: Column, b: Column) -> bool:
    return np.array_equal(a.steps, b.steps) and np.array_equal(a.values, b.values, equal_nan=True)


def _same_as_before(steps: Ints, values: Floats) -> Bools:
    same = np.zeros(len(steps), np.bool_)
    if values.ndim == 1 and len(steps) > 1:
        later, former = values[1:], values[:-1]
        same[1:] = (steps[1:] == steps[:-1]) & ((later == former) | (np.isnan(later) & np.isnan(former)))
    return same
