"""A loss that swings far wider than it used to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from poise.detectors.base import Example
from poise.detectors.examples import falling_loss, frame, steps
from poise.detectors.losses import Loss, Total, rise
from poise.records import Bools, Finding, Floats, Frame, Message, Verdict

WINDOW = 24  # rows
WIDE = 4.0  # times the calm noise: the median swing of the window
SIDES = 0.25  # share of the window on each side
CALM = 2.0


def _swinging(at: int, factor: float, rows: int = 800) -> Frame:
    loss = falling_loss(rows, seed=11)
    swing = np.where(np.arange(rows) % 3 == 0, factor, 1 / factor)
    swing[:at] = 1.0
    return frame(steps(rows), loss=loss * swing)


@dataclass(slots=True)
class _Track:
    rows: Floats = field(default_factory=lambda: np.empty((5, 0)))  # step, z, value, level, noise of the last rows
    open: bool = False
    onset: int = 0
    level: float = 0.0
    noise: float = 0.0
    width: float = 0.0


@dataclass(slots=True)
class Oscillation:
    """Half of the last 24 rows lie more than 4 noise widths from the calm level, on both sides of it.

    Noise that was always there is no oscillation: the width is measured against the run's own past. It heals when the rows' spread
    is below 2 noise widths.

    Blind to: swings that were there from the first row; slow waves longer than 24 rows. Delay: about 12 rows.
    """

    total: Total = field(default_factory=Total)
    tracks: dict[str, _Track] = field(default_factory=dict)
    kinds: ClassVar[tuple[str, ...]] = ("oscillation",)
    fires_on: ClassVar[tuple[Example, ...]] = (
        Example("swings of 15 % in a loss with noise of 1 %", lambda: _swinging(500, 1.15), "oscillation", 500, 12),
    )
    quiet_on: ClassVar[tuple[Example, ...]] = (
        Example("steady noise", lambda: _swinging(800, 1.0)),
        Example("wide noise from the start", lambda: frame(steps(800), loss=falling_loss(800, 12, noise=0.4))),
    )

    def update(self, frame: Frame) -> Verdict:
        found: list[Finding] = []
        for loss in self.total.judged(frame):
            found += self._judge(self.tracks.setdefault(loss.name, _Track()), loss)
        return Verdict(tuple(found))

    def _judge(self, track: _Track, loss: Loss) -> list[Finding]:
        keep = ~np.isnan(loss.z)
        new = np.stack(
            [loss.steps[keep], np.clip(loss.z[keep], -1e6, 1e6), loss.values[keep], loss.level[keep], loss.sigma[keep]]
        )
        rows = np.concatenate([track.rows, new], axis=1)
        track.rows = rows[:, max(0, rows.shape[1] - WINDOW + 1) :].copy()
        if rows.shape[1] < WINDOW:
            return []
        # a window can only be wide if many of its rows are; most streams never are, and skip the rest
        far = np.concatenate([[0], np.cumsum(np.abs(rows[1]) > WIDE)])
        busy = far[WINDOW:] - far[:-WINDOW] >= WINDOW // 2
        return self._events(loss.name, track, rows, busy) if busy.any() or track.open else []

    def _events(self, name: str, track: _Track, rows: Floats, busy: Bools) -> list[Finding]:
        z = np.lib.stride_tricks.sliding_window_view(rows[1], WINDOW)
        up, down = np.zeros(len(busy)), np.zeros(len(busy))
        up[busy], down[busy] = (z[busy] > WIDE).mean(axis=1), (z[busy] < -WIDE).mean(axis=1)
        wide = (up >= SIDES) & (down >= SIDES)
        found: list[Finding] = []
        row = 0
        while row < len(busy):
            where = np.flatnonzero(self._widths(track, rows[2, row:]) < CALM if track.open else wide[row:])
            if not len(where):
                break
            row += int(where[0])
            if not track.open:
                first = row + int(np.flatnonzero(np.abs(z[row]) > WIDE)[0])
                track.onset, track.level, track.noise = (
                    int(rows[0, first]),
                    float(rows[3, first]),
                    float(rows[4, first]),
                )
                track.width = float(self._widths(track, rows[2, row : row + WINDOW])[0])
            found.append(self._say(track, name, int(rows[0, row + WINDOW - 1])))
            track.open = not track.open
            row += 1
        return found

    def _widths(self, track: _Track, values: Floats) -> Floats:
        """Half the spread of each window between its 10 % and 90 % points, in widths of the calm noise at the onset."""
        away = rise(values, track.level, abs(track.level) or 1.0)
        ordered = np.sort(np.lib.stride_tricks.sliding_window_view(away, WINDOW), axis=1)
        spread: Floats = (ordered[:, -1 - WINDOW // 10] - ordered[:, WINDOW // 10]) / (2 * 1.28 * track.noise)
        return spread

    def _say(self, track: _Track, name: str, step: int) -> Finding:
        text = "healed" if track.open else "opened"
        numbers = {"signal": name, "step": track.onset, "width": track.width}
        return Finding(
            "oscillation", name, track.onset, step, "info" if track.open else "warning",
            Message(f"detectors.oscillation.{text}", numbers), state="recovered" if track.open else "open", value=track.width, expected=1.0,
        )  # fmt: skip
