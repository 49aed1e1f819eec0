"""A validation loss that turns and rises while the training loss does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from poise.detectors.base import Example
from poise.detectors.courses import Courses, Standing, noise_of
from poise.detectors.examples import falling_loss
from poise.records import Column, Finding, Floats, Frame, Message, Severity, Verdict

SINCE_BEST = 2  # evaluations after the best one, all above it
SLIGHT, REAL = 0.03, 0.10  # rise above the best, as a share of its level (of 1 nat at least 0.1)
NOISES = 4.0
SMOOTH_FROM = 8  # evaluations from which on single ones are smoothed over three
GAP = 1.3  # times the training loss
RISING = 1.05


def _with_evals(train: Floats, evals: Floats) -> Frame:
    rows, every = len(train), len(train) // len(evals)
    at = np.arange(1, len(evals) + 1, dtype=np.int64) * every - 1
    return Frame({"loss": Column(np.arange(rows, dtype=np.int64), train), "eval_loss": Column(at, evals)})


def _turned(evals: int, noise: float, rise: float = 1.6) -> Frame:
    t = np.linspace(0, 1, evals)
    level = np.where(t < 0.4, 3 - 2 * t / 0.4, 1 + (rise - 1) * (t - 0.4) / 0.6)
    level *= np.exp(noise * np.random.default_rng(5).standard_normal(evals))
    return _with_evals(falling_loss(evals * 10, 6, start=3.0, end=0.05), level)


def _healthy(evals: int, noise: float) -> Frame:
    train = falling_loss(evals * 10, 7, start=8.0, end=2.0)
    return _with_evals(train, train[9::10] * 1.02 * np.exp(noise * np.random.default_rng(8).standard_normal(evals)))


@dataclass(slots=True)
class Overfitting:
    """The best validation loss lies behind: at least two evaluations since, all above it, by 10 % of its level and 4 noise widths.

    Only where the training loss meanwhile fell, or lies far below: if both rise it is a divergence. A rise of 3 to 10 % is `info`.
    The onset is the first evaluation after the best one. It heals when the validation loss is back within 3 % of its best.

    Blind to: logs without a training or without a validation loss; text that gets worse while its loss falls. Delay: two
    evaluations after the turn, more where they are noisy.
    """

    courses: Courses = field(default_factory=Courses)
    standing: dict[str, Standing] = field(default_factory=dict)
    first_total: int = 2**62
    kinds: ClassVar[tuple[str, ...]] = ("overfitting",)
    fires_on: ClassVar[tuple[Example, ...]] = (
        Example("a validation loss that turns at 40 % of the run", lambda: _turned(50, 0.01), "overfitting", 200, 40),
        Example("the third of three evaluations", lambda: _with_evals(falling_loss(300, 1, 1.5, 0.5), np.array([1.45, 1.47, 1.7])), "overfitting", 199, 0),
    )  # fmt: skip
    quiet_on: ClassVar[tuple[Example, ...]] = (
        Example("a validation loss that falls with the training loss", lambda: _healthy(60, 0.01)),
        Example("noisy evaluations", lambda: _healthy(60, 0.15)),
    )

    def update(self, frame: Frame) -> Verdict:
        if "eval_loss" in frame.columns and len(frame.columns["eval_loss"]):
            self.first_total = min(self.first_total, int(frame.columns["eval_loss"].steps[0]))
        found: list[Finding] = []
        for name, step in self._evaluations(frame):
            if name == "eval_loss" or step < self.first_total:
                found += self._judge(name, step)
        return Verdict(tuple(found))

    def _evaluations(self, frame: Frame) -> Iterator[tuple[str, int]]:
        """Each evaluation in step order, with the training losses fed up to it."""
        evals = [n for n, _ in frame.members("eval_loss")]
        names = [n for n, _ in frame.members("loss")]
        yield from ((n, s) for n, s in self.courses.walk_all(frame, [*names, *evals]) if n.startswith("eval_loss"))

    def _judge(self, name: str, step: int) -> list[Finding]:
        values = self.courses.values(name)
        standing = self.standing.setdefault(name, Standing())
        if len(values) < SINCE_BEST + 1:
            return []
        smooth = _smoothed(values)
        best = int(np.argmin(smooth))
        level, now = float(smooth[best]), float(smooth[-1])
        since = smooth[best + 1 :]
        rise = (now - level) / max(abs(level), 1.0 if level < 0.1 else abs(level))
        if standing.open and rise < SLIGHT:
            return self._say(name, None, standing.onset, step, now, level)
        if len(since) < SINCE_BEST or now - level < NOISES * _noise(values, since) or not self._trains(name, best, now):
            return []
        lasting = since[-max(SINCE_BEST, len(values) // 10) :]
        if (
            rise < SLIGHT
            or len(lasting) < len(values) // 10
            or np.min(lasting) - level < rise * abs(level) / 2 * (len(values) >= SMOOTH_FROM)
        ):
            return []
        onset = int(self.courses.steps(name)[best + 1])
        return self._say(name, "warning" if rise >= REAL else "info", onset, step, now, level)

    def _trains(self, name: str, best: int, now: float) -> bool:
        """Whether the training loss fell since the best evaluation, or lies far below the present one."""
        own = "loss" + name.removeprefix("eval_loss")
        train = own if self.courses.rows(own) else "loss"
        values = self.courses.values(train)
        if not len(values):
            return False
        at = int(np.searchsorted(self.courses.steps(train), self.courses.steps(name)[best], side="right"))
        then, last = float(np.median(values[max(0, at - 5) : max(1, at)])), float(np.median(values[-5:]))
        return last <= RISING * then and (last < 0.98 * then or now > GAP * last)

    def _say(
        self, name: str, severity: Severity | None, onset: int, step: int, now: float, level: float
    ) -> list[Finding]:
        standing = self.standing[name]
        turn = standing.turn(severity, onset)
        if turn is None:
            return []
        numbers = {
            "signal": name,
            "step": standing.onset,
            "value": now,
            "best": level,
            "percent": 100 * (now - level) / max(abs(level), 1e-12),
        }
        text = "healed" if severity is None else "opened"
        return [
            Finding(
                "overfitting", name, standing.onset, step, turn[0], Message(f"detectors.overfitting.{text}", numbers), state=turn[1],
                chronic=True, value=now, expected=level, facts={"best": level},
            )
        ]  # fmt: skip


def _noise(values: Floats, since: Floats) -> float:
    """Noise of the evaluations; taken for none where there are few and they only rise since the best one."""
    few = len(values) < SMOOTH_FROM and bool(np.all(np.diff(since) > 0))
    return 0.0 if few else noise_of(values)


def _smoothed(values: Floats) -> Floats:
    """Medians of three evaluations, from the eighth on; the last one or two stand with those before them."""
    if len(values) < SMOOTH_FROM:
        return values
    padded = np.concatenate([values[:1], values, values[-1:]])
    smooth: Floats = np.median(np.lib.stride_tricks.sliding_window_view(padded, 3), axis=1)
    return smooth
