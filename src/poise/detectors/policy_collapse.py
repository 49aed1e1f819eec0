"""A reinforcement or preference run that loses its reward, its entropy, its reference or its signal."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log
from typing import ClassVar

import numpy as np

from poise.detectors.base import Example
from poise.detectors.courses import Courses, Standing, Streak, noise_of, tail
from poise.detectors.examples import frame, steps
from poise.detectors.losses import Held
from poise.records import Finding, Floats, Frame, Message, Severity, Verdict

MARKS = (
    "reward",
    "reward_std",
    "reward_margin",
    "entropy",
    "kl",
    "policy_loss",
    "completion_length",
)  # signals that only such runs have
SCORES = ("reward", "accuracy", "eval_accuracy")  # what the run is for: the first of them that the log has
FEWEST = 8  # rows of score before a fall can be told
HALF = 0.5  # of its gain that a score must have lost
NOISES = 4.0
GONE = 0.05  # share of its first level below which entropy is nearly zero; a policy that still learns keeps more
RUNAWAY = 10.0  # times the level of the first half, and above 1 nat
STUCK_ROWS = 32  # rows at ln 2 with no margin: a warmup may hold a preference run there for some rows
SILENT_ROWS = 8  # rows of exactly zero loss or spread
ON_LN2 = 5e-4  # the loss as printed with four digits
NO_MARGIN = 1e-3


def _reward(rows: int, seed: int, fall_at: int | None, noise: float = 0.1) -> Floats:
    t = np.arange(rows)
    level = 1 - np.exp(-t / (rows / 6))
    if fall_at is not None:
        level = np.where(t < fall_at, level, 0.05)
    return level + noise * np.random.default_rng(seed).standard_normal(rows)


def _entropy(end: float, reward: Floats) -> Frame:
    return frame(steps(len(reward), 100), reward=reward, entropy=1.1 * np.exp(np.linspace(0, np.log(end), len(reward))))


def _preference(moves: bool) -> Frame:
    margin = np.linspace(0, 2, 60) if moves else np.zeros(60)
    return frame(steps(60), loss=np.log1p(np.exp(-margin)), reward_margin=margin)


@dataclass(slots=True)
class PolicyCollapse:
    """What such a run is for, judged only where the log has signals that only such runs have; its loss carries no level.

    Reward (or accuracy): the recent tenth lies below the best smoothed level by more than half of the gain and 4 noise widths, or, where
    the run began well, by a quarter of the level and 6 noise widths; critical once nearly all of the gain is gone for a fifth
    of the run. Entropy below 5 % of its start while nothing was gained. Divergence from the reference ten times its former level and
    above 1 nat while the reward falls. No signal: loss or spread of rewards exactly 0 for 8 rows (a loss of 0 with a gradient is
    normal for group-relative methods), or a preference loss that stays at ln 2 with no margin for 32 rows.

    Blind to: a reward that is gamed; runs that log none of these signals. Delay: 8 rows or a tenth of the run.
    References: github.com/huggingface/trl/issues/2553 (loss 0.6931 with zero margins).
    """

    courses: Courses = field(default_factory=Courses)
    standing: dict[str, Standing] = field(default_factory=dict)
    streaks: dict[str, Streak] = field(default_factory=dict)
    since: int = 2**62
    margin: Held = field(default_factory=Held)
    margins_from: int = 2**62
    best: dict[str, float] = field(default_factory=dict)
    kinds: ClassVar[tuple[str, ...]] = ("policy-collapse",)
    fires_on: ClassVar[tuple[Example, ...]] = (
        Example(
            "a reward that falls back to nothing",
            lambda: frame(steps(400), reward=_reward(400, 1, 250)),
            "policy-collapse",
            250,
            3,
        ),
        Example(
            "entropy that is gone while the reward stays low",
            lambda: _entropy(1e-3, _reward(300, 2, 0)),
            "policy-collapse",
            13000,
            1500,
        ),
        Example("a preference loss that stays at ln 2", lambda: _preference(False), "policy-collapse", 0, 0),
        Example(
            "groups whose rewards are all the same",
            lambda: frame(steps(60), reward=_reward(60, 3, 0), reward_std=np.zeros(60)),
            "policy-collapse",
            0,
            0,
        ),
    )
    quiet_on: ClassVar[tuple[Example, ...]] = (
        Example(
            "a noisy reward that rises",
            lambda: frame(steps(400), reward=_reward(400, 4, None, 0.3), policy_loss=np.linspace(0.1, 0.5, 400)),
        ),
        Example("entropy that is gone when the task is solved", lambda: _entropy(1e-3, _reward(300, 5, None))),
        Example("a preference loss that leaves ln 2", lambda: _preference(True)),
    )

    def update(self, frame: Frame) -> Verdict:
        self.since = min(
            [
                self.since,
                *(int(frame.columns[m].steps[0]) for m in MARKS if m in frame.columns and len(frame.columns[m])),
            ]
        )
        found: list[Finding] = []
        found += self._preference(frame)
        still = self._still(frame)
        for name, step in self.courses.walk_all(frame, (*SCORES, "grad_norm", "entropy", "kl")):
            while still and still[0][1] < step:
                found += self._silent(*still.pop(0))
            before = self.best.get(name, -np.inf)
            self.best[name] = max(before, self.courses.by_name[name].medians[-1])
            if step < self.since:
                continue
            if name in SCORES:
                found += self._score(name, step, before)
            elif name in ("entropy", "kl"):
                found += self._entropy(step) if name == "entropy" else self._kl(step)
        for event in still:
            found += self._silent(*event)
        return Verdict(tuple(found))

    def _score(self, name: str, step: int, best: float) -> list[Finding]:
        """Whether the recent tenth of a score lies far below its best."""
        last, standing = self.courses.by_name[name].medians[-1], self.standing.get(name)
        start = self.courses.by_name[name].medians[0]
        if self.courses.rows(name) < FEWEST + 1 or (
            last > best - 0.2 * max(abs(best), best - start) and not (standing and standing.open)
        ):
            return []
        values = self.courses.values(name)
        recent = tail(values, 0.1, max(1, FEWEST // self.courses.size(name)))
        smooth = _smooth(values[: len(values) - len(recent)], max(3, len(values) // 20))
        top, sigma = float(smooth.max()), noise_of(values)
        first = float(np.median(values[:3])) if top > values[0] else float(values[0])
        gain = top - first
        need = max(HALF * gain, NOISES * sigma) if gain > NOISES * sigma else max(0.25 * abs(top), 1.5 * NOISES * sigma)
        now = float(np.median(recent))
        if (
            need <= 0
            or now > top - need * (0.5 if standing and standing.open else 1.0)
            or np.mean(recent < top - need / 2) < 0.9
        ):
            return self._turn(name, None, step, step, "healed", now, top)
        low = np.flatnonzero(values >= top - need / 2)
        onset = int(self.courses.steps(name)[min(len(values) - 1, low[-1] + 1 if len(low) else 0)])
        below = len(values) - 1 - (low[-1] if len(low) else -1)
        lost = gain > NOISES * sigma and now <= first + 0.1 * gain and below >= max(16, 0.2 * len(values))
        return self._turn(name, "critical" if lost else "warning", onset, step, "score", now, top)

    def _entropy(self, step: int) -> list[Finding]:
        """Whether entropy is nearly gone although nothing was gained by it."""
        course, standing = self.courses.by_name["entropy"], self.standing.get("entropy")
        if course.rows < 2 * FEWEST or (
            abs(course.medians[-1]) > GONE * abs(course.medians[0]) and not (standing and standing.open)
        ):
            return []
        values = np.abs(self.courses.values("entropy"))
        start, recent = float(np.median(values[:3])), tail(values, 0.05, max(1, FEWEST // course.size))
        limit = (3 if standing and standing.open else 1) * GONE * start
        if start < 1e-3 or np.median(recent) > limit or (not (standing and standing.open) and recent.max() > 3 * limit):
            return self._turn("entropy", None, step, step, "healed", float(recent[-1]), start)
        gained = self._gained()
        if gained:
            return self._turn("entropy", None, step, step, "healed", float(recent[-1]), start)
        above = np.flatnonzero(values >= GONE * start)
        onset = int(self.courses.steps("entropy")[min(len(values) - 1, above[-1] + 1 if len(above) else 0)])
        long = len(values) - 1 - (above[-1] if len(above) else -1) >= max(2 * FEWEST, 0.2 * len(values))
        severity: Severity = "info" if gained is None else "critical" if long else "warning"
        return self._turn("entropy", severity, onset, step, "entropy", float(recent[-1]), start)

    def _gained(self) -> bool | None:
        """Whether the score stands clearly above its start; None without a score."""
        name = next((n for n in SCORES if self.courses.rows(n) >= FEWEST), None)
        if name is None:
            return None
        values = self.courses.values(name)
        quarter = max(3, len(values) // 10)
        spread = max(noise_of(values), 1e-3 * float(np.max(np.abs(values)))) / np.sqrt(quarter)
        return bool(np.median(values[-quarter:]) - np.median(values[:quarter]) > 2 * NOISES * spread)

    def _kl(self, step: int) -> list[Finding]:
        """Whether the policy runs away from its reference while the score falls."""
        course, standing = self.courses.by_name["kl"], self.standing.get("kl")
        if course.rows < 2 * FEWEST or (course.medians[-1] < 1 and not (standing and standing.open)):
            return []
        values = self.courses.values("kl")
        recent, former = values[-max(1, FEWEST // course.size) :], float(np.median(values[: len(values) // 2]))
        now, standing_limit = float(np.median(recent)), 0.3 if standing and standing.open else 1.0
        if now < standing_limit * max(1.0, RUNAWAY * former):
            return self._turn("kl", None, step, step, "healed", now, former)
        falls = any((s := self.standing.get(n)) is not None and s.open for n in SCORES)
        calm = np.flatnonzero(values < max(0.5, 3 * former))
        onset = int(self.courses.steps("kl")[min(len(values) - 1, calm[-1] + 1 if len(calm) else 0)])
        return self._turn("kl", "warning" if falls else "info", onset, step, "kl", now, former)

    def _still(self, frame: Frame) -> list[tuple[str, int, int, bool]]:
        """Stretches of exactly zero loss or spread of rewards, in step order: (signal, step, onset, begins)."""
        events = []
        for name in ("loss", "policy_loss", "reward_std"):
            column = frame.columns.get(name)
            if column is not None and column.shape == "scalar":
                streak = self.streaks.setdefault(name, Streak(SILENT_ROWS))
                events += [(name, *event) for event in streak.take(column.steps, column.values == 0)]
        return sorted(events, key=lambda event: event[1])

    def _silent(self, name: str, step: int, onset: int, begins: bool) -> list[Finding]:
        """Zero loss is a fault only without a gradient; equal rewards only while there is something left to gain."""
        if step < self.since:
            return []
        if not begins:
            return self._turn(name, None, onset, step, "healed", 0.0, float("nan"))
        norms = self.courses.values("grad_norm")
        if name != "reward_std" and len(norms) and np.median(norms[-SILENT_ROWS:]) > 0:
            return []
        rewards = self.courses.values("reward")
        solved = len(rewards) > 0 and float(np.ptp(rewards[-SILENT_ROWS:])) == 0 and rewards[-1] >= rewards.max()
        return self._turn(name, "info" if solved else "warning", onset, step, "silent", 0.0, float("nan"))

    def _preference(self, frame: Frame) -> list[Finding]:
        """A preference loss that stays at ln 2 while the margin is 0 or NaN."""
        loss, margin = frame.columns.get("loss"), frame.columns.get("reward_margin")
        found: list[Finding] = []
        if loss is not None:
            margins = self.margin.at(loss.steps, margin)
            self.margins_from = min(
                self.margins_from, int(margin.steps[0]) if margin is not None and len(margin) else self.margins_from
            )
            flat = (
                (np.abs(loss.values - log(2)) < ON_LN2)
                & ~(np.abs(margins) > NO_MARGIN)
                & (loss.steps >= self.margins_from)
            )
            for step, onset, begins in self.streaks.setdefault("margin", Streak(STUCK_ROWS)).take(loss.steps, flat):
                found += self._turn(
                    "reward_margin",
                    "warning" if begins else None,
                    onset,
                    step,
                    "preference" if begins else "healed",
                    log(2),
                    log(2),
                )
        self.margin.keep(margin)
        return found

    def _turn(
        self, name: str, severity: Severity | None, onset: int, step: int, text: str, value: float, expected: float
    ) -> list[Finding]:
        standing = self.standing.setdefault(name, Standing())
        turn = standing.turn(severity, onset)
        if turn is None:
            return []
        numbers = {"signal": name, "step": standing.onset, "value": value, "expected": expected}
        return [
            Finding(
                "policy-collapse", name, standing.onset, step, turn[0], Message(f"detectors.policy-collapse.{text}", numbers), state=turn[1],
                chronic=text in ("preference", "silent"), value=value, expected=expected, facts={"why": text},
            )
        ]  # fmt: skip


def _smooth(values: Floats, width: int) -> Floats:
    """Medians of neighbours; the first value stands for itself, for it may be the level that a good start had."""
    if len(values) < width:
        return values
    return np.concatenate([values[:1], np.median(np.lib.stride_tricks.sliding_window_view(values, width), axis=1)])
