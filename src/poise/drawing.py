"""A small plot of text: dots of braille, two wide and four high per letter. NaN and Inf are marked in a line below."""

from __future__ import annotations

import numpy as np

from poise.records import Bools, Floats, Ints

_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))


def draw(steps: Ints, values: Floats, width: int = 60, height: int = 6, mark: int | None = None) -> str:
    """Plot values over steps.

    Args:
        steps: (n,) step numbers.
        values: (n,) numbers; non-finite ones are shown as `x` below the plot.
        width, height: in letters.
        mark: a step to point at with `^`.

    Returns:
        Lines with the largest and smallest value at the left and the first and last step below; empty without a point.
    """
    if not len(steps):
        return ""
    fine = np.isfinite(values)
    low, high = (float(values[fine].min()), float(values[fine].max())) if fine.any() else (0.0, 1.0)
    letters = _letters(steps, values, fine, width, height, low, high)
    labels = [f"{high:.4g}", *[""] * (height - 2), f"{low:.4g}"]
    margin = max(map(len, labels))
    lines = [f"{label:>{margin}} |{row}" for label, row in zip(labels, letters, strict=True)]
    below = _marks(steps, fine, width, mark)
    if below.strip():
        lines.append(f"{'':>{margin}} |{below.rstrip()}")
    first, last = str(int(steps[0])), str(int(steps[-1]))
    lines.append(f"{'':>{margin}}  {first}{last:>{max(width - len(first), len(last) + 1)}}")
    return "\n".join(lines)


def _letters(steps: Ints, values: Floats, fine: Bools, width: int, height: int, low: float, high: float) -> list[str]:
    grid = np.zeros((height, width), np.int64)
    x = _columns(steps, steps[fine], 2 * width)
    y = np.round((high - values[fine]) / (high - low or 1.0) * (4 * height - 1)).astype(np.int64)
    for column, row in zip(x.tolist(), y.tolist(), strict=True):
        grid[row // 4, column // 2] |= _DOTS[column % 2][row % 4]
    return ["".join(chr(0x2800 + int(cell)) if cell else " " for cell in row) for row in grid]


def _marks(steps: Ints, fine: Bools, width: int, mark: int | None) -> str:
    below = [" "] * width
    for column in _columns(steps, steps[~fine], width).tolist():
        below[column] = "x"
    if mark is not None and steps[0] <= mark <= steps[-1]:
        below[int(_columns(steps, np.array([mark]), width)[0])] = "^"
    return "".join(below)


def _columns(steps: Ints, at: Ints, width: int) -> Ints:
    span = max(int(steps[-1]) - int(steps[0]), 1)
    columns: Ints = np.minimum((at - steps[0]) * width // (span + 1), width - 1)
    return columns
