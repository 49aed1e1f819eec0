"""The field's rules of thumb, as two practitioners' articles state them. For those who want to run them: `presets.field_rules()`.

They are no part of the default watch: on healthy runs they alarm far too often (docs/notebook.md has the figures). Where a
wording allows several readings, the docstring says which one was taken. Rules whose signals no log has (divergence of attention
heads, cosine of updates) are left to the live monitor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from poise.detectors.base import Example
from poise.detectors.examples import calm_norm, falling_loss, frame, steps
from poise.records import Finding, Floats, Frame, Ints, Message, Verdict

INITIAL = 20  # accepted steps whose median is the initial gradient norm


def _finding(kind: str, name: str, rule: str, onset: int, step: int, value: float, limit: float) -> Verdict:
    numbers = {"signal": name, "step": onset, "value": value, "limit": limit}
    message = Message(f"detectors.field.{rule}", numbers)
    finding = Finding(
        kind, name, onset, step, "warning", message, chronic=True, value=value, expected=limit, facts={"rule": rule}
    )
    return Verdict((finding,))


def _layers(seed: int, spread: float, shift: float = 1.0) -> Frame:
    rows = 300
    norms = {
        f"grad_norm__layers.{i}.mlp": calm_norm(rows, seed + i) * shift * np.exp(spread * (i - 4)) for i in range(8)
    }
    return frame(steps(rows), **norms)


@dataclass(slots=True)
class FieldLossRise:
    """Loss up by 5 % over 50 consecutive steps. Reading taken: each of 50 rows in a row lies 5 % above the row before them.

    Blind to: rises that pause for one row. Delay: 50 rows.
    """

    share: float = 0.05
    rows: int = 50
    tail: Floats = field(default_factory=lambda: np.empty(0))
    at: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    said: bool = False
    kinds: ClassVar[tuple[str, ...]] = ("divergence",)
    fires_on: ClassVar[tuple[Example, ...]] = (
        Example(
            "a loss that jumps by 10 %",
            lambda: frame(steps(300), loss=np.repeat([2.0, 2.2], 150)),
            "divergence",
            150,
            0,
        ),
    )
    quiet_on: ClassVar[tuple[Example, ...]] = (
        Example("a falling loss", lambda: frame(steps(300), loss=falling_loss(300, 1))),
    )

    def update(self, frame: Frame) -> Verdict:
        column = frame.columns.get("loss")
        if column is None or column.shape != "scalar" or self.said:
            return Verdict()
        keep = np.isfinite(column.values)
        values, at = np.concatenate([self.tail, column.values[keep]]), np.concatenate([self.at, column.steps[keep]])
        self.tail, self.at = values[-self.rows :].copy(), at[-self.rows :].copy()
        if len(values) <= self.rows:
            return Verdict()
        windows = np.lib.stride_tricks.sliding_window_view(values, self.rows + 1)
        high = np.flatnonzero(windows[:, 1:].min(axis=1) > windows[:, 0] + self.share * np.abs(windows[:, 0]))
        if not len(high):
            return Verdict()
        self.said, first = True, int(high[0])
        last = first + self.rows
        return _finding(
            "divergence",
            "loss",
            "loss-rise",
            int(at[first + 1]),
            int(at[last]),
            float(values[last]),
            float(values[first]),
        )


@dataclass(slots=True)
class FieldNormRatio:
    """Gradient norm 100 times its initial value is an explosion; a thousandth of it is vanishing (`several orders below`).

    The initial value is the median of the first 20 finite rows.

    Blind to: runs that begin badly; healthy norms fall too. Delay: none after 20 rows.
    """

    above: float = 100.0
    below: float = 1e-3
    first: Floats = field(default_factory=lambda: np.empty(0))
    said: list[str] = field(default_factory=list)
    kinds: ClassVar[tuple[str, ...]] = ("gradient-explosion", "gradient-vanishing")
    fires_on: ClassVar[tuple[Example, ...]] = (
        Example(
            "a norm 200 times its start",
            lambda: frame(steps(90), grad_norm=np.repeat([1.0, 200.0], 45)),
            "gradient-explosion",
            45,
            0,
        ),
        Example(
            "a norm that is gone",
            lambda: frame(steps(90), grad_norm=np.repeat([1.0, 1e-5], 45)),
            "gradient-vanishing",
            45,
            0,
        ),
    )
    quiet_on: ClassVar[tuple[Example, ...]] = (
        Example("a calm norm", lambda: frame(steps(300), grad_norm=calm_norm(300, 2))),
    )

    def update(self, frame: Frame) -> Verdict:
        column = frame.columns.get("grad_norm")
        if column is None or column.shape != "scalar":
            return Verdict()
        keep = np.isfinite(column.values)
        values, at = column.values[keep], column.steps[keep]
        begin = min(len(values), INITIAL - len(self.first))
        self.first = np.concatenate([self.first, values[:begin]])
        if len(self.first) < INITIAL:
            return Verdict()
        initial = float(np.median(self.first))
        findings = tuple(f for rule in self._rules(initial) for f in self._look(*rule, values[begin:], at[begin:]))
        return Verdict(findings)

    def _rules(self, initial: float) -> Iterator[tuple[str, float, int]]:
        yield "gradient-explosion", self.above * initial, 1
        yield "gradient-vanishing", self.below * initial, -1

    def _look(self, kind: str, limit: float, sign: int, values: Floats, at: Ints) -> tuple[Finding, ...]:
        hit = np.flatnonzero(sign * values > sign * limit)
        if kind in self.said or not len(hit):
            return ()
        self.said.append(kind)
        row = int(hit[0])
        return _finding(kind, "grad_norm", kind, int(at[row]), int(at[row]), float(values[row]), limit).findings


@dataclass(slots=True)
class FieldLayerNorms:
    """Per-layer gradient norms: coefficient of variation above 0.45, looked at every 100 steps; lower layers below 1e-6.

    Lower layers are read as the first third of the members, in name order of the log; persistently as at two looks in a row.

    Blind to: logs without per-layer norms. Delay: up to 100 steps, 200 for lower layers.
    """

    variation: float = 0.45
    tiny: float = 1e-6
    every: int = 100
    last_look: int = -(2**62)
    small_looks: int = 0
    said: list[str] = field(default_factory=list)
    kinds: ClassVar[tuple[str, ...]] = ("unstable", "gradient-vanishing")
    fires_on: ClassVar[tuple[Example, ...]] = (
        Example("norms that differ by a factor of e per layer", lambda: _layers(1, 1.0), "unstable", 0, 0),
        Example("lower layers without gradient", lambda: _layers(1, 0.0, 1e-9), "gradient-vanishing", 100, 0),
    )
    quiet_on: ClassVar[tuple[Example, ...]] = (Example("equal norms", lambda: _layers(1, 0.0)),)

    def update(self, frame: Frame) -> Verdict:
        members = [c for n, c in frame.members("grad_norm") if n != "grad_norm" and c.shape == "scalar" and len(c)]
        if len(members) < 3:
            return Verdict()
        at = members[0].steps
        findings: list[Finding] = []
        row = 0
        while row < len(at):
            if at[row] >= self.last_look + self.every:
                self.last_look = int(at[row])
                values = np.array([c.values[np.searchsorted(c.steps, at[row], side="right") - 1] for c in members])
                findings += self._look(values, self.last_look)
            row = max(row + 1, int(np.searchsorted(at, self.last_look + self.every)))
        return Verdict(tuple(findings))

    def _look(self, values: Floats, step: int) -> list[Finding]:
        found: list[Finding] = []
        spread = float(np.std(values) / np.mean(values)) if np.mean(values) > 0 else 0.0
        lower = float(np.max(values[: max(1, len(values) // 3)]))
        self.small_looks = self.small_looks + 1 if lower < self.tiny else 0
        if spread > self.variation and "unstable" not in self.said:
            self.said.append("unstable")
            found += _finding("unstable", "grad_norm", "variation", step, step, spread, self.variation).findings
        if self.small_looks >= 2 and "gradient-vanishing" not in self.said:
            self.said.append("gradient-vanishing")
            found += _finding("gradient-vanishing", "grad_norm", "lower-layers", step, step, lower, self.tiny).findings
        return found


FIELD: tuple[type, ...] = (FieldLossRise, FieldNormRatio, FieldLayerNorms)
