"""NaN and Inf, also where a trainer hides them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from poise.detectors.base import Example
from poise.detectors.examples import falling_loss, frame, steps
from poise.records import Bools, Column, Finding, Frame, Message, Severity, Verdict

WATCHED = (
    "loss",
    "eval_loss",
    "grad_norm",
    "grad_norm_clipped",
    "policy_loss",
    "value_loss",
    "param_norm",
    "update_norm",
    "nonfinite_count",
)
PERSISTENT = 3  # rows in a row after which the run will hardly come back by itself


def _loss_with(values: dict[int, float], rows: int = 120) -> Frame:
    loss = falling_loss(rows, seed=1)
    for row, value in values.items():
        loss[row] = value
    return frame(steps(rows), loss=loss)


@dataclass(slots=True)
class _Track:
    onset: int = -1
    bad: int = 0  # consecutive bad rows
    good: int = 0  # consecutive good rows since
    finite_before: int = 0
    severity: Severity = "info"
    kind: str = "nan"
    steps: list[int] = field(default_factory=list)


@dataclass(slots=True)
class NonFinite:
    """A loss, gradient or weight norm that is NaN or infinite; critical once it lasts, or comes in the very first row and stays.

    One bad row that heals is `info` (a loss scaler skips such steps; a batch with all labels masked has no loss). A loss of
    exactly 0.0 beside a non-finite gradient norm is a NaN that the trainer's filter replaced by its running mean.

    Blind to: NaN in a tensor that reaches neither a logged loss nor a norm. Delay: none for a warning, 3 rows for critical.
    """

    tracks: dict[str, _Track] = field(default_factory=dict)
    kinds: ClassVar[tuple[str, ...]] = ("non-finite",)
    fires_on: ClassVar[tuple[Example, ...]] = (
        Example(
            "a loss that is NaN from step 60 on",
            lambda: _loss_with(dict.fromkeys(range(60, 120), np.nan)),
            "non-finite",
            60,
        ),
        Example(
            "a loss that is NaN in every row", lambda: _loss_with(dict.fromkeys(range(120), np.nan)), "non-finite", 0
        ),
        Example("one NaN that heals", lambda: _loss_with({60: np.nan}), "non-finite", 60),
        Example("an infinite loss", lambda: _loss_with({60: np.inf}), "non-finite", 60),
    )
    quiet_on: ClassVar[tuple[Example, ...]] = (
        Example(
            "a loss of exactly zero without anything non-finite",
            lambda: _loss_with(dict.fromkeys(range(110, 120), 0.0)),
        ),
        Example("a falling loss", lambda: _loss_with({})),
    )

    def update(self, frame: Frame) -> Verdict:
        found: list[Finding] = []
        for signal in WATCHED:
            for name, column in frame.members(signal):
                if column.shape == "scalar" and len(column):
                    bad = column.values > 0 if signal == "nonfinite_count" else ~np.isfinite(column.values)
                    found += self._judge(name, column, bad, "nan")
        found += self._masked(frame)
        return Verdict(tuple(found))

    def _masked(self, frame: Frame) -> list[Finding]:
        """Zeros of the loss at steps whose gradient norm is not finite."""
        loss = frame.columns.get("loss")
        norms = [frame.columns[n] for n in ("grad_norm", "grad_norm_clipped") if n in frame.columns]
        if loss is None or loss.shape != "scalar":
            return []
        sick = np.concatenate(
            [np.empty(0, np.int64), *(c.steps[~np.isfinite(c.values)] for c in norms if c.shape == "scalar")]
        )
        return self._judge("loss", loss, (loss.values == 0) & np.isin(loss.steps, sick), "masked")

    def _judge(self, name: str, column: Column, bad: Bools, kind: str) -> list[Finding]:
        track = self.tracks.setdefault(f"{kind}:{name}", _Track(kind=kind))
        if track.onset < 0 and not bad.any():
            track.finite_before += len(column)
            return []
        found = []
        changes = np.flatnonzero(np.diff(bad.astype(np.int8))) + 1
        for start, stop in zip([0, *changes.tolist()], [*changes.tolist(), len(bad)], strict=True):
            found += (
                self._stretch(track, name, column, start, stop)
                if bad[start]
                else self._calm_stretch(track, name, column, start, stop)
            )
        return found

    def _stretch(self, track: _Track, name: str, column: Column, start: int, stop: int) -> list[Finding]:
        """A run of bad rows: opens, and becomes critical with its third row."""
        found = []
        step = column.steps[start:stop]
        if track.onset < 0:
            track.onset, track.bad, track.severity = int(step[0]), 0, "info"
            found.append(self._say(track, name, column, start, "info" if name.startswith("grad_norm") else "warning"))
        before = track.bad
        track.bad, track.good = track.bad + len(step), 0
        track.steps = [*track.steps, *step.tolist()][:16]
        if before < PERSISTENT <= track.bad:
            found.append(self._say(track, name, column, start + PERSISTENT - before - 1, _lasting(name)))
        return found

    def _calm_stretch(self, track: _Track, name: str, column: Column, start: int, stop: int) -> list[Finding]:
        """Good rows again: healed after as many of them as there were bad ones, at least 3."""
        if track.onset < 0:
            track.finite_before += stop - start
            return []
        needed = max(PERSISTENT, min(track.bad, 32)) - track.good
        track.good += stop - start
        if stop - start < needed:
            return []
        row = start + needed - 1
        severity: Severity = (
            "info" if track.bad == 1 or (name.startswith("grad_norm") and track.bad < PERSISTENT) else "warning"
        )
        found = [self._say(track, name, column, row, severity, healed=True)]
        track.onset, track.bad, track.good, track.severity, track.steps = -1, 0, 0, "info", []
        track.finite_before += stop - start
        return found

    def _say(
        self, track: _Track, name: str, column: Column, row: int, severity: Severity, healed: bool = False
    ) -> Finding:
        track.severity = severity
        text = (
            "healed"
            if healed
            else "masked"
            if track.kind == "masked"
            else "first-row"
            if not track.finite_before
            else "opened"
        )
        facts = {
            "rows": track.bad,
            "finite_before": track.finite_before,
            "masked": track.kind == "masked",
            "steps": list(track.steps),
        }
        return Finding(
            "non-finite", name, track.onset, int(column.steps[row]), severity,
            Message(f"detectors.non-finite.{text}", {"signal": name, "step": track.onset, "rows": track.bad}),
            state="recovered" if healed else "open", value=float(column.values[row]), facts=facts,
        )  # fmt: skip


def _lasting(name: str) -> Severity:
    return "critical" if name.partition("/")[0] in ("loss", "eval_loss", "param_norm") else "warning"
