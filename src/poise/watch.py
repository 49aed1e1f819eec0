"""The Watch: one engine for live runs and finished logs. Frames in, records out."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field, replace

import numpy as np

from poise.detectors.base import Detector
from poise.incidents import Ledger
from poise.records import SEVERITIES, Calm, Column, Finding, Frame, Incident, Record, Surprise
from poise.signals import signal_of
from poise.stats.baseline import Baseline

REACH_ROWS = 16  # findings whose onsets lie within about this many rows belong together
GRADE_WINDOW = 200  # steps over which the worst grade counts
GRADES = {"info": "B", "warning": "C", "critical": "E"}


@dataclass(slots=True)
class Watch:
    """Feeds frames to baselines and detectors and folds what they find into incidents.

    Args:
        detectors: instances, each with its configuration; order breaks ties between findings of one step.
        judged: signals that get a baseline (`frame.calm`), members included.
    """

    detectors: tuple[Detector, ...]
    judged: tuple[str, ...] = ("loss", "eval_loss", "grad_norm", "grad_norm_clipped", "update_norm", "update_ratio")
    ledger: Ledger = field(default_factory=Ledger)
    baselines: dict[str, Baseline] = field(default_factory=dict)
    tails: dict[str, list[int]] = field(default_factory=dict)
    surprise: list[Surprise] = field(default_factory=list)
    fresh: tuple[Detector, ...] | None = None
    branch: int = 0
    last_step: int = 0

    @np.errstate(
        over="ignore", invalid="ignore", divide="ignore"
    )  # logs hold 1e308 and zeros; what comes of them is Inf or NaN
    def update(self, frame: Frame) -> list[Record]:
        """Judge the next stretch; return the findings and the new or changed incidents it led to."""
        if self.fresh is None:
            self.fresh = deepcopy(self.detectors)
        if frame.branch != self.branch:
            self._start_branch(frame.branch)
        frame = replace(frame, calm=self._calm(frame))
        verdicts = [detector.update(frame) for detector in self.detectors]
        findings = _in_order(self._with_reach(f, frame) for verdict in verdicts for f in verdict.findings)
        self.tails |= {
            name: [*self.tails.get(name, []), *c.steps[-REACH_ROWS:].tolist()][-REACH_ROWS:]
            for name, c in frame.columns.items()
        }
        self.surprise = [s for verdict in verdicts for s in verdict.surprise]
        self.last_step = max((int(c.steps[-1]) for c in frame.columns.values() if len(c)), default=self.last_step)
        return [*findings, *self.ledger.update(findings, frame.branch)]

    def _start_branch(self, branch: int) -> None:
        """Begin with a fresh past; only what compares branches remembers the one before."""
        pairs = zip(self.detectors, self.fresh or self.detectors, strict=True)
        self.detectors = tuple(old if getattr(old, "across_branches", False) else deepcopy(new) for old, new in pairs)
        self.branch, self.baselines, self.tails = branch, {}, {}

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """All incidents so far, most serious first, then earliest first."""
        return tuple(
            sorted(self.ledger.incidents, key=lambda i: (-SEVERITIES.index(i.severity), i.branch, i.onset_step, i.id))
        )

    def grade(self) -> tuple[str, str]:
        """The worst grade of the last 200 steps, A (calm) to E, and its basis: the worst severity still standing."""
        recent = self.last_step - GRADE_WINDOW
        standing = [
            i for i in self.incidents if i.branch == self.branch and (i.end_step is None or i.end_step > recent)
        ]
        return max((GRADES[i.severity] for i in standing), default="A"), "severity"

    def _calm(self, frame: Frame) -> dict[str, Calm]:
        return {
            name: self._baseline(name).update(column)
            for name, column in frame.columns.items()
            if self._is_judged(name, column)
        }

    def _with_reach(self, finding: Finding, frame: Frame) -> Finding:
        """Fill in how many steps the column's last 16 rows covered, as known at the finding's step."""
        column = frame.columns.get(finding.signal)
        if finding.reach or column is None:
            return finding
        row = int(np.searchsorted(column.steps, finding.step, side="right"))
        known = [*self.tails.get(finding.signal, []), *column.steps[max(0, row - REACH_ROWS - 1) : row].tolist()][
            -REACH_ROWS - 1 :
        ]
        reach = REACH_ROWS * (known[-1] - known[0]) / (len(known) - 1) if len(known) > 1 else REACH_ROWS
        return replace(finding, reach=max(1, round(reach)))

    def _is_judged(self, name: str, column: Column) -> bool:
        return column.shape == "scalar" and name.partition("/")[0] in self.judged

    def _baseline(self, name: str) -> Baseline:
        if name not in self.baselines:
            signal = signal_of(name)
            self.baselines[name] = Baseline(two_sided=signal.bad == "both", positive=signal.log)
        return self.baselines[name]


def _in_order(findings: Iterable[Finding]) -> list[Finding]:
    """By step of detection; detectors keep their order within a step."""
    return sorted(findings, key=lambda f: f.step)
