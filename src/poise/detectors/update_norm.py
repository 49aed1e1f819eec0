"""The optimizer's update jumps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from poise.detectors.base import Example
from poise.detectors.examples import calm_norm, frame, steps
from poise.detectors.excursions import Excursions, rows_of
from poise.detectors.losses import Held
from poise.records import Finding, Floats, Frame, Ints, Surprise, Verdict
from poise.stats.robust import log10_tail

SIGNALS = ("update_norm", "update_ratio")
BACK_ROWS = 384  # a baseline's 128 rows, 128 rejected ones until it adopts a new level, and room: a rate raised within them explains it


def _doubled(factor: float, length: int, rate: float = 1.0) -> Frame:
    norm, rates = calm_norm(1000, 5, 0.1, 0.04), np.full(1000, 3e-4)
    norm[500 : 500 + length] *= factor
    rates[500:] *= rate
    return frame(steps(1000), update_norm=norm, learning_rate=rates)


def _excursions() -> Excursions:
    return Excursions("update-norm-spike", ratio=1.7, lasting=1.7, healed=1.25)


@dataclass(slots=True)
class UpdateNormSpike:
    """The update's norm (or its ratio to the weights) nearly doubles against its calm past: robust z above 6 and a factor of 1.7.

    Under Adam the update is normalised, so doubling is much: it comes when the first moment grows while the second is stale,
    and was seen some steps before loss and gradient norm (github.com/marin-community/marin/issues/1368: twice the norm, then
    a lasting loss of 1 %). A raised learning rate raises the update in proportion, and is divided out. `info`, a warning once
    the median of 8 rows stays at 1.7 times the level for 4 rows.

    Blind to: rises slower than 128 rows. Delay: none for `info`, 4 rows for a warning.
    """

    z: float = 6.0
    branch: int = 0
    rate: Held = field(default_factory=Held)
    rates: Floats = field(default_factory=lambda: np.empty(0))
    rate_steps: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    excursions: Excursions = field(default_factory=_excursions)
    kinds: ClassVar[tuple[str, ...]] = ("update-norm-spike",)
    fires_on: ClassVar[tuple[Example, ...]] = (
        Example("an update norm that doubles for 30 steps", lambda: _doubled(2.0, 30), "update-norm-spike", 500, 0),
        Example("a norm that triples once", lambda: _doubled(3.0, 1), "update-norm-spike", 500, 0),
    )
    quiet_on: ClassVar[tuple[Example, ...]] = (
        Example("a learning rate that is doubled", lambda: _doubled(2.0, 500, rate=2.0)),
        Example("a steady norm", lambda: _doubled(1.0, 1)),
    )

    def update(self, frame: Frame) -> Verdict:
        if frame.branch != self.branch:
            self.branch, self.excursions, self.rate = frame.branch, _excursions(), Held()
            self.rates, self.rate_steps = np.empty(0), np.empty(0, np.int64)
        found: list[Finding] = []
        surprise = []
        rates = frame.columns.get("learning_rate")
        self.excursions.z = self.z
        for signal in SIGNALS:
            for name, column in frame.members(signal):
                if name not in frame.calm:
                    continue
                rows = rows_of(name, column, frame.calm[name])
                far = bool((rows.z > self.z).any())
                found += self.excursions.judge(rows, self._raised(rows.steps, frame) if far else None)
                surprise.append(Surprise(name, "update", rows.steps, log10_tail(rows.z)))
        self.rate.keep(rates)
        if rates is not None:
            self.rates = np.concatenate([self.rates, rates.values])[-BACK_ROWS:]
            self.rate_steps = np.concatenate([self.rate_steps, rates.steps])[-BACK_ROWS:]
        return Verdict(tuple(found), tuple(surprise))

    def _raised(self, at: Ints, frame: Frame) -> Floats:
        """By which factor the learning rate lies above its lowest of the last 384 rows, at these steps."""
        column = frame.columns.get("learning_rate")
        values, where = self.rates, self.rate_steps
        if column is not None:
            values, where = np.concatenate([values, column.values]), np.concatenate([where, column.steps])
        if not len(values):
            return np.ones(len(at))
        padded = np.concatenate([np.full(BACK_ROWS - 1, np.inf), np.where(values > 0, values, np.inf)])
        lowest = np.lib.stride_tricks.sliding_window_view(padded, BACK_ROWS).min(axis=1)
        index = np.searchsorted(where, at, side="right") - 1
        with np.errstate(invalid="ignore", divide="ignore"):
            raised = np.where(index >= 0, values[index] / lowest[index], 1.0)
        return np.where(np.isfinite(raised), raised, 1.0)
