"""A loss that swings far wider than it used to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from poise.detectors.base import Example
from poise.detectors.examples import falling_loss, frame, steps
from poise.detectors.losses import Loss, Total
from poise.records import Bools, Finding, Floats, Frame, Ints, Message, Verdict
from poise.stats.robust import median

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
    z: Floats = field(default_factory=lambda: np.empty(0))
    sigma: Floats = field(default_factory=lambda: np.empty(0))
    steps: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    open: bool = False
    onset: int = 0
    noise: float = 0.0
    width: float = 0.0


@dataclass(slots=True)
class Oscillation:
    """Half of the last 24 rows lie more than 4 noise widths from the calm level, on both sides of it.

    Noise that was always there is no oscillation: the width is measured against the run's own past. It heals when the median swing
    is below 2 noise widths.

    Blind to: swings that were there from the first row; slow waves longer than 24 rows. Delay: about 12 rows.
    """

    total: Total = field(default_factory=Total)
    tracks: dict[str, _Track] = field(default_factory=dict)
    kinds: ClassVar[tuple[str, ...]] = ("oscillation",)
    fires_on: ClassVar[tuple[Example, ...]] = (Example("swings of 15 % in a loss with noise of 1 %", lambda: _swinging(500, 1.15), "oscillation", 500, 12),)
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
        z = np.concatenate([track.z, np.clip(loss.z[keep], -1e6, 1e6)])
        sigma = np.concatenate([track.sigma, loss.sigma[keep]])
        step = np.concatenate([track.steps, loss.steps[keep]])
        tail = slice(max(0, len(z) - WINDOW + 1), None)
        track.z, track.sigma, track.steps = z[tail].copy(), sigma[tail].copy(), step[tail].copy()
        if len(z) < WINDOW:
            return []
        # a window can only be wide if many of its rows are; most streams never are, and skip the medians
        far = np.concatenate([[0], np.cumsum(np.abs(z) > WIDE)])
        busy = far[WINDOW:] - far[:-WINDOW] >= WINDOW // 2
        return self._events(loss.name, track, z, sigma, step, busy) if busy.any() or track.open else []

    def _events(self, name: str, track: _Track, z: Floats, sigma: Floats, step: Ints, busy: Bools) -> list[Finding]:
        windows = np.lib.stride_tricks.sliding_window_view(z, WINDOW)
        swings = np.lib.stride_tricks.sliding_window_view(np.abs(z) * sigma, WINDOW)
        up, down = np.zeros(len(busy)), np.zeros(len(busy))
        up[busy], down[busy] = (windows[busy] > WIDE).mean(axis=1), (windows[busy] < -WIDE).mean(axis=1)
        wide = (up >= SIDES) & (down >= SIDES)
        found: list[Finding] = []
        row = 0
        while row < len(busy):
            calm = median(swings[row:]) < CALM * track.noise if track.open else wide[row:]
            where = np.flatnonzero(calm)
            if not len(where):
                break
            row += int(where[0])
            if not track.open:
                inside = np.flatnonzero(np.abs(windows[row]) > WIDE)
                track.onset = int(step[row + inside[0]])
                track.noise = float(sigma[row + inside[0]])
                track.width = float(median(swings[row])) / track.noise
            found.append(self._say(track, name, int(step[row + WINDOW - 1])))
            track.open = not track.open
            row += 1
        return found

    def _say(self, track: _Track, name: str, step: int) -> Finding:
        text = "healed" if track.open else "opened"
        numbers = {"signal": name, "step": track.onset, "width": track.width}
        return Finding(
            "oscillation", name, track.onset, step, "info" if track.open else "warning",
            Message(f"detectors.oscillation.{text}", numbers), state="recovered" if track.open else "open", value=track.width, expected=1.0,
        )  # fmt: skip
