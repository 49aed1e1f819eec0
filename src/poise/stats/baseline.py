"""What a signal would look like in health, learnt from its own calm past. One per signal, shared by all detectors.

The level is the end of a resistant line through the last 128 accepted values, so it follows a falling trend, and the scale
is the MAD around that line, so a trend does not widen it. Both are recomputed at absolute row numbers divisible by 32
only (and at a few early rows) and stay constant in between: that makes the result independent of how the stream is cut
into frames, and lets a million rows be judged in a fraction of a second. A value far outside is judged but not learnt from.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from poise.records import Bools, Calm, Column, Floats, Ints
from poise.stats.robust import line_and_scale, median

WINDOW = 128
BLOCK = 32
EARLY = np.array(
    [2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 28]
)  # a short log is all there is: learn sooner, with a wide prior
_EARLY_SET = frozenset(EARLY.tolist())
PRIOR_SCALE = 0.05  # relative; what an unknown signal's noise is taken for while there are few rows
PRIOR_ROWS = 8.0
SMALL = 4.0  # the scale of few rows is uncertain: widened by 1 + 4/n
SEQUENTIAL_AFTER = 6  # rounds of the vectorised fixpoint before it goes block by block


@dataclass(slots=True)
class Baseline:
    """Streaming level and scale of one scalar signal.

    Args:
        reject_z: values further out than this (on the bad side) are not learnt from.
        two_sided: whether a fall is as bad as a rise; a falling loss is not.
        positive: whether zeros are counted apart and never learnt from, as for norms.
    """

    reject_z: float = 5.0
    two_sided: bool = False
    positive: bool = False
    row: int = 0
    accepted: Floats = field(default_factory=lambda: np.empty(0))
    level: float = float("nan")
    scale: float = float("nan")
    log: bool = False
    rejected: Floats = field(default_factory=lambda: np.empty(0))
    adopted: list[int] = field(default_factory=list)
    """Rows at which a stretch of rejected values became the new baseline (see `level-shift`)."""

    @np.errstate(over="ignore", invalid="ignore")
    def update(self, column: Column) -> Calm:
        """Judge the next rows. Cost: about 0.2 us per row in long pieces, 10 us for a single row."""
        n = len(column)
        if n == 1:
            return self._one(float(column.values[0]), column.resolution)
        calm = Calm(np.full(n, np.nan), np.full(n, np.nan), np.full(n, np.nan), np.zeros(n, bool), np.zeros(n, bool))
        shifts: list[tuple[int, float, float]] = []
        done = 0
        while done < n:
            adopted = len(self.adopted)
            done += self._segment(column.values[done:], column.resolution, calm, done)
            if len(self.adopted) > adopted:
                shifts.append((done - 1, float(calm.level[done - 1]), self.level))
        return replace(calm, shifts=tuple(shifts)) if shifts else calm

    def _one(self, value: float, resolution: float) -> Calm:
        """A live step: the same answer without the machinery for many rows."""
        if (self.row % BLOCK == 0 or self.row in _EARLY_SET) and self.row >= EARLY[0]:
            self._refit(resolution)
        finite = bool(np.isfinite(value)) and (value > 0 or not self.positive)
        z = float("nan")
        if finite and self.level == self.level:
            with np.errstate(over="ignore"):
                z = float(self._away(value) / np.float64(self.scale))
        far = (abs(z) if self.two_sided else z) > self.reject_z
        kept = finite and not far
        calm = Calm(
            np.array([self.level]), np.array([self.scale]), np.array([z]), np.array([kept]), np.array([self.log])
        )
        self.row += 1
        if finite and not far:
            self.accepted = np.append(self.accepted[-WINDOW + 1 :], value)
            self.rejected = self.rejected[:0]
        elif finite:
            former, adopted = self.level, len(self.adopted)
            self.rejected = np.append(self.rejected, value)
            self._adopt_one(resolution)
            if len(self.adopted) > adopted:
                return replace(calm, shifts=((0, former, self.level),))
        return calm

    def _away(self, value: float) -> float:
        """How far a finite value lies above the level, on the judging axis."""
        if not self.log:
            return value - self.level
        return float(np.log(np.float64(value) / self.level)) if value > 0 else -np.inf

    def _refit(self, resolution: float) -> None:
        if len(self.accepted) >= EARLY[0]:
            level, scale, log = _fit_windows(self.accepted[None, -WINDOW:], resolution)
            self.level, self.scale, self.log = float(level[0]), float(scale[0]), bool(log[0])
        else:
            self.level, self.scale, self.log = float("nan"), float("nan"), False

    def _adopt_one(self, resolution: float) -> None:
        count = len(self.rejected)
        if count >= WINDOW and count % BLOCK == 0 and _has_a_level(self.rejected[-WINDOW:]):
            self.adopted.append(self.row - 1)
            self.accepted, self.rejected = self.rejected[-WINDOW:].copy(), np.empty(0)
            self._refit(resolution)
        elif count > WINDOW + BLOCK:
            self.rejected = self.rejected[BLOCK:]

    def _segment(self, values: Floats, resolution: float, calm: Calm, offset: int) -> int:
        """Judge rows up to the end or up to a row at which a new baseline is adopted; return how many."""
        finite = np.isfinite(values) & (values > 0) if self.positive else np.isfinite(values)
        anchors, starts = self._anchors(len(values))
        accepted = finite
        for round_ in range(len(anchors) + 2):
            fits = self._fit(values, accepted, anchors, resolution)
            z, level, scale, log = self._score(values, finite, starts, fits)
            again = finite & ~self._far(z)
            if np.array_equal(again, accepted):
                break
            if round_ == SEQUENTIAL_AFTER:
                again, (z, level, scale, log) = self._in_order(values, finite, anchors, starts, resolution)
                accepted = again
                break
            accepted = again
        stop, adopt = self._first_adoption(values, finite, accepted)
        part = slice(offset, offset + stop)
        calm.level[part], calm.scale[part], calm.z[part] = level[:stop], scale[:stop], z[:stop]
        calm.accepted[part], calm.log[part] = accepted[:stop], log[:stop]
        self._carry(values[:stop], finite[:stop], accepted[:stop], stop, adopt, resolution, anchors, level, scale, log)
        return stop

    def _anchors(self, n: int) -> tuple[Ints, Ints]:
        """Relative rows at which the fit is renewed, and the starts of the stretches between (the first one is inherited)."""
        first = -self.row % BLOCK
        regular = np.arange(first, n, BLOCK)
        early = EARLY[(self.row <= EARLY) & (self.row + n > EARLY)] - self.row
        anchors = np.unique(np.concatenate([early, regular]))
        anchors = anchors[anchors + self.row >= EARLY[0]].astype(np.int64)
        return anchors, np.concatenate([[0], anchors])

    def _fit(self, values: Floats, accepted: Bools, anchors: Ints, resolution: float) -> tuple[Floats, Floats, Bools]:
        """Level, scale and axis for each anchor, assuming these values were accepted."""
        pool = np.concatenate([self.accepted, values[accepted]])
        ends = len(self.accepted) + np.concatenate([[0], np.cumsum(accepted)])[anchors]
        level, scale, log = np.full(len(anchors), np.nan), np.full(len(anchors), np.nan), np.zeros(len(anchors), bool)
        whole = ends >= WINDOW
        if whole.any():
            windows = np.lib.stride_tricks.sliding_window_view(pool, WINDOW)[ends[whole] - WINDOW]
            level[whole], scale[whole], log[whole] = _fit_windows(windows, resolution)
        for i in np.flatnonzero(~whole & (ends >= EARLY[0])):
            fit = _fit_windows(pool[None, : ends[i]], resolution)
            level[i], scale[i], log[i] = fit[0][0], fit[1][0], fit[2][0]
        return level, scale, log

    def _score(
        self, values: Floats, finite: Bools, starts: Ints, fits: tuple[Floats, Floats, Bools]
    ) -> tuple[Floats, Floats, Floats, Bools]:
        """Spread the fits over their rows and measure each value against them."""
        lengths = np.diff(np.concatenate([starts, [len(values)]]))
        level, scale = (
            np.repeat(np.concatenate([[mine], fit]), lengths)
            for mine, fit in zip((self.level, self.scale), fits[:2], strict=True)
        )
        log = np.repeat(np.concatenate([[self.log], fits[2]]), lengths)
        return _z(values, finite, level, scale, log), level, scale, log

    def _far(self, z: Floats) -> Bools:
        far: Bools = (np.abs(z) if self.two_sided else z) > self.reject_z
        return far

    def _in_order(
        self, values: Floats, finite: Bools, anchors: Ints, starts: Ints, resolution: float
    ) -> tuple[Bools, tuple[Floats, Floats, Floats, Bools]]:
        """The same answer block by block, for streams so wild that the fixpoint is slow."""
        accepted = finite.copy()
        level, scale, log = np.full(len(anchors), np.nan), np.full(len(anchors), np.nan), np.zeros(len(anchors), bool)
        stops = np.append(starts[1:], len(values))
        pool = self.accepted
        for i, (start, stop) in enumerate(zip(starts, stops, strict=True)):
            now = (self.level, self.scale, self.log)
            if i:
                if len(pool) >= EARLY[0]:
                    fit = _fit_windows(pool[None, -WINDOW:], resolution)
                    level[i - 1], scale[i - 1], log[i - 1] = fit[0][0], fit[1][0], fit[2][0]
                now = (level[i - 1], scale[i - 1], bool(log[i - 1]))
            part = slice(start, stop)
            size = stop - start
            z = _z(values[part], finite[part], np.full(size, now[0]), np.full(size, now[1]), np.full(size, now[2]))
            accepted[part] &= ~self._far(z)
            pool = np.concatenate([pool, values[part][accepted[part]]])[-WINDOW:]
        return accepted, self._score(values, finite, starts, (level, scale, log))

    def _first_adoption(self, values: Floats, finite: Bools, accepted: Bools) -> tuple[int, Floats | None]:
        """Find the first row at which 128 rejected values in a row have a level of their own."""
        run = len(self.rejected)
        far = np.flatnonzero(finite & ~accepted)
        if run + len(far) < WINDOW:
            return len(values), None
        breaks = np.concatenate([[-1], np.flatnonzero(accepted), [len(values)]])
        for left, right in pairwise(breaks.tolist()):
            inside = far[np.searchsorted(far, left) : np.searchsorted(far, right)]
            past = self.rejected if left < 0 else self.rejected[:0]
            if len(past) + len(inside) < WINDOW:
                continue
            joined = np.concatenate([past, values[inside]])
            for stop in range(WINDOW + (-WINDOW) % BLOCK, len(joined) + 1, BLOCK):
                if stop > len(past) and _has_a_level(joined[stop - WINDOW : stop]):
                    return int(inside[stop - len(past) - 1]) + 1, joined[stop - WINDOW : stop]
        return len(values), None

    def _carry(
        self, values: Floats, finite: Bools, accepted: Bools, stop: int, adopt: Floats | None, resolution: float,
        anchors: Ints, level: Floats, scale: Floats, log: Bools,
    ) -> None:  # fmt: skip
        """Move the state past the judged rows."""
        self.row += stop
        if adopt is not None:
            self.adopted.append(self.row - 1)
            self.accepted, self.rejected = adopt.copy(), np.empty(0)
            fit = _fit_windows(adopt[None], resolution)
            self.level, self.scale, self.log = float(fit[0][0]), float(fit[1][0]), bool(fit[2][0])
            return
        self.accepted = np.concatenate([self.accepted, values[accepted]])[-WINDOW:]
        self.level, self.scale, self.log = float(level[stop - 1]), float(scale[stop - 1]), bool(log[stop - 1])
        last = np.flatnonzero(accepted)
        after = int(last[-1]) + 1 if len(last) else 0
        past = np.empty(0) if len(last) else self.rejected
        joined = np.concatenate([past, values[after:][finite[after:]]])
        keep = (
            WINDOW + len(joined) % BLOCK if len(joined) > WINDOW else len(joined)
        )  # keeps the count's place in the blocks
        self.rejected = joined[len(joined) - keep :]


def _fit_windows(windows: Floats, resolution: float) -> tuple[Floats, Floats, Bools]:
    """Level (own axis), scale (judging axis) and whether that axis is logarithmic, for windows of (m, n) values."""
    log = np.min(windows, axis=1) > 0
    if log.all():
        axis = np.log(windows)
    elif log.any():
        axis = np.where(log[:, None], np.log(np.where(log[:, None], windows, 1.0)), windows)
    else:
        axis = windows
    level, scale = line_and_scale(axis)
    size = np.where(log, 1.0, np.abs(level) if axis is windows else median(np.abs(windows)))
    n = windows.shape[1]
    weight = PRIOR_ROWS * (1 - n / WINDOW)
    scale = np.sqrt(scale**2 + weight / (n + weight) * (PRIOR_SCALE * size) ** 2) * (1 + SMALL / n)
    back = np.where(log, np.exp(np.where(log, level, 0.0)), level)
    floor = np.where(log, resolution / np.maximum(back, 1e-300), resolution)
    return back, np.maximum(scale, np.maximum(floor, 1e-9 * np.maximum(size, 1e-300))), log


def _z(values: Floats, finite: Bools, level: Floats, scale: Floats, log: Bools) -> Floats:
    """(value - level) / scale on the judging axis; NaN where there is no level or no value."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        ratio = np.log(np.where(finite & (values > 0), values, np.nan) / level)
        ratio = np.where(finite & (values <= 0), -np.inf, ratio)
        z: Floats = np.where(log, ratio, np.where(finite, values - level, np.nan)) / scale
    z[np.isnan(level)] = np.nan
    return z


def _has_a_level(values: Floats) -> bool:
    """Whether the second half of these values lies where the first does."""
    half = len(values) // 2
    _, scale = line_and_scale(values[None])
    return bool(
        abs(median(values[half:]) - median(values[:half]))
        <= 3 * float(scale[0]) + 1e-12 * float(np.max(np.abs(values)))
    )
