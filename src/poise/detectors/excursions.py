"""A norm that leaves its calm past upwards: opened at once, worse if it stays, healed if it comes back."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from poise.records import Bools, Calm, Column, Finding, Floats, Ints, Message, Severity, State
from poise.stats.robust import log10_tail
from poise.stats.rolling import RollingMedian

HEAL_WINDOW = 8  # rows whose median must be back, as for a loss spike
HEAL_ROWS = 4
PATIENCE = 128  # rows after which the new level is the baseline


@dataclass(slots=True)
class _Track:
    open: bool = False
    onset: int = 0
    former: float = 0.0
    sigma: float = 0.0
    z: float = 0.0
    peak: float = 0.0
    rows: int = 0
    severity: Severity = "info"
    medians: RollingMedian = field(default_factory=lambda: RollingMedian(HEAL_WINDOW))
    top: float = 0.0
    hits: int = 0  # how often exactly the highest value was seen: a norm at the clip value


@dataclass(frozen=True, slots=True)
class Rows:
    """The positive finite rows of one column with their baseline."""

    name: str
    steps: Ints
    values: Floats
    level: Floats
    sigma: Floats
    z: Floats


def rows_of(name: str, column: Column, calm: Calm) -> Rows:
    """Zeros are sentinels or skipped steps: counted apart, never logged."""
    with np.errstate(invalid="ignore", divide="ignore"):
        keep = np.isfinite(column.values) & (column.values > 0)
        sigma = np.where(calm.log, calm.scale, calm.scale / np.abs(calm.level))
    return Rows(name, column.steps[keep], column.values[keep], calm.level[keep], sigma[keep], calm.z[keep])


@dataclass(slots=True)
class Excursions:
    """Follows excursions of any number of columns.

    Args:
        kind: the finding's kind; its texts are `detectors.<kind>.opened|stays|healed|lasting`.
        z: robust standard deviations on the log axis that open one.
        ratio: least factor above the calm level that opens one.
        lasting: factor above the calm level which, as the median of 8 rows, is a warning.
        healed: factor above the calm level below which the median of 8 rows is back.
    """

    kind: str
    z: float = 6.0
    ratio: float = 3.0
    lasting: float = 10.0
    healed: float = 2.0
    tracks: dict[str, _Track] = field(default_factory=dict)

    def judge(self, rows: Rows, expected: Floats | None = None) -> list[Finding]:
        """Judge the next rows. `expected` is a factor by which each row may be higher for a known reason (a raised rate)."""
        track = self.tracks.setdefault(rows.name, _Track())
        far = self._far(track, rows, expected)
        found: list[Finding] = []
        row = 0
        while row < len(rows.steps):
            if not track.open:
                where = np.flatnonzero(far[row:])
                if not len(where):
                    break
                row += int(where[0])
                found.append(self._open(track, rows, row))
            row, said = self._follow(track, rows, row)
            found += said
        return found

    def _far(self, track: _Track, rows: Rows, expected: Floats | None) -> Bools:
        allowed = 1.0 if expected is None else np.maximum(expected, 1.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            z = rows.z - np.log(allowed) / np.maximum(rows.sigma, 1e-9)
            far = (z > self.z) & (rows.values > self.ratio * allowed * rows.level)
        if not len(far):
            return far
        if far.any():
            top = np.maximum.accumulate(np.concatenate([[track.top], rows.values]))
            at_top = np.cumsum(rows.values == top[1:])
            since = np.maximum.accumulate(np.where(top[1:] > top[:-1], at_top - 1, -track.hits))
            far &= ~((rows.values == top[1:]) & (at_top - since > 3))
        highest = float(rows.values.max())
        if highest > track.top:
            track.top, track.hits = highest, 0
        track.hits += int(np.count_nonzero(rows.values == track.top))
        return far

    def _open(self, track: _Track, rows: Rows, row: int) -> Finding:
        track.open, track.rows, track.medians, track.severity = True, 0, RollingMedian(HEAL_WINDOW), "info"
        track.onset, track.former, track.sigma = int(rows.steps[row]), float(rows.level[row]), float(rows.sigma[row])
        track.z = track.peak = 0.0
        return self._say(track, rows, row, "info", "open", "opened")

    def _follow(self, track: _Track, rows: Rows, row: int) -> tuple[int, list[Finding]]:
        """Go on while it is open; return the next row to look at and what there is to say."""
        stop = min(len(rows.steps), row + PATIENCE + 1 - track.rows)
        above = np.log(rows.values[row:stop] / track.former)
        saved = track.medians.tail.copy()
        medians = track.medians.update(above)
        count = track.rows + np.arange(1, len(above) + 1)
        back = (medians <= max(np.log(self.healed), 1.5 * track.sigma)) & (count > HEAL_ROWS)
        stays = (
            (count >= HEAL_ROWS) & (medians > max(np.log(self.lasting), 3 * track.sigma)) & (track.severity == "info")
        )
        events = np.flatnonzero(back | stays | (count > PATIENCE))
        end = int(events[0]) if len(events) else len(above) - 1
        track.rows, track.peak = int(count[end]), max(track.peak, float(rows.values[row : row + end + 1].max()))
        if not len(events):
            return stop, []
        track.medians = RollingMedian(HEAL_WINDOW, np.concatenate([saved, above[: end + 1]])[-HEAL_WINDOW + 1 :])
        if back[end]:
            return row + end + 1, [self._close(track, rows, row + end, "info", "recovered", "healed")]
        if track.rows > PATIENCE:
            return row + end + 1, [self._close(track, rows, row + end, track.severity, "ended", "lasting")]
        return row + end + 1, [self._say(track, rows, row + end, "warning", "open", "stays")]

    def _close(self, track: _Track, rows: Rows, row: int, severity: Severity, state: State, text: str) -> Finding:
        track.open = False
        return self._say(track, rows, row, severity, state, text)

    def _say(self, track: _Track, rows: Rows, row: int, severity: Severity, state: State, text: str) -> Finding:
        if not track.rows:
            track.peak, track.z = float(rows.values[row]), float(rows.z[row])
        track.severity = severity
        numbers = {"signal": rows.name, "step": track.onset, "value": track.peak, "level": track.former, "z": track.z}
        numbers |= {"ratio": track.peak / track.former, "rows": track.rows}
        return Finding(
            self.kind, rows.name, track.onset, int(rows.steps[row]), severity, Message(f"detectors.{self.kind}.{text}", numbers),
            state=state, value=track.peak, expected=track.former, strength=float(log10_tail(np.array([track.z]))[0]),
            facts={"ratio": track.peak / track.former, "sigma": track.sigma, "rows": track.rows},
        )  # fmt: skip
