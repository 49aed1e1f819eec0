"""A loss that leaves its trend at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from poise.detectors.base import Example
from poise.detectors.examples import falling_loss, frame, steps
from poise.detectors.losses import UNKNOWN_NOISE, Loss, Total, rise
from poise.records import Finding, Floats, Frame, Message, Severity, State, Surprise, Verdict
from poise.stats.robust import log10_tail
from poise.stats.rolling import RollingMedian

HEAL_WINDOW = 8  # rows whose median must be back
HEAL_ROWS = 4  # rows after the onset before it can be called healed, or not
LASTING = 0.005  # share of the level: an elevation above it, and above the noise, has not healed
HUGE = 10.0  # times the level: no need to wait before warning
YOUNG = 16  # rows; before, a noise estimate is worth little
PATIENCE = 128  # rows after which an elevation is lasting


def _spiked(factors: dict[int, float], rows: int = 1000) -> Frame:
    loss: Floats = falling_loss(rows, seed=2)
    for row, factor in factors.items():
        loss[row] *= factor
    return frame(steps(rows), loss=loss)


@dataclass(slots=True)
class _Track:
    open: bool = False
    onset: int = 0
    former: float = 0.0
    sigma: float = 0.0
    z: float = 0.0
    first: float = 0.0
    peak: float = 0.0
    rows: int = 0
    seen: int = 0
    severity: Severity = "info"
    medians: RollingMedian = field(default_factory=lambda: RollingMedian(HEAL_WINDOW))


@dataclass(slots=True)
class LossSpike:
    """A value far above its own calm past, judged by a robust z on the log axis against the last 128 calm rows.

    It opens as `info`, becomes a warning when it has not come back after 4 rows (or is 10 times its level), and closes as
    `info` only if the median of 8 rows is back on the former trend. An elevation that lasts 128 rows ends as a warning.

    Blind to: slow rises (see Divergence) and anything in the first 2 rows. Delay: none for `info`, 4 rows for a warning.

    Args:
        z: robust standard deviations above the level. 6 as in common practice (OLMo uses 6 sigma over 128 steps,
            arXiv 2501.00656), but on the log axis and with median and MAD, where healthy heavy tails do not reach it.
        share: least rise as a share of the level; a spike that no plot would show is none.
    """

    z: float = 6.0
    share: float = 0.02
    total: Total = field(default_factory=Total)
    tracks: dict[str, _Track] = field(default_factory=dict)
    kinds: ClassVar[tuple[str, ...]] = ("loss-spike",)
    fires_on: ClassVar[tuple[Example, ...]] = (
        Example("a single bad batch that heals", lambda: _spiked({700: 2.0}), "loss-spike", 700, 0),
        Example(
            "a jump that stays 10 % above the trend",
            lambda: _spiked(dict.fromkeys(range(600, 1000), 1.1)),
            "loss-spike",
            600,
            1,
        ),
    )
    quiet_on: ClassVar[tuple[Example, ...]] = (
        Example("a falling loss with noise", lambda: _spiked({})),
        Example("a loss that drops at once", lambda: _spiked(dict.fromkeys(range(600, 1000), 0.5))),
    )

    def update(self, frame: Frame) -> Verdict:
        found: list[Finding] = []
        surprise = []
        for loss in self.total.judged(frame):
            track = self.tracks.setdefault(loss.name, _Track())
            found += self._judge(track, loss)
            surprise.append(Surprise(loss.name, "output", loss.steps, log10_tail(loss.z)))
        return Verdict(tuple(found), tuple(surprise))

    def _judge(self, track: _Track, loss: Loss) -> list[Finding]:
        found: list[Finding] = []
        row = 0
        while row < len(loss):
            if not track.open:
                row = self._next(loss, row)
                if row < len(loss):
                    found.append(self._open(track, loss, row))
            if track.open:
                row, finding = self._follow(track, loss, row)
                found += finding
        track.seen += len(loss)
        return found

    def _next(self, loss: Loss, row: int) -> int:
        """The next row that leaves the trend; the number of rows if there is none."""
        level = loss.level[row:]
        with np.errstate(invalid="ignore"):
            high = (loss.z[row:] > self.z) & (loss.values[row:] - level > self.share * np.abs(level))
        where = np.flatnonzero(high)
        return row + int(where[0]) if len(where) else len(loss)

    def _open(self, track: _Track, loss: Loss, row: int) -> Finding:
        value, level = float(loss.values[row]), float(loss.level[row])
        huge = value > HUGE * level > 0 and loss.z[row] > 2 * self.z
        self.tracks[loss.name] = track
        track.open, track.rows, track.medians = True, 0, RollingMedian(HEAL_WINDOW)
        track.onset, track.former, track.z = int(loss.steps[row]), level, float(loss.z[row])
        track.sigma = max(float(loss.sigma[row]), UNKNOWN_NOISE if track.seen + row < YOUNG else 0.0)
        track.first = track.peak = value
        return self._say(track, loss, row, "warning" if huge else "info", "open", "opened")

    def _follow(self, track: _Track, loss: Loss, row: int) -> tuple[int, list[Finding]]:
        """Go on while the spike is open; return the next row to look at and what there is to say."""
        stop = min(len(loss), row + PATIENCE + 1 - track.rows)
        above = rise(loss.values[row:stop], track.former, abs(track.former) or 1.0)
        saved = track.medians.tail.copy()
        medians = track.medians.update(above)
        count = track.rows + np.arange(1, len(above) + 1)
        back = (medians <= max(LASTING, 1.5 * track.sigma)) & (count > HEAL_ROWS)
        late = count >= HEAL_ROWS if track.severity == "info" else np.zeros(len(above), bool)
        stays = late & (medians > max(2 * LASTING, 3 * track.sigma))
        events = np.flatnonzero(back | stays | (count > PATIENCE))
        if not len(events):
            track.rows, track.peak = int(count[-1]), max(track.peak, float(loss.values[row:stop].max()))
            return stop, []
        at = int(events[0])
        track.rows, track.peak = int(count[at]), max(track.peak, float(loss.values[row : row + at + 1].max()))
        track.medians = RollingMedian(HEAL_WINDOW, np.concatenate([saved, above[: at + 1]])[-HEAL_WINDOW + 1 :])
        return row + at + 1, [self._decide(track, loss, row + at, bool(back[at]), float(medians[at]))]

    def _decide(self, track: _Track, loss: Loss, row: int, back: bool, above: float) -> Finding:
        if back:
            track.open = False
            finding = self._say(track, loss, row, "info", "recovered", "healed", above)
            track.severity = "info"
            return finding
        if track.rows > PATIENCE:
            track.open = False
            finding = self._say(track, loss, row, "warning", "ended", "lasting", above)
            track.severity = "info"
            return finding
        return self._say(track, loss, row, "warning", "open", "stays", above)

    def _say(
        self,
        track: _Track,
        loss: Loss,
        row: int,
        severity: Severity,
        state: State,
        text: str,
        above: float = float("nan"),
    ) -> Finding:
        track.severity = severity
        numbers = {
            "signal": loss.name,
            "step": track.onset,
            "value": track.first,
            "peak": track.peak,
            "level": track.former,
            "rows": track.rows,
        }
        numbers |= {"z": track.z, "percent": 100 * float(np.expm1(above)) if above == above else 0.0}
        return Finding(
            "loss-spike", loss.name, track.onset, int(loss.steps[row]), severity, Message(f"detectors.loss-spike.{text}", numbers),
            state=state, value=track.peak, expected=track.former, strength=float(log10_tail(np.array([track.z]))[0]),
            facts={"rows": track.rows, "sigma": track.sigma, "z": track.z, "lasting": above if above == above else None},
        )  # fmt: skip
