"""The fp16 loss scale, falling and falling."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from poise.detectors.base import Example
from poise.detectors.courses import Standing
from poise.detectors.examples import falling_loss, frame, steps
from poise.records import Column, Event, Finding, Floats, Frame, Ints, Message, Severity, Verdict

HALVINGS = 5.0  # in an unbroken streak: one overflow in a few thousand steps is how a dynamic scaler works, five in a row are not
DEEP = 12.0  # halvings after the start at which a lasting overflow is certain: 2^16 down to 2^4
SETTLED = 20  # rows without a skip that end the search for a scale at the start
LOW = 128.0  # a search that ends below found nothing: at 2^7 the scale hardly lifts gradients out of fp16's subnormals
CALM_ROWS = 16  # rows without a skip that heal
FALLING = 0.75  # of the former value: halving, with room for other factors


def _scale(values: list[float], before: int = 100) -> Frame:
    scale = np.concatenate([np.full(before, 65536.0 if not values else values[0]), values])
    return frame(steps(len(scale)), loss_scale=scale, loss=falling_loss(len(scale), 1))


def _lines() -> Frame:
    events = tuple(Event("overflow", 378 + i, {"loss_scale": 64.0 / 2**i}) for i in range(5))
    return Frame({"loss": Column(np.array([370, 380]), np.array([2.05, 2.0491]))}, events)


@dataclass(slots=True)
class LossScaleCollapse:
    """An unbroken streak of skipped steps: the loss scale halves at least five times in a row, or falls below 1.

    Rows of `loss_scale` (a fall by half, or by more where a row covers several steps), of `skipped_steps`, and overflow events
    count alike. A dynamic scaler's search from 2^32 or 2^16 downwards in the first rows is benign while the scale stays at
    2^7 or above: `info`. The onset is the first skip of the streak. Critical below 1, after 12 halvings, or at 2 and below:
    the scaler has reached its floor and no update is accepted any more. Healed after 16 rows without a skip.

    Blind to: bf16 runs and logs without scale or overflow lines. Delay: five skipped steps, or less where rows cover several.
    References: github.com/pytorch/pytorch/issues/99640 (a scale below 1 makes unscaling itself overflow).
    """

    branch: int = 0
    last: float = float("nan")
    highest: float = 0.0
    calm: int = 0  # rows without a skip so far in a row
    settled: bool = False  # whether the search at the start is over
    streak: float = 0.0
    first: float = float("nan")  # scale before the streak
    onset: int = -1
    event_step: int = -1
    loss_rows: list[int] = field(default_factory=list)
    scale_from: int = 2**62  # from here on the scale itself is logged, and overflow lines would count twice
    standing: Standing = field(default_factory=Standing)
    kinds: ClassVar[tuple[str, ...]] = ("loss-scale-collapse",)
    fires_on: ClassVar[tuple[Example, ...]] = (
        Example(
            "eight halvings in a row",
            lambda: _scale([65536.0 / 2**i for i in range(1, 9)] + [256.0] * 8),
            "loss-scale-collapse",
            101,
            1,
        ),
        Example(
            "a scale that falls below 1",
            lambda: _scale([16384.0 / 2**i for i in range(20)]),
            "loss-scale-collapse",
            101,
            1,
        ),
        Example("five overflow lines with the last scales", _lines, "loss-scale-collapse", 378, 0),
        Example(
            "a search at the start, as `info`",
            lambda: _scale([2.0**32, 2.0**23, 2.0**15] + [2.0**14] * 30, 0),
            "loss-scale-collapse",
            1,
            1,
        ),
    )
    quiet_on: ClassVar[tuple[Example, ...]] = (
        Example("single overflows, each doubled back", lambda: _scale(([65536.0] * 20 + [32768.0] * 20) * 5)),
        Example("a scale of -1, as printed where there is none", lambda: _scale([-1.0] * 50, 0)),
    )

    def update(self, frame: Frame) -> Verdict:
        if frame.branch != self.branch:
            fresh = LossScaleCollapse(branch=frame.branch)
            for name in (
                "branch",
                "last",
                "highest",
                "calm",
                "settled",
                "streak",
                "first",
                "onset",
                "event_step",
                "loss_rows",
                "scale_from",
                "standing",
            ):
                setattr(self, name, getattr(fresh, name))
        found: list[Finding] = []
        at, values, skipped = self._rows(frame)
        falls, before = self._falls(values, skipped)
        if "loss_scale" in frame.columns and len(frame.columns["loss_scale"]):
            self.scale_from = min(self.scale_from, int(frame.columns["loss_scale"].steps[0]))
        row = 0
        for event in sorted(
            (e for e in frame.events if e.kind == "overflow"), key=lambda e: np.inf if e.step is None else e.step
        ):
            stop = len(at) if event.step is None else int(np.searchsorted(at, event.step, side="right"))
            found += self._stretch(at[row:stop], values[row:stop], falls[row:stop], before[row:stop])
            if event.step is None or event.step < self.scale_from:
                found += self._event(event, frame)
            row = max(row, stop)
        found += self._stretch(at[row:], values[row:], falls[row:], before[row:])
        self.loss_rows = self._losses(frame, None)
        return Verdict(tuple(found))

    def _stretch(self, at: Ints, values: Floats, falls: Floats, before: Floats) -> list[Finding]:
        found: list[Finding] = []
        row = 0
        for mark in [*np.flatnonzero(falls > 0).tolist(), len(at)]:
            found += self._calm_rows(at[row:mark], values[row:mark])
            if mark < len(at):
                found += self._skip(int(at[mark]), float(falls[mark]), float(values[mark]), float(before[mark]))
            row = mark + 1
        return found

    def _losses(self, frame: Frame, step: int | None) -> list[int]:
        """The last two steps at which a loss was logged, up to `step`."""
        column = frame.columns.get("loss")
        if column is None:
            return self.loss_rows
        stop = len(column) if step is None else int(np.searchsorted(column.steps, step, side="right"))
        return [*self.loss_rows, *column.steps[max(0, stop - 2) : stop].tolist()][-2:]

    def _rows(self, frame: Frame) -> tuple[Ints, Floats, Floats]:
        """Steps, scales (NaN where not given) and skipped steps, one row per step that has either."""
        scale, skips = frame.columns.get("loss_scale"), frame.columns.get("skipped_steps")
        columns = [c for c in (scale, skips) if c is not None and c.shape == "scalar"]
        if not columns:
            return np.empty(0, np.int64), np.empty(0), np.empty(0)
        if len(columns) == 1 and scale is not None:
            return scale.steps, np.where(scale.values > 0, scale.values, np.nan), np.zeros(len(scale))
        at = np.unique(np.concatenate([c.steps for c in columns]))
        values, skipped = np.full(len(at), np.nan), np.zeros(len(at))
        if scale is not None:
            values[np.searchsorted(at, scale.steps)] = np.where(scale.values > 0, scale.values, np.nan)
        if skips is not None:
            skipped[np.searchsorted(at, skips.steps)] = np.nan_to_num(skips.values)
        return at, values, skipped

    def _falls(self, values: Floats, skipped: Floats) -> tuple[Floats, Floats]:
        """Halvings of each row (by the scale where it tells, else by the number of skipped steps), and the scale before."""
        known = np.concatenate([[self.last], values])
        index = np.maximum.accumulate(np.where(np.isfinite(known), np.arange(len(known)), 0))
        before, now = known[index[:-1]], known[index[1:]]
        with np.errstate(invalid="ignore", divide="ignore"):
            halved = np.where(now <= FALLING * before, np.log2(before / now), 0.0)
        return np.maximum(halved, np.where(skipped > 0, np.maximum(skipped, 0.0), 0.0)), before

    def _calm_rows(self, at: Ints, values: Floats) -> list[Finding]:
        """Rows without a skip: they end the streak, and heal."""
        if not len(at):
            return []
        before, self.calm = self.calm, self.calm + len(at)
        self.settled |= self.calm >= SETTLED
        if not before:
            self.streak = 0.0
        finite = values[np.isfinite(values)]
        self.last = float(finite[-1]) if len(finite) else self.last
        if self.standing.open and before < CALM_ROWS <= self.calm and not self.last < 1:
            return self._turn(None, int(at[CALM_ROWS - before - 1]), self.last)
        return []

    def _skip(self, step: int, halvings: float, scale: float, before: float) -> list[Finding]:
        if self.streak == 0:
            self.first, self.calm = before, 0
            self.onset = step if not self.standing.open else self.standing.onset
        self.calm, self.streak = 0, self.streak + halvings
        self.highest = max(self.highest, 0.0 if np.isnan(before) else before)
        self.last = scale if np.isfinite(scale) else self.last
        return self._turn(self._severity(), step, self.last)

    def _severity(self) -> Severity | None:
        if self.last < 1 < self.highest:
            return "critical"
        if self.streak < HALVINGS:
            return self.standing.severity if self.standing.open else None
        if not self.settled and not self.last < LOW:
            return "info"
        return "critical" if self.streak >= DEEP or self.last <= 2 else "warning"

    def _event(self, event: Event, frame: Frame) -> list[Finding]:
        """An overflow line; the streak is unbroken while these come in every step, or at least in every row."""
        rows = self._losses(frame, event.step)
        step = event.step if event.step is not None else rows[-1] if rows else max(self.event_step, 0)
        spacing = max(1, rows[1] - rows[0]) if len(rows) == 2 else 1
        if step - self.event_step > spacing and self.event_step >= 0:
            self.settled |= step - self.event_step >= SETTLED
            self.streak = 0.0
        self.event_step = step
        scale = float(event.data.get("loss_scale") or np.nan)
        return self._skip(step, 1.0, scale, self.last if np.isfinite(self.last) else scale)

    def _turn(self, severity: Severity | None, step: int, scale: float) -> list[Finding]:
        turn = self.standing.turn(severity, self.onset)
        if turn is None:
            return []
        search = self.standing.severity == "info"
        text = "healed" if turn[1] == "recovered" else "search" if search else "opened"
        numbers = {"step": self.standing.onset, "halvings": round(self.streak), "scale": scale, "first": self.first}
        facts = {
            "accepted_updates_since": 0 if turn[1] == "open" else CALM_ROWS,
            "halvings": self.streak,
            "scale": scale,
            "start_up": search,
        }
        return [
            Finding(
                "loss-scale-collapse", "loss_scale", self.standing.onset, step, turn[0],
                Message(f"detectors.loss-scale-collapse.{text}", numbers), state=turn[1], value=scale, expected=self.first, facts=facts,
            )
        ]  # fmt: skip
