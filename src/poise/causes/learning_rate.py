"""The step size is too large for the model, or it grows too quickly to its peak."""

from __future__ import annotations

import numpy as np

from poise.causes.base import Case
from poise.causes.clues import (
    EARLY,
    LATE,
    LOSS_RISES,
    Burst,
    Weigh,
    burst,
    concerns,
    facts,
    first_bad,
    isolated,
    kinds,
    loss_of,
    planned_steps,
    position,
    series,
    settled,
    spike_steps,
)  # fmt: skip
from poise.causes.rate import Rate, rate, stated_rate
from poise.records import Hypothesis

LARGE = 1e-3
"""Above this, Adam needs a reason (small models, adapters, muP). A rule of thumb, so it counts little."""
ABSURD = 1e-2
SMALL = 1e-5
"""Below this hardly any step is too large, in fine-tuning either."""
SHORT_SHARE = 0.01
"""Warmups of 1 to 5 % of the steps are usual; below 1 % is short."""
CLUE_RATIO = 3.0


def learning_rate_too_high(case: Case) -> Hypothesis | None:
    """The loss leaves its path at or soon after the peak learning rate, gradients burst, and it does not come back."""
    if not concerns(case, *LOSS_RISES, "policy-collapse", "plateau", "not-learning", "dead-units"):
        return None
    schedule = rate(case)
    if schedule is not None and schedule.at_onset == 0 and schedule.phase != "zero":
        return None  # no step had any size yet
    if kinds(case) == {"non-finite"} and isolated(case):
        return None  # weights that a step has ruined do not come back
    weigh = Weigh(case, "learning-rate-too-high")
    rising = concerns(case, *LOSS_RISES)
    if rising:
        _phase(weigh, schedule)
        _early(weigh, 0.15)
        _gradient_burst(weigh)
        _lost_for_good(weigh)
        _repeated(weigh)
    else:
        _after_a_burst(weigh)
    _large(weigh, schedule)
    thrown = any(m.id.endswith("burst-before") for m in weigh.evidence)
    if not (rising or thrown or concerns(case, "policy-collapse") or "untrained" in facts(case, "why")):
        return None
    where = position(case)
    weigh.against(where is not None and where > LATE and (settled(case) is None or _healed(case)), 0.15)
    weigh.against(schedule is not None and schedule.at_onset < 0.3 * schedule.peak and schedule.phase == "decay", 0.2)
    _against_small(weigh, schedule)
    value = schedule.peak if schedule else stated_rate(case)
    lower = ("lower-learning-rate", {"value": value / 3}) if value else "lower-learning-rate-unknown"
    return weigh.verdict(
        "P0", lower, ("clip-gradients", {"value": 1.0}), "roll-back", test="lower-rate", step=case.incident.onset_step
    )


def warmup_too_short(case: Case) -> Hypothesis | None:
    """The incident lies in or right behind a warmup that is short for the run."""
    if not concerns(case, *LOSS_RISES) or (kinds(case) == {"non-finite"} and isolated(case)):
        return None
    schedule, where = rate(case), position(case)
    weigh = Weigh(case, "warmup-too-short")
    if schedule is None:
        _early(weigh, 0.3)
        return _warmup_verdict(weigh, 0)
    if schedule.at_onset == 0 or schedule.phase in ("decay", "zero") or (where is not None and where > LATE):
        return None
    planned = planned_steps(case)
    length = schedule.peak_step - int(schedule.steps[0]) if schedule.warm else 0
    resolution = int(schedule.steps[1] - schedule.steps[0]) if len(schedule.steps) > 1 else 1
    share = (length + resolution) / planned if planned else 0.0
    inside = schedule.phase in ("warmup", "after-warmup")
    if inside and share > 0.1:
        return None  # a tenth of the run is no short warmup: the peak itself is too high
    weigh.fact(
        schedule.phase == "warmup",
        0.2,
        "in-warmup",
        step=case.incident.onset_step,
        rate=schedule.at_onset,
        peak=schedule.peak,
        peak_step=schedule.peak_step,
    )
    weigh.fact(
        schedule.phase == "after-warmup",
        0.25,
        "after-warmup",
        step=case.incident.onset_step,
        peak=schedule.peak,
        peak_step=schedule.peak_step,
    )
    early = _early(weigh, 0.2)
    weigh.fact(inside and share < SHORT_SHARE, 0.2, "short-warmup", steps=length, share=100 * share)
    weigh.fact(early and not schedule.warm, 0.2, "no-warmup", peak=schedule.peak)
    weigh.against(schedule.peak >= ABSURD, 0.2)
    _against_small(weigh, schedule)
    return _warmup_verdict(weigh, length)


def _warmup_verdict(weigh: Weigh, length: int) -> Hypothesis | None:
    planned = planned_steps(weigh.case)
    steps = max(2 * length, planned // 33, 10)
    return weigh.verdict(
        "P0", ("longer-warmup", {"steps": steps}), ("clip-gradients", {"value": 1.0}), test="longer-warmup", steps=steps
    )


def _phase(weigh: Weigh, schedule: Rate | None) -> None:
    if schedule is None:
        return
    step = weigh.case.incident.onset_step
    weigh.fact(
        schedule.phase == "warmup",
        0.2,
        "in-warmup",
        step=step,
        rate=schedule.at_onset,
        peak=schedule.peak,
        peak_step=schedule.peak_step,
    )
    weigh.fact(
        schedule.phase == "after-warmup",
        0.25,
        "after-warmup",
        step=step,
        peak=schedule.peak,
        peak_step=schedule.peak_step,
    )
    where = position(weigh.case)
    early = where is not None and where <= EARLY
    lost = "divergence" in kinds(weigh.case) and not weigh.case.incident.recovered
    weigh.fact(
        schedule.phase in ("peak", "constant") and (early or lost), 0.1, "at-peak", step=step, rate=schedule.at_onset
    )


def _early(weigh: Weigh, weight: float) -> bool:
    where = position(weigh.case)
    return weigh.fact(
        where is not None and where <= EARLY,
        weight,
        "early",
        share=100 * (where or 0.0),
        step=weigh.case.incident.onset_step,
    )


def _gradient_burst(weigh: Weigh) -> None:
    found = burst(weigh.case, "grad_norm")
    weigh.fact(_large_burst(found), 0.15, "gradient-burst", **_burst_params(found))


def _large_burst(found: Burst | None) -> bool:
    return found is not None and found.ratio >= CLUE_RATIO


def _burst_params(found: Burst | None) -> dict[str, float]:
    return (
        {} if found is None else {"step": found.step, "value": found.value, "usual": found.usual, "ratio": found.ratio}
    )


def _healed(case: Case) -> bool:
    end = settled(case)
    return end is not None and end.healed


def _lost_for_good(weigh: Weigh) -> None:
    """A loss that stays up, or ends in NaN after a rise: a bad batch alone seldom does that."""
    end, loss = settled(weigh.case), loss_of(weigh.case)
    if end is None or loss is None:
        return
    bad = first_bad(weigh.case, loss)
    rose = end.peak > 1.3 * abs(end.before) and end.before > 0
    weigh.fact(
        bad is not None and rose,
        0.15,
        "rise-then-non-finite",
        peak=end.peak,
        before=end.before,
        step=bad[0] if bad else 0,
    )
    weigh.fact(
        bad is None and end.stays_up,
        0.25,
        "never-recovers",
        before=end.before,
        after=end.after,
        share=100 * end.lost,
    )


def _repeated(weigh: Weigh) -> None:
    spikes = spike_steps(weigh.case)
    gaps = [b - a for a, b in zip(spikes, spikes[1:], strict=False)]
    regular = len(gaps) >= 2 and max(gaps) - min(gaps) <= 0.1 * max(gaps)
    weigh.fact(
        len(spikes) >= 3 and not regular,
        0.15,
        "spikes-repeat",
        count=len(spikes),
        first=spikes[0] if spikes else 0,
        last=spikes[-1] if spikes else 0,
    )
    weigh.against(regular, 0.25)


def _after_a_burst(weigh: Weigh) -> None:
    """A standstill that began with a spike or a gradient burst: the net was thrown off, it did not run dry."""
    case, loss = weigh.case, loss_of(weigh.case)
    spikes = [
        i
        for i in case.others
        if i.kind in ("loss-spike", "divergence", "gradient-explosion") and i.onset_step <= case.incident.onset_step
    ]
    if spikes:
        weigh.fact(True, 0.45, "burst-before", step=spikes[-1].onset_step, kind=spikes[-1].kind)
        return
    steps, values = series(case, loss, stop=case.incident.onset_step) if loss else (np.empty(0, np.int64), np.empty(0))
    if len(values) >= 4 and np.isfinite(values).all():
        top = int(np.argmax(values))
        weigh.fact(
            top > 0 and values[top] > 1.5 * values[0], 0.4, "burst-before", step=int(steps[top]), kind="loss-spike"
        )


def _against_small(weigh: Weigh, schedule: Rate | None) -> None:
    """A small rate, or NaN out of a loss that had not risen: the step size is then one suspect among others."""
    value = schedule.peak if schedule else stated_rate(weigh.case)
    weigh.against(value is not None and value < SMALL, 0.3)
    end = settled(weigh.case)
    calm = end is None or end.peak <= 1.3 * abs(end.before)
    weigh.against(kinds(weigh.case) == {"non-finite"} and calm and (value is None or value < ABSURD), 0.15)


def _large(weigh: Weigh, schedule: Rate | None) -> None:
    value = schedule.peak if schedule else stated_rate(weigh.case)
    optimizer = str(next((v for k, v in weigh.case.info.config.items() if "optim" in k.lower()), "")).lower()
    if value is None or "sgd" in optimizer or weigh.case.info.trainer in ("yolo", "ultralytics"):
        return
    weigh.fact(value >= ABSURD, 0.25, "rate-far-too-large", rate=value) or weigh.fact(
        value >= LARGE, 0.1, "rate-large", rate=value
    )
