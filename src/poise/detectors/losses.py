"""Which loss columns are judged, and on what axis. Shared by the loss detectors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from poise.records import Bools, Calm, Column, Floats, Frame, Ints

UNKNOWN_NOISE = 0.3  # relative; taken for the noise of a loss while its baseline has fewer than 4 rows


@dataclass(frozen=True, slots=True)
class Loss:
    """The finite rows of one loss column with their baseline."""

    name: str
    steps: Ints
    values: Floats
    level: Floats
    sigma: Floats
    """Noise as a share of the level (the log axis), `UNKNOWN_NOISE` where not known."""
    z: Floats

    def __len__(self) -> int:
        return len(self.steps)


@dataclass(slots=True)
class Total:
    """Remembers where the total loss begins: from there on its parts are not judged on their own."""

    first: int = 2**62

    def judged(self, frame: Frame) -> Iterator[Loss]:
        """Yield the total loss, and each part as far as there is no total yet."""
        if "loss" in frame.columns and len(frame.columns["loss"]):
            self.first = min(self.first, int(frame.columns["loss"].steps[0]))
        for name, column in frame.members("loss"):
            if column.shape != "scalar" or name not in frame.calm:
                continue
            mine = np.ones(len(column), bool) if name == "loss" else column.steps < self.first
            yield finite_rows(name, column, frame.calm[name], mine)


def finite_rows(name: str, column: Column, calm: Calm, mine: Bools | None = None) -> Loss:
    """Select the rows with a finite value."""
    keep = np.isfinite(column.values) if mine is None else mine & np.isfinite(column.values)
    level, scale, log = calm.level[keep], calm.scale[keep], calm.log[keep]
    with np.errstate(invalid="ignore", divide="ignore"):
        sigma = np.where(log, scale, scale / np.abs(level))
    sigma = np.where(np.isfinite(sigma), sigma, UNKNOWN_NOISE)
    return Loss(name, column.steps[keep], column.values[keep], level, sigma, calm.z[keep])


def rise(values: Floats, reference: Floats | float, size: Floats | float) -> Floats:
    """How far values lie above a reference: log ratio where both are positive, else the difference as a share of `size`."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        ratio = np.log(values / reference)
        difference = (values - reference) / size
    return np.where((values > 0) & (np.asarray(reference) > 0), ratio, difference)


@dataclass(slots=True)
class Held:
    """The value of a slower signal last heard of at each step of a faster one."""

    last: float = float("nan")

    def at(self, steps: Ints, column: Column | None) -> Floats:
        """Values at `steps`, from this frame's column and what was known before."""
        if column is None or not len(column):
            return np.full(len(steps), self.last)
        return np.concatenate([[self.last], column.values])[np.searchsorted(column.steps, steps, side="right")]

    def keep(self, column: Column | None) -> None:
        """Remember the frame's last value, after all signals of the frame were looked at."""
        if column is not None and len(column):
            self.last = float(column.values[-1])
