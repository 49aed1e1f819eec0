"""How the learning rate moves, and where on its way an incident lies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from poise.causes.base import Case
from poise.causes.clues import series, setting
from poise.records import Floats, Ints

Phase = Literal["warmup", "after-warmup", "constant", "peak", "decay", "zero"]


@dataclass(frozen=True, slots=True)
class Rate:
    """The learning rate around an incident.

    Args:
        at_onset: its value at the last row up to the onset.
        peak, peak_step: its largest value, and the step at which 99 % of it was first reached.
        phase: the part of the schedule in which the onset lies.
        zero_from: the step from which it is zero (below 1e-6 of the peak) to the end, or None.
        jump: (step, from, to) of the largest rise within one row after the peak, at least doubling; else None.
    """

    steps: Ints
    values: Floats
    at_onset: float
    peak: float
    peak_step: int
    phase: Phase
    zero_from: int | None
    jump: tuple[int, float, float] | None

    @property
    def warm(self) -> bool:
        """Whether the run has a warmup at all."""
        return bool(self.values[0] < 0.8 * self.peak and self.peak_step > self.steps[0])


def rate(case: Case) -> Rate | None:
    """Describe the learning rate, of the first parameter group if there are several; None where it was not logged."""
    name = next((n for n in case.columns if n == "learning_rate" or n.startswith("learning_rate/")), None)
    if name is None:
        return None
    steps, values = series(case, name)
    keep = np.isfinite(values)
    steps, values = steps[keep], values[keep]
    if not len(values):
        return None
    onset = case.incident.onset_step
    row = max(0, int(np.searchsorted(steps, onset, side="right")) - 1)
    peak = float(values.max())
    top = int(np.argmax(values >= 0.99 * peak))
    return Rate(
        steps,
        values,
        float(values[row]),
        peak,
        int(steps[top]),
        _phase(steps, values, row, top),
        _zero_from(steps, values),
        _jump(steps, values, top),
    )


def stated_rate(case: Case) -> float | None:
    """The learning rate that the log's configuration states."""
    value = setting(case, "learning_rate", "lr", "lr0", "base_lr", "max_lr")
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _phase(steps: Ints, values: Floats, row: int, top: int) -> Phase:
    peak, here = values[top], values[row]
    if here <= 1e-6 * peak or peak == 0:
        return "warmup" if row < top else "zero"
    if row < top and values[0] < 0.8 * peak:
        return "warmup"
    if values.min() >= 0.95 * peak:
        return "constant"
    if values[0] < 0.8 * peak and steps[row] <= steps[top] + max(steps[top] - steps[0], 4 * (steps[1] - steps[0])):
        return "after-warmup"
    return "peak" if here >= 0.9 * peak else "decay"


def _zero_from(steps: Ints, values: Floats) -> int | None:
    alive = np.flatnonzero(values > 1e-6 * values.max()) if values.max() > 0 else np.empty(0, np.int64)
    if not len(alive):
        return int(steps[0])
    return int(steps[alive[-1] + 1]) if alive[-1] + 1 < len(steps) else None


def _jump(steps: Ints, values: Floats, top: int) -> tuple[int, float, float] | None:
    """A rise after a fall; a top that is reached by a jump from below after an earlier fall counts too."""
    fallen = np.maximum.accumulate(values)[:-1] > 1.5 * values[:-1]
    rises = np.where(fallen & (values[1:] > 2 * values[:-1]), values[1:] - values[:-1], 0.0)
    if not len(rises) or rises.max() <= 0.05 * values.max():
        return None
    at = int(np.argmax(rises))
    return int(steps[at + 1]), float(values[at]), float(values[at + 1])
