"""A small plot of text. Every column shows the least and the greatest value that falls into it, so no spike is hidden."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poise.records import Bools, Floats, Ints
from poise.report.layout import cells

_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
DECADES = 2.5  # a positive series that spans more is drawn on a log axis


@dataclass(frozen=True, slots=True)
class _Axis:
    low: float
    high: float
    log: bool

    def place(self, values: Floats, rows: int) -> Ints:
        """Rows from the top, 0 to rows - 1."""
        v, low, high = (
            (np.log10(values), np.log10(self.low), np.log10(self.high)) if self.log else (values, self.low, self.high)
        )
        with np.errstate(over="ignore", invalid="ignore"):
            share = (high / 2 - v / 2) / ((high / 2 - low / 2) or 1.0)
        return np.clip(np.round(np.nan_to_num(share) * (rows - 1)), 0, rows - 1).astype(np.int64)


def plot(
    steps: Ints, values: Floats, width: int, height: int = 5, mark: int | None = None, braille: bool = True
) -> list[str]:
    """Draw values over steps as lines of text.

    Args:
        steps: (n,) never decreasing.
        values: (n,) numbers; NaN and Inf are marked `x` on a line below.
        width: cells of the whole, labels included.
        height: lines of the picture itself.
        mark: a step to point at with `^`.
        braille: dots of braille, else asterisks.

    Returns:
        Lines, the largest and smallest value at the left, first and last step below; empty without a point.
    """
    if not len(steps):
        return []
    fine = np.isfinite(values)
    axis = _axis(values[fine])
    labels = [f"{axis.high:.4g}", *[""] * (height - 2), f"{axis.low:.4g}"]
    margin = max(map(len, labels))
    room = max(width - margin - 2, 8)
    bar = "│" if braille else "|"
    rows = _picture(steps, values, fine, axis, room, height, braille)
    lines = [f"{label:>{margin}} {bar}{row}".rstrip() for label, row in zip(labels, rows, strict=True)]
    for at, letter in ((steps[~fine], "x"), (np.array([] if mark is None else [mark]), "^")):
        below = _below(steps, at, room, letter)
        if below.strip():
            lines.append(f"{'':>{margin}} {bar}{below.rstrip()}")
    first, last = str(int(steps[0])), str(int(steps[-1]))
    gap = room - len(first) - len(last)
    lines.append(f"{'':>{margin}}  {first}{' ' * gap}{last}" if gap > 0 else f"{'':>{margin}}  {first}"[:width])
    return [line for line in lines if cells(line) <= max(width, margin + 10)]


def _axis(values: Floats) -> _Axis:
    if not len(values):
        return _Axis(0.0, 1.0, False)
    low, high = float(values.min()), float(values.max())
    log = low > 0 and high / low > 10**DECADES
    return _Axis(low, high, log)


def _picture(
    steps: Ints, values: Floats, fine: Bools, axis: _Axis, width: int, height: int, braille: bool
) -> list[str]:
    wide, high = (2 * width, 4 * height) if braille else (width, height)
    dots = np.zeros((high, wide), bool)
    x, y = _columns(steps, steps[fine], wide), axis.place(values[fine], high)
    broken = np.diff(np.flatnonzero(fine), prepend=0) > 1
    for column, top, bottom in _strokes(x, y, broken):
        dots[top : bottom + 1, column] = True
    if not braille:
        return ["".join("*" if dot else " " for dot in row) for row in dots]
    letters = np.zeros((height, width), np.int64)
    for dx in range(2):
        for dy in range(4):
            letters |= np.where(dots[dy::4, dx::2], _DOTS[dx][dy], 0)
    return ["".join(chr(0x2800 + code) if code else " " for code in row) for row in letters.tolist()]


def _strokes(x: Ints, y: Ints, broken: Bools) -> list[tuple[int, int, int]]:
    """(column, top, bottom) for each column to ink: the extremes of its points, and lines between neighbouring points.

    Args:
        x, y: (n,) where the points are.
        broken: (n,) whether the line to the point before is broken by values that are not finite.
    """
    if not len(x):
        return []
    starts = np.flatnonzero(np.r_[True, x[1:] != x[:-1]])
    columns, tops, bottoms = (
        x[starts].tolist(),
        np.minimum.reduceat(y, starts).tolist(),
        np.maximum.reduceat(y, starts).tolist(),
    )
    firsts, lasts = y[starts].tolist(), y[np.r_[starts[1:], len(x)] - 1].tolist()
    breaks = broken[starts].tolist()
    strokes = list(zip(columns, tops, bottoms, strict=True))
    for i in range(1, len(columns)):
        if not breaks[i]:
            strokes += _line(columns[i - 1], lasts[i - 1], columns[i], firsts[i])
    return strokes


def _line(x0: int, y0: int, x1: int, y1: int) -> list[tuple[int, int, int]]:
    """Strokes of the straight line between two points."""
    edges = [round(y0 + (y1 - y0) * (2 * i + 1) / (2 * (x1 - x0))) for i in range(x1 - x0)]
    ys = [y0, *edges, y1]
    return [(x0 + i, min(a, b), max(a, b)) for i, (a, b) in enumerate(zip(ys, ys[1:], strict=False))]


def _below(steps: Ints, at: Ints, width: int, letter: str) -> str:
    """A line with a letter under each step of `at` that lies inside the picture."""
    below = [" "] * width
    inside = at[(at >= steps[0]) & (at <= steps[-1])]
    for column in np.unique(_columns(steps, inside, width)).tolist():
        below[column] = letter
    return "".join(below)


def _columns(steps: Ints, at: Ints, width: int) -> Ints:
    start, span = float(steps[0]), max(float(steps[-1]) - float(steps[0]), 1.0)
    columns: Ints = np.minimum((at - start) * (width / (span + span / max(len(steps), 2) / 2)), width - 1).astype(
        np.int64
    )
    return columns
