"""A loss that rises and does not come back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from poise.detectors.base import Example
from poise.detectors.examples import falling_loss, frame, steps
from poise.detectors.losses import Held, Loss, Total, rise
from poise.records import Bools, Finding, Floats, Frame, Ints, Message, Severity, State, Verdict
from poise.stats.rolling import RollingMedian
from poise.stats.wander import Wander

WINDOW = 9  # rows of the smoothed loss
CONFIRM = 3  # rows in a row
SHARE = 0.08  # least lasting rise, of the level
NOISES = 4.0  # least lasting rise, in standard deviations of single rows (= 9 of the smoothed loss)
WANDERS = 5.0  # least lasting rise, in changes of the smoothed loss over 32 rows
LR_ALLOWANCE = 0.3  # a restart of the learning rate lifts a healthy loss; up to this it is expected
LR_RATIO = 1.5
LOST = 0.3  # log rise (35 %) at which a lasting rise is critical
CRITICAL_ROWS = 16
HEALED = 0.01
LONG = 64  # rows of an excursion that is worth a warning even when it healed


def _risen(at: int, factor: float, over: int, rows: int = 1000) -> Frame:
    loss = falling_loss(rows, seed=3)
    ramp = np.clip((np.arange(rows) - at) / over, 0, 1)
    return frame(steps(rows), loss=loss * factor**ramp)


def _early() -> Frame:
    loss = np.full(40, 7.5) * np.exp(0.03 * np.random.default_rng(4).standard_normal(40))
    loss[:4] = [1.4, 3.3, 12.0, 30.0]
    return frame(steps(40, 5), loss=loss)


def _one_spike() -> Frame:
    loss = falling_loss(1000, seed=5)
    loss[700:703] *= 3
    return frame(steps(1000), loss=loss)


def _restart() -> Frame:
    t = np.arange(1000)
    rate = 3e-4 * np.where(t < 500, 1 - t / 520, np.maximum(0.05, 1 - (t - 500) / 520))
    loss = falling_loss(1000, seed=6) * (1 + 0.15 * np.exp(-(t - 500) / 150) * (t >= 500))
    return frame(steps(1000), loss=loss, learning_rate=rate)


@dataclass(slots=True)
class _Track:
    medians: RollingMedian = field(default_factory=lambda: RollingMedian(WINDOW))
    rows: int = 0
    start: float = float("nan")
    best: float = float("inf")
    best_rate: float = float("nan")
    calm_step: int = -1  # last step at which the raw loss was near its best
    next_step: int = -1  # the step after it
    streak: int = 0
    open: bool = False
    onset: int = 0
    former: float = 0.0
    limit: float = 0.0
    sigma: float = 0.0
    sigma_sum: float = 0.0
    wander: Wander = field(default_factory=Wander)
    peak: float = 0.0
    rows_open: int = 0
    rows_before: int = 0
    severity: Severity = "warning"


@dataclass(slots=True)
class Divergence:
    """The smoothed loss (median of 9 rows) stands above the best it ever had, by more than 8 % and more than 4 sigma of the rows.

    Sudden and slow rises alike, since the reference is the best of the whole run and not the recent past. Critical once
    16 rows are lost and the rise is above 35 %, or half of what the run had learnt is gone. It heals when the smoothed loss is
    back within 1 %. A raised learning rate explains a rise of up to 30 %.

    Blind to: a rise smaller than the noise of single rows; harder data (a domain switch looks the same: check the source).
    Delay: 5 to 8 rows for a jump.
    """

    share: float = SHARE
    noises: float = NOISES
    total: Total = field(default_factory=Total)
    tracks: dict[str, _Track] = field(default_factory=dict)
    rate: Held = field(default_factory=Held)
    kinds: ClassVar[tuple[str, ...]] = ("divergence",)
    fires_on: ClassVar[tuple[Example, ...]] = (
        Example(
            "a loss that jumps to three times its level and stays", lambda: _risen(600, 3.0, 1), "divergence", 600, 2
        ),
        Example("a slow rise over 200 steps", lambda: _risen(500, 1.6, 200), "divergence", 530, 40),
        Example("a run that fails within its first rows", _early, "divergence", 10, 5),
    )
    quiet_on: ClassVar[tuple[Example, ...]] = (
        Example("a falling loss with noise", lambda: _risen(900, 1.0, 1)),
        Example("a single spike", _one_spike),
        Example("a learning-rate restart that lifts the loss by 15 %", _restart),
    )

    def update(self, frame: Frame) -> Verdict:
        found: list[Finding] = []
        rates = frame.columns.get("learning_rate")
        for loss in self.total.judged(frame):
            if len(loss):
                track = self.tracks.setdefault(loss.name, _Track())
                found += self._judge(track, loss, self.rate.at(loss.steps, rates))
        self.rate.keep(rates)
        return Verdict(tuple(found))

    def _judge(self, track: _Track, loss: Loss, rates: Floats) -> list[Finding]:
        found: list[Finding] = []
        medians = track.medians.update(loss.values)
        noise = self._noise(track, loss, medians)
        if not track.rows:
            track.start, track.next_step = float(loss.values[0]), int(loss.steps[0])
        row = 0
        while row < len(loss):
            row, finding = (self._follow if track.open else self._search)(track, loss, medians, noise, rates, row)
            found += finding
        return found

    def _noise(self, track: _Track, loss: Loss, medians: Floats) -> Floats:
        """The least rise that noise does not explain: of rows, by the larger of now and so far, and of the smoothed loss itself."""
        total = np.cumsum(np.concatenate([[track.sigma_sum], loss.sigma]))  # sequential, so that no cut changes a bit
        sofar = total[1:] / (track.rows + np.arange(1, len(loss) + 1))
        track.sigma_sum = float(total[-1])
        size = np.maximum(np.abs(medians), 1e-300)
        slow = track.wander.update(np.sign(medians) * np.log(size))
        return np.maximum(self.noises * np.clip(sofar, loss.sigma, 2 * loss.sigma), WANDERS * slow)

    def _search(
        self, track: _Track, loss: Loss, medians: Floats, noise: Floats, rates: Floats, row: int
    ) -> tuple[int, list[Finding]]:
        """Look for the row at which a rise is confirmed."""
        part = slice(row, len(loss))
        smooth, raw = medians[part], loss.values[part]
        best = np.minimum.accumulate(np.concatenate([[track.best], smooth]))
        at_best = self._rate_at_best(track, smooth, best, rates[part])
        with np.errstate(invalid="ignore"):
            restarted = rates[part] > LR_RATIO * at_best[:-1]
        limit = np.maximum(self.share, noise[part]) + np.where(restarted, LR_ALLOWANCE, 0.0)
        size = np.maximum(np.abs(best[:-1]), abs(track.start - best[:-1]))
        high = _finite(rise(smooth, best[:-1], size)) > limit
        near = _finite(rise(raw, best[:-1], size)) <= limit / 2
        confirmed = _runs(high, track.streak) >= CONFIRM
        where = np.flatnonzero(confirmed)
        at = int(where[0]) if len(where) else len(smooth) - 1
        self._remember_calm(track, loss.steps[part], near, at)
        track.rows, track.best = track.rows + at + 1, float(best[at + 1] if not len(where) else best[at])
        track.streak, track.best_rate = int(_runs(high, track.streak)[at]), float(at_best[at + 1])
        if not len(where):
            return len(loss), []
        return row + at + 1, [
            self._open(track, loss, row + at, float(smooth[at]), max(self.share, float(noise[row + at])))
        ]

    def _rate_at_best(self, track: _Track, smooth: Floats, best: Floats, rates: Floats) -> Floats:
        """The learning rate at which the best so far was reached, before each row and after the last."""
        index = np.maximum.accumulate(np.where(smooth < best[:-1], np.arange(len(smooth)), -1))
        return np.concatenate([[track.best_rate], np.where(index >= 0, rates[index], track.best_rate)])

    def _remember_calm(self, track: _Track, step: Ints, near: Bools, at: int) -> None:
        """Keep the last step at which the raw loss was near its best, and the one after it: a rise began there."""
        calm = np.flatnonzero(near[: at + 1])
        if len(calm):
            track.calm_step = int(step[calm[-1]])
            track.next_step = int(step[calm[-1] + 1]) if calm[-1] + 1 <= at else -1
        elif track.next_step < 0:
            track.next_step = int(step[0])

    def _open(self, track: _Track, loss: Loss, row: int, smooth: float, limit: float) -> Finding:
        track.open, track.streak, track.rows_open = True, 0, 0
        track.rows_before = track.rows
        track.onset = track.next_step if track.next_step >= 0 else int(loss.steps[row])
        track.former, track.limit, track.sigma = track.best, limit, float(loss.sigma[row])
        track.peak = smooth
        return self._say(track, loss, row, "warning", "open", "opened", smooth)

    def _follow(
        self, track: _Track, loss: Loss, medians: Floats, noise: Floats, rates: Floats, row: int
    ) -> tuple[int, list[Finding]]:
        """Watch an open divergence: does it become critical, does it heal?"""
        smooth = medians[row:]
        size = max(abs(track.former), abs(track.start - track.former)) or 1.0
        above = _finite(rise(smooth, track.former, size))
        count = track.rows_open + np.arange(1, len(smooth) + 1)
        healed = above <= max(HEALED, track.sigma)
        half_lost = smooth - track.former > 0.5 * (track.start - track.former)
        progress = rise(np.array([track.start]), track.former, size)[0] > 2 * track.limit
        lost = (above > max(LOST, track.limit)) | (half_lost & (above > track.limit) & progress)
        worse = lost & (count >= min(CRITICAL_ROWS, max(4, track.rows_before))) & (track.severity != "critical")
        events = np.flatnonzero(healed | worse)
        at = int(events[0]) if len(events) else len(smooth) - 1
        track.rows_open, track.rows = int(count[at]), track.rows + at + 1
        track.peak = max(track.peak, float(smooth[: at + 1].max()))
        if not len(events):
            return len(loss), []
        if healed[at]:
            track.open, track.next_step = False, -1
            severity: Severity = "info" if track.rows_open <= LONG else "warning"
            return row + at + 1, [self._say(track, loss, row + at, severity, "recovered", "healed", float(smooth[at]))]
        return row + at + 1, [self._say(track, loss, row + at, "critical", "open", "lost", float(smooth[at]))]

    def _say(
        self, track: _Track, loss: Loss, row: int, severity: Severity, state: State, text: str, smooth: float
    ) -> Finding:
        track.severity = severity
        numbers = {
            "signal": loss.name,
            "step": track.onset,
            "value": smooth,
            "best": track.former,
            "peak": track.peak,
            "rows": track.rows_open,
        }
        return Finding(
            "divergence", loss.name, track.onset, int(loss.steps[row]), severity, Message(f"detectors.divergence.{text}", numbers),
            state=state, value=smooth, expected=track.former,
            facts={"start": track.start, "sigma": track.sigma, "rows": track.rows_open, "peak": track.peak, "rows_before": track.rows_before},
        )  # fmt: skip


def _finite(values: Floats) -> Floats:
    return np.nan_to_num(values, nan=0.0, posinf=np.inf, neginf=-np.inf)


def _runs(flags: Bools, before: int) -> Ints:
    """Length of the run of True that ends at each row; `before` are the trues just before the first."""
    index = np.arange(1, len(flags) + 1)
    last_false = np.maximum.accumulate(np.where(flags, 0, index))
    return np.where(last_false == 0, index + before, index - last_false)
