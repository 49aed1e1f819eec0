"""A loss that is worse where a run was resumed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from poise.detectors.base import Example
from poise.detectors.courses import Courses, noise_of
from poise.detectors.examples import falling_loss, steps
from poise.records import Column, Event, Finding, Frame, Message, Severity, State, Verdict

ROWS = 8  # rows after the resumption whose median is compared
LASTING_ROWS = 64  # rows after which a loss that is still higher has not come back
SHARE = 0.05  # least rise: data order alone moves a resumed loss by the noise, and LR warmup after a resumption by a few percent
NOISES = 3.0  # standard deviations of the median of 8 rows' blocks
BEGINNING = 0.1  # a branch that begins within this share of the former one is a new run
RATE = 1.5  # factor by which the learning rate differs where the schedule was lost
AFTER = ("loss", "learning_rate", "grad_norm")


def _resumed(factor: float, at: int = 600, length: int = 400, rate: float = 1.0) -> Frame:
    """Two branches need two frames; the example marks the resumption by an event, as some logs do."""
    loss, rates = falling_loss(at + length, 7), np.full(at + length, 3e-4)
    loss[at:] *= factor
    rates[at:] *= rate
    columns = {"loss": Column(steps(at + length), loss), "learning_rate": Column(steps(at + length), rates)}
    return Frame(columns, (Event("restart", at, {}),))


@dataclass(slots=True)
class ResumeJump:
    """The first 8 rows after a resumption (a new branch, or a `restart` event) against the former branch at the same steps.

    A jump of more than 5 % and 3 noise widths is a warning that heals to `info` when the loss is back within 64 rows; a learning
    rate that is another one (factor 1.5) is said as `info` beside it. A branch that begins at the former one's beginning is a new run,
    not a resumption.

    Blind to: a lost optimizer state in a noisy run far from convergence, where the loss hardly jumps (look at the state itself).
    Delay: 8 rows.
    """

    courses: Courses = field(default_factory=Courses)
    former: Courses = field(default_factory=Courses)
    begin: int = -1  # first step after the resumption; -1 where nothing was resumed
    ready: bool = False
    heads: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    compared: int = 0
    expected: float = float("nan")
    limit: float = 0.0
    open: bool = False
    onset: int = 0
    across_branches: ClassVar[bool] = True
    kinds: ClassVar[tuple[str, ...]] = ("resume-jump",)
    fires_on: ClassVar[tuple[Example, ...]] = (
        Example("a loss 20 % higher after a restart", lambda: _resumed(1.2), "resume-jump", 600, 0),
        Example(
            "a learning rate ten times higher after a restart, as `info`",
            lambda: _resumed(1.0, rate=10.0),
            "resume-jump",
            600,
            0,
        ),
    )
    quiet_on: ClassVar[tuple[Example, ...]] = (
        Example("a seamless restart", lambda: _resumed(1.0)),
        Example("a run that begins anew", lambda: _resumed(1.3, at=5)),
    )

    def update(self, frame: Frame) -> Verdict:
        found: list[Finding] = []
        if frame.branch != self.courses.branch:
            firsts = [int(c.steps[0]) for c in frame.columns.values() if len(c)]
            self._resume(min(firsts, default=0), frame.branch)
        for event in frame.events:
            if event.kind == "restart" and event.step is not None:
                before, frame = _split(frame, event.step)
                found += self._take(before)
                self._resume(event.step, frame.branch)
        return Verdict((*found, *self._take(frame)))

    def _resume(self, step: int, branch: int) -> None:
        """A new beginning at `step`: what was seen so far is the former branch."""
        if self.courses.rows("loss"):
            self.former = self.courses
        self.courses = Courses(branch=branch)
        seen = self.former.steps("loss")
        started_anew = (
            not len(seen) or step <= seen[0] + BEGINNING * (seen[-1] - seen[0]) or self.former.rows("loss") < 2 * ROWS
        )
        self.begin, self.ready, self.open, self.heads = (-1 if started_anew else step), False, False, {}

    def _take(self, frame: Frame) -> list[Finding]:
        found: list[Finding] = []
        for _ in self.courses.walk(frame, "learning_rate"):
            pass
        for _ in self.courses.walk(frame, "grad_norm"):
            pass
        heads = (
            {name: _head(frame, name, ROWS - len(self.heads.get(name, []))) for name in AFTER}
            if self.begin >= 0 and not self.ready
            else {}
        )
        self.heads = {name: [*self.heads.get(name, []), *values] for name, values in heads.items()} or self.heads
        for step in self.courses.walk(frame, "loss"):
            if self.begin >= 0:
                found += self._judge(step)
        return found

    def _judge(self, step: int) -> list[Finding]:
        rows = self.courses.rows("loss")
        if not self.ready and rows >= ROWS:
            self.ready = True
            return self._compare(step)
        if self.open and 2 * ROWS <= rows <= LASTING_ROWS:  # noqa: SIM102
            if float(np.median(self.courses.values("loss")[-ROWS:])) <= self.expected + self.limit / 3:
                self.open = False
                return [
                    self._say(
                        "loss",
                        step,
                        "info",
                        "recovered",
                        "healed",
                        float(np.median(self.courses.values("loss")[-ROWS:])),
                        self.expected,
                    )
                ]
        return []

    def _compare(self, step: int) -> list[Finding]:
        found: list[Finding] = []
        now = float(np.median(self.courses.values("loss")[:ROWS]))
        self.expected, noise = self._former_at(step)
        self.limit = max(SHARE * abs(self.expected), NOISES * noise)
        self.onset, self.compared = self.begin, step
        if now - self.expected > self.limit:
            self.open = True
            found.append(self._say("loss", step, "warning", "open", "opened", now, self.expected))
        before, after = _last(self.former, "learning_rate", self.begin), self._after("learning_rate")
        if before > 0 and len(after) and not 1 / RATE <= after[-1] / before <= RATE and after[-1] > 0:
            found.append(self._say("learning_rate", step, "info", "ended", "rate", after[-1], before))
        return found

    def _former_at(self, step: int) -> tuple[float, float]:
        """The former branch's loss at these steps (its last rows where it ended before), and the noise of 8 rows' median."""
        at, values = self.former.steps("loss"), self.former.values("loss")
        stop = max(1, int(np.searchsorted(at, step, side="right")))
        begin = max(0, min(int(np.searchsorted(at, self.begin)), stop - ROWS))
        around = values[max(0, stop - 8 * ROWS) : stop]
        return float(np.median(values[begin:stop])), noise_of(around) * (2 if stop < 2 * ROWS else 1)

    def _say(
        self, signal: str, step: int, severity: Severity, state: State, text: str, value: float, expected: float
    ) -> Finding:
        rate, norm = (self._ratio(name) for name in ("learning_rate", "grad_norm"))
        numbers = {
            "signal": signal,
            "step": self.onset,
            "value": value,
            "expected": expected,
            "percent": 100 * (value / expected - 1) if expected else 0.0,
        }
        return Finding(
            "resume-jump", signal, self.onset, step, severity, Message(f"detectors.resume-jump.{text}", numbers), state=state, value=value,
            expected=expected, facts={"rate_ratio": rate, "grad_norm_ratio": norm},
        )  # fmt: skip

    def _after(self, name: str) -> list[float]:
        """The first values after the resumption, as known when it was judged."""
        return [value for step, value in self.heads.get(name, []) if step <= self.compared]

    def _ratio(self, name: str) -> float | None:
        before, after = _last(self.former, name, self.begin), self._after(name)
        return float(np.median(after)) / before if before > 0 and after else None


def _last(courses: Courses, name: str, step: int) -> float:
    """Median of the last few blocks before a step; NaN where there are none."""
    stop = int(np.searchsorted(courses.steps(name), step)) if courses.rows(name) else 0
    return float(np.median(courses.values(name)[max(0, stop - 3) : stop])) if stop else float("nan")


def _head(frame: Frame, name: str, rows: int) -> list[tuple[int, float]]:
    column = frame.columns.get(name)
    if column is None or column.shape != "scalar" or rows <= 0:
        return []
    where = np.flatnonzero(np.isfinite(column.values))[:rows]
    return list(zip(column.steps[where].tolist(), column.values[where].tolist(), strict=True))


def _split(frame: Frame, step: int) -> tuple[Frame, Frame]:
    """The rows before a step, and those from it on."""
    cut = {name: int(np.searchsorted(c.steps, step)) for name, c in frame.columns.items()}
    before = {name: c.slice(0, cut[name]) for name, c in frame.columns.items() if cut[name]}
    after = {name: c.slice(cut[name], len(c)) for name, c in frame.columns.items() if cut[name] < len(c)}
    return Frame(before, (), frame.branch), Frame(after, (), frame.branch)
