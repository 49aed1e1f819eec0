"""The learning rate is zero, falls too fast, or does not follow the schedule that was meant."""

from __future__ import annotations

import numpy as np

from poise.causes.base import Case
from poise.causes.clues import LOSS_RISES, STANDSTILL, Weigh, concerns, loss_of, planned_steps, position
from poise.causes.rate import Rate, rate
from poise.records import Hypothesis

DEAD = 1e-9
"""No trainer of today's sizes learns at a rate below this."""


def learning_rate_zero(case: Case) -> Hypothesis | None:
    """The logged learning rate is zero, or as good as, while the loss stands still."""
    schedule = rate(case)
    if schedule is None or not concerns(case, *STANDSTILL, "overfitting", "gradient-zeros"):
        return None
    weigh = Weigh(case, "learning-rate-zero")
    after = schedule.values[np.searchsorted(schedule.steps, case.incident.onset_step) :]
    late = len(after) and float(np.mean(after == 0)) > 0.9
    if schedule.peak == 0:
        weigh.fact(True, 0.95, "rate-zero-always", rows=len(schedule.values))
    elif late or (schedule.zero_from is not None and schedule.zero_from <= case.incident.onset_step):
        weigh.fact(
            True,
            0.8,
            "rate-zero-from",
            step=schedule.zero_from or case.incident.onset_step,
            last=int(schedule.steps[-1]),
        )
    else:
        weigh.fact(schedule.peak < DEAD, 0.7, "rate-dead", rate=schedule.peak)
    return weigh.verdict("P0", "set-learning-rate", "check-parameter-groups", test="constant-rate")


def decay_too_fast(case: Case) -> Hypothesis | None:
    """The learning rate has fallen far before the middle of the run, or falls off a step right before the incident."""
    schedule = rate(case)
    if schedule is None or not concerns(case, *LOSS_RISES, *STANDSTILL) or schedule.peak <= 0:
        return None
    weigh = Weigh(case, "decay-too-fast")
    onset, where = case.incident.onset_step, position(case)
    early_low = (
        concerns(case, *STANDSTILL)
        and where is not None
        and where < 0.6
        and 0 < schedule.at_onset < 0.1 * schedule.peak
    )
    weigh.fact(
        early_low and schedule.phase == "decay",
        0.45,
        "decayed-early",
        step=onset,
        ratio=schedule.peak / max(schedule.at_onset, 1e-300),
        share=100 * (where or 0),
    )
    drop = _drop_before(schedule, onset, _reach(case))
    weigh.fact(
        drop is not None and drop[1] >= 1.5,
        0.4,
        "rate-dropped",
        step=drop[0] if drop else 0,
        ratio=drop[1] if drop else 0.0,
    )
    return weigh.verdict("P0", "slower-decay", test="slower-decay")


def schedule_misapplied(case: Case) -> Hypothesis | None:
    """The learning rate reaches zero long before the end, or jumps up in the middle: no one smooth schedule."""
    schedule = rate(case)
    if schedule is None or schedule.peak <= 0:
        return None
    weigh = Weigh(case, "schedule-misapplied")
    planned = planned_steps(case)
    ends = schedule.zero_from
    started = int(schedule.steps[0])
    if (
        ends is not None
        and concerns(case, *STANDSTILL)
        and ends - started > 0
        and ends < 0.75 * planned
        and schedule.values[0] > 0
    ):
        gap = int(schedule.steps[np.searchsorted(schedule.steps, ends) - 1])  # it was not zero yet at this step
        low, high = planned / ends, planned / max(gap, 1)
        factor = next((n for n in range(2, 129) if 0.98 * low <= n <= 1.02 * high), None)
        weigh.fact(True, 0.85, "schedule-ends-early", step=ends, planned=planned, ratio=float(factor or low))
        weigh.fact(factor is not None and high < 1.2 * low, 0.07, "schedule-factor", factor=factor or 0)
    own = (
        float(np.median(np.diff(schedule.steps))) if len(schedule.steps) > 1 else 1.0
    )  # the schedule may be logged less often
    near = schedule.jump is not None and abs(schedule.jump[0] - case.incident.onset_step) <= max(_reach(case), own)
    if schedule.jump is not None and near and concerns(case, *LOSS_RISES):
        step, low, high = schedule.jump
        weigh.fact(True, 0.7, "rate-jumps", step=step, low=low, high=high, ratio=high / max(low, 1e-300))
    elif jumped := _jump_at_resume(case):
        low, high = jumped
        weigh.fact(True, 0.7, "rate-jumps", step=case.incident.onset_step, low=low, high=high, ratio=high / low)
    return weigh.verdict("P0", "fix-scheduler", "check-schedule-length", test="plot-schedule")


def _jump_at_resume(case: Case) -> tuple[float, float] | None:
    """Learning rate before and after a resumption, where it at least doubles."""
    for finding in case.incident.findings:
        if (
            finding.kind == "resume-jump"
            and finding.signal.startswith("learning_rate")
            and finding.value > 2 * finding.expected > 0
        ):
            return finding.expected, finding.value
    return None


def _reach(case: Case) -> float:
    """Steps within which a move of the schedule and an incident are taken together: 16 rows of the loss."""
    loss = case.columns[loss_of(case) or "learning_rate"].steps
    return 16 * float(np.median(np.diff(loss))) if len(loss) > 1 else 16.0


def _drop_before(schedule: Rate, onset: int, reach: float) -> tuple[int, float] | None:
    """Step and ratio of the largest fall within one row shortly up to the onset; smooth decays fall little per row."""
    row = int(np.searchsorted(schedule.steps, onset, side="right"))
    first = int(np.searchsorted(schedule.steps, onset - reach))
    window = slice(max(0, first - 1), row + 1)
    values, steps = schedule.values[window], schedule.steps[window]
    if len(values) < 2 or not (values > 0).all() or np.diff(steps).max() > reach:
        return None
    ratios = values[:-1] / values[1:]
    at = int(np.argmax(ratios))
    return int(steps[at + 1]), float(ratios[at])
