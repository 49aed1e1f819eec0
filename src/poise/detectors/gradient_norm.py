"""Gradients that explode or vanish."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from poise.detectors.base import Example
from poise.detectors.courses import Courses, Standing, tail
from poise.detectors.examples import calm_norm, falling_loss, frame, steps
from poise.detectors.excursions import Excursions, rows_of
from poise.records import Finding, Floats, Frame, Message, Severity, Surprise, Verdict
from poise.stats.robust import log10_tail

INITIAL = 20  # accepted rows whose median is the norm's start (design: the first 20 accepted steps)
FALL = 1e-3  # "several orders below": a healthy norm falls by one order, seldom two
RECENT = 16  # least rows below
UNLEARNT = 0.8  # share of its first level that a loss must have kept to count as standing at its start
MIN_DEPTH = 4
DEPTH_FALL = 1e-3  # shallow third against deep third; healthy stacks lie within a factor of about ten
MEMBERS_SAID = 4


def _burst(rows: int, factor: float, length: int) -> Frame:
    norm = calm_norm(rows, seed=1)
    norm[600 : 600 + length] *= factor
    return frame(steps(rows), grad_norm=norm)


def _fading(loss_end: float) -> Frame:
    norm = calm_norm(800, seed=2) * 10 ** (-4 * np.clip((np.arange(800) - 200) / 200, 0, 1))
    return frame(steps(800), grad_norm=norm, loss=falling_loss(800, 3, start=2.3, end=loss_end))


def _stack(per_layer: float) -> Frame:
    layers = {f"grad_norm__layers.{i}.mlp": calm_norm(100, seed=i, level=per_layer ** (7 - i)) for i in range(8)}
    return frame(steps(100, 50), **layers)


@dataclass(slots=True)
class GradientExplosion:
    """A gradient norm far above its own calm past: robust z on the log axis above 6 and at least 3 times the level.

    It opens as `info`, for a single burst that clipping takes care of is no fault; it is a warning while the median of 8 rows
    stands at 10 times the level or more, and heals below twice the level. Members (layers) are judged only where there is no
    global norm, otherwise the finding's facts name the members that burst in the same row. Where rows stand exactly at the
    highest value (a norm logged after clipping), that value is no excursion.

    Args:
        z: as for a loss spike; on healthy log-normal norms 6 sigma on the log axis gave no false alarm in simulation.

    Blind to: a rise slower than 128 rows, and the first 4 rows. Delay: none for `info`, 4 to 8 rows for a warning.
    """

    z: float = 6.0
    branch: int = 0
    total: bool = False
    excursions: Excursions = field(default_factory=lambda: Excursions("gradient-explosion"))
    kinds: ClassVar[tuple[str, ...]] = ("gradient-explosion",)
    fires_on: ClassVar[tuple[Example, ...]] = (
        Example("a single burst", lambda: _burst(1000, 40.0, 1), "gradient-explosion", 600, 0),
        Example("a norm that stays 30 times higher", lambda: _burst(1000, 30.0, 400), "gradient-explosion", 600, 0),
    )
    quiet_on: ClassVar[tuple[Example, ...]] = (
        Example("a gently falling log-normal norm", lambda: _burst(1000, 1.0, 1)),
        Example(
            "a norm that was logged after clipping at 1",
            lambda: frame(steps(500), grad_norm=np.minimum(calm_norm(500, 4, 3.0, 0.8), 1.0)),
        ),
        Example("a norm that is printed as 0.000", lambda: frame(steps(300), grad_norm=np.zeros(300))),
    )

    def update(self, frame: Frame) -> Verdict:
        if frame.branch != self.branch:
            self.branch, self.total, self.excursions = frame.branch, False, Excursions("gradient-explosion")
        self.excursions.z = self.z
        self.total |= "grad_norm" in frame.columns
        found: list[Finding] = []
        surprise = []
        for name, column in frame.members("grad_norm"):
            if name not in frame.calm or (self.total and name != "grad_norm"):
                continue
            rows = rows_of(name, column, frame.calm[name])
            found += [self._with_members(f, frame) for f in self.excursions.judge(rows)]
            surprise.append(Surprise(name, "gradient", rows.steps, log10_tail(rows.z)))
        return Verdict(tuple(found), tuple(surprise))

    def _with_members(self, finding: Finding, frame: Frame) -> Finding:
        """Name the members that burst at the step of opening, worst first."""
        if finding.step != finding.onset:
            return finding
        burst = {}
        for name, column in frame.members("grad_norm"):
            at = np.flatnonzero(column.steps == finding.step)
            if name != finding.signal and name in frame.calm and len(at) and frame.calm[name].z[at[0]] > self.z:
                burst[name] = float(frame.calm[name].z[at[0]])
        worst = sorted(burst, key=lambda n: -burst[n])[:MEMBERS_SAID]
        return replace(finding, facts={**finding.facts, "members": worst}) if worst else finding


@dataclass(slots=True)
class GradientVanishing:
    """A gradient norm three orders below its start while nothing is being learnt, or tiny in the layers near the input.

    A falling norm is normal, and a converged model has hardly any gradient, so the fall alone says nothing: the loss must still
    stand at its start (within 20 %) or above. Over depth: members that differ only by a number (`layers.3.mlp`) are compared;
    the shallow third's median norm must lie three orders below the deep third's over 16 rows.

    Blind to: a vanishing norm in a log without a loss; less than three orders. Delay: 16 rows.
    """

    courses: Courses = field(default_factory=Courses)
    standing: dict[str, Standing] = field(default_factory=dict)
    start: Floats = field(default_factory=lambda: np.empty(0))
    kinds: ClassVar[tuple[str, ...]] = ("gradient-vanishing",)
    fires_on: ClassVar[tuple[Example, ...]] = (
        Example(
            "a norm that falls by four orders while the loss stands at ln 10",
            lambda: _fading(2.29),
            "gradient-vanishing",
            355,
            25,
        ),
        Example(
            "layers whose norm falls tenfold per block towards the input",
            lambda: _stack(0.1),
            "gradient-vanishing",
            0,
            0,
        ),
    )
    quiet_on: ClassVar[tuple[Example, ...]] = (
        Example("a norm that falls by four orders while the loss is learnt", lambda: _fading(0.02)),
        Example("layers whose norm halves per block towards the input", lambda: _stack(0.6)),
        Example(
            "a norm that is printed as 0.000",
            lambda: frame(steps(300), grad_norm=np.zeros(300), loss=falling_loss(300, 1, 10.0, 9.5)),
        ),
    )

    def update(self, frame: Frame) -> Verdict:
        if self.courses.restart(frame):
            self.standing, self.start = {}, np.empty(0)
        found: list[Finding] = []
        for step in self.courses.walk(frame, "grad_norm", ("loss",)):
            found += self._over_time(step)
        for step in self.courses.walk_members(frame, "grad_norm"):
            found += self._over_depth(step)
        return Verdict(tuple(found))

    def _over_time(self, step: int) -> list[Finding]:
        norm, loss = self.courses.by_name["grad_norm"], self.courses.by_name.get("loss")
        if len(self.start) < INITIAL and norm.size == 1:
            self.start = np.array([m for m in norm.medians if m > 0][:INITIAL])
        standing = self.standing.setdefault("grad_norm", Standing())
        if (
            len(self.start) < INITIAL
            or loss is None
            or (norm.medians[-1] > FALL * np.median(self.start) and not standing.open)
        ):
            return []
        values, limit = self.courses.values("grad_norm"), FALL * float(np.median(self.start))
        recent = max(1, -(-RECENT // norm.size))
        now = float(np.median(values[-recent:]))
        losses = self.courses.values("loss")
        first = float(np.median(losses[: max(1, INITIAL // loss.size)])) if len(losses) else np.nan
        unlearnt = (
            len(losses) > 0
            and float(np.median(tail(losses, 0.05, recent))) > (UNLEARNT if first > 0 else 1 / UNLEARNT) * first
        )
        gone = bool((values[-recent:] <= limit).all()) or (standing.open and now <= 10 * limit)
        below = np.flatnonzero(values > limit)
        onset = int(self.courses.steps("grad_norm")[min(len(values) - 1, below[-1] + 1 if len(below) else 0)])
        numbers = {"value": now, "start": limit / FALL, "loss": float(losses[-1]) if len(losses) else np.nan}
        return self._turn("grad_norm", "warning" if gone and unlearnt else None, onset, step, "time", numbers)

    def _over_depth(self, step: int) -> list[Finding]:
        found: list[Finding] = []
        for family, members in _by_depth(
            name for name in self.courses.by_name if name.startswith("grad_norm/")
        ).items():
            if len(members) < MIN_DEPTH or min(self.courses.rows(m) for m in members) < RECENT:
                continue
            recent = [self._recent(m) for m in members]
            third = len(members) // 3 or 1
            shallow, deep = float(np.median(recent[:third])), float(np.median(recent[-third:]))
            seen = 0 < shallow < DEPTH_FALL * deep
            numbers = {"value": shallow, "start": deep, "layers": len(recent)}
            onset = self._depth_onset(members[0], members[-1]) if seen else 0
            found += self._turn(
                members[0], "warning" if seen else None, onset, step, "depth", numbers | {"family": family}
            )
        return found

    def _recent(self, name: str) -> float:
        course = self.courses.by_name[name]
        return float(np.median(course.medians[-max(1, -(-RECENT // course.size)) :]))

    def _depth_onset(self, shallow: str, deep: str) -> int:
        a, b = self.courses.values(shallow), self.courses.values(deep)
        n = min(len(a), len(b))
        good = np.flatnonzero(a[:n] > 10 * DEPTH_FALL * b[:n])
        return int(self.courses.steps(shallow)[min(n - 1, good[-1] + 1 if len(good) else 0)])

    def _turn(
        self, name: str, severity: Severity | None, onset: int, step: int, text: str, numbers: Mapping[str, float | str]
    ) -> list[Finding]:
        standing = self.standing.setdefault(name, Standing())
        turn = standing.turn(severity, onset)
        if turn is None:
            return []
        text = "healed" if turn[1] == "recovered" else text
        return [
            Finding(
                "gradient-vanishing", name, standing.onset, step, turn[0],
                Message(f"detectors.gradient-vanishing.{text}", {"signal": name, "step": standing.onset, **numbers}),
                state=turn[1], chronic=True, value=float(numbers["value"]), expected=float(numbers["start"]), facts={"over": text, **numbers},
            )
        ]  # fmt: skip


def _by_depth(names: object) -> dict[str, list[str]]:
    """Members that differ only in their first number, in the order of that number."""
    groups: dict[str, list[tuple[int, str]]] = {}
    for name in names:  # type: ignore[attr-defined]
        number = re.search(r"\d+", name)
        if number:
            groups.setdefault(name[: number.start()] + "*" + name[number.end() :], []).append(
                (int(number.group()), name)
            )
    return {family: [name for _, name in sorted(members)] for family, members in groups.items()}
