"""A reinforcement or preference run that loses its reward, its entropy, its reference or its signal."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log
from typing import ClassVar

import numpy as np

from poise.detectors.base import Example
from poise.detectors.courses import Courses, Standing, noise_of, tail
from poise.detectors.examples import frame, steps
from poise.records import Column, Finding, Floats, Frame, Ints, Message, Severity, Verdict

MARKS = ("reward", "reward_std", "reward_margin", "entropy", "kl", "policy_loss", "completion_length")  # signals that only such runs have
SCORES = ("reward", "accuracy", "eval_accuracy")  # what the run is for: the first of them that the log has
FEWEST = 8  # rows of score before a fall can be told
HALF = 0.5  # of its gain that a score must have lost
NOISES = 4.0
GONE = 0.01  # share of its first level below which entropy is nearly zero: a decided policy that solves its task keeps more
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
    of the run. Entropy below 1 % of its start while nothing was gained. Divergence from the reference ten times its former level and
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
    margins: bool = False
    best: dict[str, float] = field(default_factory=dict)
    kinds: ClassVar[tuple[str, ...]] = ("policy-collapse",)
    fires_on: ClassVar[tuple[Example, ...]] = (
        Example("a reward that falls back to nothing", lambda: frame(steps(400), reward=_reward(400, 1, 250)), "policy-collapse", 250, 3),
        Example("entropy that is gone while the reward stays low", lambda: _entropy(1e-3, _reward(300, 2, 0)), "policy-collapse", 19900, 1500),
        Example("a preference loss that stays at ln 2", lambda: _preference(False), "policy-collapse", 0, 0),
        Example("groups whose rewards are all the same", lambda: frame(steps(60), reward=_reward(60, 3, 0), reward_std=np.zeros(60)), "policy-collapse", 0, 0),
    )
    quiet_on: ClassVar[tuple[Example, ...]] = (
        Example("a noisy reward that rises", lambda: frame(steps(400), reward=_reward(400, 4, None, 0.3), policy_loss=np.linspace(0.1, 0.5, 400))),
        Example("entropy that is gone when the task is solved", lambda: _entropy(1e-3, _reward(300, 5, None))),
        Example("a preference loss that leaves ln 2", lambda: _preference(True)),
        Example("a supervised loss of zero", lambda: frame(steps(60), loss=np.zeros(60), accuracy=np.linspace(1, 0.2, 60))),
    )

    def update(self, frame: Frame) -> Verdict:
        if self.courses.restart(frame):
            self.standing, self.streaks, self.best, self.margin, self.margins = {}, {}, {}, Held(), False
            self.since = 2**62
        marks = [int(c.steps[0]) for m in MARKS for n, c in frame.members(m) if n == m and len(c)]
        self.since = min([self.since, *marks])
        if self.since == 2**62:
            for name in SCORES:
                list(self.courses.walk(frame, name))
            return Verdict()
        found = self._still(frame)
        scores = [name for name in SCORES if name in frame.columns]
        for step in self.courses.walk(frame, "entropy", SCORES):
            found += self._entropy(step) if step >= self.since else []
        for step in self.courses.walk(frame, "kl", SCORES):
            found += self._kl(step)
        return Verdict(tuple(found))
