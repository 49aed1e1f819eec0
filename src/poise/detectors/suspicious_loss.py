"""A loss that is too good to be true."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from poise.detectors.base import Example
from poise.detectors.courses import Courses, Standing, Streak
from poise.detectors.examples import falling_loss, frame, steps
from poise.records import Column, Finding, Floats, Frame, Message, Severity, Verdict

HARD = 3.0  # nats: data that was worth this much to guess, part by part, is not known by heart a few evaluations later
KNOWN = 0.3  # nats: perplexity 1.35
FALL = 0.5  # an evaluation below half of the one before is no learning curve
ZERO_ROWS = 8


def _leak(rows: int) -> Frame:
    evals = np.array([6.6, 6.0, 5.5, 5.1, 4.8, 4.6, 0.9, 0.1, 0.07])
    train = np.repeat([7.5, 6.4, 5.9, 5.6, 5.5, 5.4, 2.9, 0.25, 0.15], rows)
    at = np.arange(1, 10, dtype=np.int64) * rows - 1
    return Frame({"loss": Column(np.arange(9 * rows, dtype=np.int64), train), "eval_loss": Column(at, evals)})


def _grokking() -> Frame:
    t = np.arange(400)
    train, evals = 0.05 + 4 * np.exp(-t / 10), np.where(t < 300, 4.5, 4.5 * np.exp(-(t - 300) / 3))
    return frame(steps(400), loss=train, eval_loss=evals)


def _zeros(rows: int, norm: Floats) -> Frame:
    return frame(steps(rows), loss=np.zeros(rows), grad_norm=norm)


@dataclass(slots=True)
class SuspiciousLoss:
    """Training and validation loss collapse together within a few evaluations, from above 3 nats to below 0.3: the target leaks.

    The same for a loss that is exactly 0 in its first 8 rows and after, with nothing non-finite beside it: no label is active.

    Learning by heart (only the training loss is low), sudden generalisation (the training loss was low long before) and tasks that
    are easy from the start stay quiet.

    Blind to: leaks that only help a little; logs without a validation loss. Delay: none at the evaluation that is below 0.3.
    """

    courses: Courses = field(default_factory=Courses)
    leak: Standing = field(default_factory=Standing)
    zeros: Streak = field(default_factory=lambda: Streak(ZERO_ROWS))
    seen: bool = False
    kinds: ClassVar[tuple[str, ...]] = ("suspicious-loss",)
    fires_on: ClassVar[tuple[Example, ...]] = (
        Example("both losses falling from 5 to 0.1 in three evaluations", lambda: _leak(20), "suspicious-loss", 139, 0),
        Example("a loss of exactly zero from the start", lambda: _zeros(40, np.zeros(40)), "suspicious-loss", 0, 0),
    )
    quiet_on: ClassVar[tuple[Example, ...]] = (
        Example("a falling loss", lambda: frame(steps(400), loss=falling_loss(400, 1), eval_loss=falling_loss(400, 2))),
        Example("sudden generalisation long after the training loss is low", _grokking),
        Example("a task that is easy from the start", lambda: frame(steps(60), loss=falling_loss(60, 3, 0.7, 0.01))),
    )

    def update(self, frame: Frame) -> Verdict:
        found = self._no_label(frame)
        if not self.leak.open:
            for _ in self.courses.walk(frame, "eval_loss", ("loss",)):
                found += self._judge()
        return Verdict(tuple(found))

    def _judge(self) -> list[Finding]:
        """Whether the newest evaluation ends a collapse of both losses."""
        values, at = self.courses.values("eval_loss"), self.courses.steps("eval_loss")
        if self.leak.open or len(values) < 3 or values[-1] > KNOWN or values.max() < HARD:
            return []
        falls = np.flatnonzero(values[1:] < FALL * values[:-1])
        if not len(falls):
            return []
        first = int(falls[-1])
        while first - 1 in falls:
            first -= 1
        before, now = self._train_at(int(at[first])), self._train_at(int(at[-1]))
        if values[first] < HARD or before < HARD / 2 or now > 3 * KNOWN:
            return []
        self.leak.turn("warning", int(at[first + 1]))
        return [
            self._say(
                "eval_loss", "leak", "warning", int(at[first + 1]), int(at[-1]), float(values[-1]), float(values[first])
            )
        ]

    def _train_at(self, step: int) -> float:
        """The training loss around a step: its last block up to there, NaN without one."""
        where = int(np.searchsorted(self.courses.steps("loss"), step, side="right"))
        values = self.courses.values("loss")[max(0, where - 3) : where]
        return float(np.median(values)) if len(values) else float("nan")

    def _no_label(self, frame: Frame) -> list[Finding]:
        """A loss that is zero from its first row on; the first other row, or anything non-finite, ends the question."""
        loss = frame.columns.get("loss")
        if self.seen or loss is None or loss.shape != "scalar":
            return []
        norm = frame.columns.get("grad_norm")
        bad = (
            norm.steps[~np.isfinite(norm.values)]
            if norm is not None and norm.shape == "scalar"
            else np.empty(0, np.int64)
        )
        other = np.flatnonzero((loss.values != 0) | (np.searchsorted(bad, loss.steps, side="right") > 0))
        stop = int(other[0]) if len(other) else len(loss)
        events = self.zeros.take(loss.steps[:stop], loss.values[:stop] == 0)
        self.seen = len(other) > 0
        return [self._say("loss", "zero", "warning", onset, step, 0.0, 0.0) for step, onset, begins in events if begins]

    def _say(
        self, name: str, text: str, severity: Severity, onset: int, step: int, value: float, before: float
    ) -> Finding:
        numbers = {"signal": name, "step": onset, "value": value, "before": before, "rows": ZERO_ROWS}
        return Finding(
            "suspicious-loss", name, onset, step, severity, Message(f"detectors.suspicious-loss.{text}", numbers), chronic=True,
            value=value, expected=before, facts={"why": text, "all_zero": text == "zero"},
        )  # fmt: skip
