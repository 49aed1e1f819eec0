"""Single bad batches, batches of another make-up, and an order of the data that comes round."""

from __future__ import annotations

import numpy as np

from poise.causes.base import Case
from poise.causes.clues import (
    EARLY,
    LATE,
    LOSS_RISES,
    Weigh,
    burst,
    concerns,
    facts,
    first_rise,
    loss_of,
    position,
    series,
    settled,
    spike_steps,
)
from poise.causes.rate import rate
from poise.records import Hypothesis

SUDDEN = ("loss-spike", "oscillation", "loss-cliff", "gradient-explosion", "divergence", "level-shift")


def bad_data_burst(case: Case) -> Hypothesis | None:
    """A spike out of a calm run, under a calm learning rate, that heals: the batch was bad, not the settings."""
    loss = loss_of(case)
    if loss is None or not concerns(case, *SUDDEN):
        return None
    if not np.isfinite(series(case, loss, start=case.incident.onset_step)[1][:32]).all():
        return None
    weigh = Weigh(case, "bad-data-burst")
    _calm_run(weigh)
    end, rise = settled(case, loss), burst(case, loss)
    weigh.fact(
        end is not None and end.healed and concerns(case, "loss-spike", "gradient-explosion"),
        0.2,
        "heals",
        before=end.before if end else 0,
        after=end.after if end else 0,
    )
    sharp = rise is not None and rise.ratio > 1.15 and rise.step - case.incident.onset_step <= 2 * _row(case, loss)
    weigh.fact(
        sharp,
        0.05,
        "sudden",
        step=rise.step if rise else 0,
        value=rise.value if rise else 0,
        usual=rise.usual if rise else 0,
    )
    _against_step_size(weigh)
    span = {"first": _row_before(case, loss), "last": rise.step if rise is not None else case.incident.onset_step}
    return weigh.verdict(
        "P0", ("inspect-batches", span), ("skip-batches", span), "clean-data", test="skip-batches", **span
    )


def batch_composition(case: Case) -> Hypothesis | None:
    """From some step on the batches are made up differently: another size, another mixture of sources or lengths."""
    if not concerns(case, *SUDDEN):
        return None
    weigh = Weigh(case, "batch-composition")
    for signal in ("batch_size", "batch_tokens", "completion_length"):
        change = _changed(case, signal)
        weigh.fact(
            change is not None,
            0.4,
            "batch-changes",
            signal=signal,
            step=case.incident.onset_step,
            before=change[0] if change else 0,
            after=change[1] if change else 0,
        )
    where = position(case)
    lasting = concerns(case, "oscillation", "level-shift")
    weigh.fact(
        lasting and where is not None and where > LATE and _calm_till(case),
        0.3,
        "late",
        share=100 * (where or 0),
        step=case.incident.onset_step,
    )
    _calm_rate(weigh, 0.1) if weigh.evidence else None
    if not weigh.evidence and where is not None and where > LATE and concerns(case, "loss-spike"):
        weigh.open("batch_tokens", 0.15)
    return weigh.verdict("P0", "log-batch-make-up", "shuffle-globally", test="same-mixture")


def data_order(case: Case) -> Hypothesis | None:
    """Spikes that come back at one distance: the order of the data repeats, once an epoch or once a shard."""
    if not concerns(case, "loss-spike", "oscillation", "gradient-explosion"):
        return None
    weigh = Weigh(case, "data-order")
    period = next((float(p) for p in facts(case, "period") if p > 0), None)
    spikes = spike_steps(case)
    if period is None and len(spikes) >= 3:
        gaps = np.diff(spikes)
        period = float(np.median(gaps)) if np.ptp(gaps) <= max(2 * _row(case, "loss"), 0.05 * np.median(gaps)) else None
    if period is None or period <= 3 * _row(case, "loss"):
        return None
    weigh.fact(
        True,
        0.75,
        "periodic",
        period=period,
        count=max(len(spikes), 3),
        first=spikes[0] if spikes else case.incident.onset_step,
    )
    epoch = _steps_per_epoch(case)
    ratio = epoch / period if epoch else 0.0
    weigh.fact(
        epoch and abs(ratio - round(ratio)) < 0.05 and 1 <= round(ratio) <= 20,
        0.15,
        "period-is-epoch",
        epoch=epoch or 0,
        period=period,
    )
    return weigh.verdict("P0", "shuffle-globally", "look-at-period", test="reshuffle", period=period)


def _row_before(case: Case, loss: str) -> int:
    """The first step whose batch can have done it: that after the last calm row, where losses are logged now and then."""
    steps = series(case, loss, stop=case.incident.onset_step)[0]
    return int(steps[-1]) + 1 if len(steps) else case.incident.onset_step


def _calm_run(weigh: Weigh) -> None:
    case, where = weigh.case, position(weigh.case)
    onset = case.incident.onset_step
    weigh.fact(
        where is not None and where > LATE and _calm_till(case), 0.25, "late", share=100 * (where or 0), step=onset
    )
    _calm_rate(weigh, 0.1)
    moved, gradient = first_rise(case, loss_of(case) or "loss"), first_rise(case, "grad_norm")
    calm = gradient is None or (moved is not None and gradient >= moved)
    weigh.fact(case.has("grad_norm") and moved is not None and calm, 0.1, "gradient-calm-before", step=onset)


def _calm_till(case: Case) -> bool:
    """Whether at most two incidents of the loss came before: a run that was rough all along is no calm run."""
    return sum(i.onset_step < case.incident.onset_step and i.kind in LOSS_RISES for i in case.others) <= 2


def _calm_rate(weigh: Weigh, weight: float) -> None:
    schedule = rate(weigh.case)
    calm = schedule is not None and schedule.phase in ("constant", "peak", "decay") and _steady(weigh.case)
    weigh.fact(
        calm, weight, "rate-calm", step=weigh.case.incident.onset_step, rate=schedule.at_onset if schedule else 0
    )


def _steady(case: Case) -> bool:
    """Whether the learning rate changes by less than a fifth over the 8 rows around the onset."""
    schedule = rate(case)
    if schedule is None:
        return False
    row = int(np.searchsorted(schedule.steps, case.incident.onset_step))
    near = schedule.values[max(0, row - 4) : row + 4]
    return bool(len(near) and near.min() > 0.8 * near.max())


def _against_step_size(weigh: Weigh) -> None:
    case, where, schedule = weigh.case, position(weigh.case), rate(weigh.case)
    weigh.against(where is not None and where <= EARLY, 0.1)
    weigh.against(schedule is not None and schedule.phase in ("warmup", "after-warmup"), 0.15)
    end = settled(case)
    weigh.against(end is not None and end.lost > 0.2 and end.stays_up, 0.2)
    spikes = spike_steps(case)
    weigh.against(len(spikes) >= 5, 0.1)
    loss, updated = first_rise(case, loss_of(case) or "loss"), first_rise(case, "update_norm")
    weigh.against(updated is not None and loss is not None and updated < loss, 0.25)


def _changed(case: Case, signal: str) -> tuple[float, float] | None:
    """Levels before and after the onset where they differ by more than a quarter, and by more than their own spread."""
    before = series(case, signal, stop=case.incident.onset_step)[1][-16:]
    after = series(case, signal, start=case.incident.onset_step)[1][:4]
    if len(before) < 4 or not len(after):
        return None
    low, high = float(np.median(before)), float(np.median(after))
    wide = abs(high - low) > 4 * float(np.median(np.abs(before - low))) and abs(high - low) > 0.25 * abs(low)
    return (low, high) if wide else None


def _row(case: Case, signal: str) -> float:
    steps = case.columns[signal].steps if case.has(signal) else np.empty(0)
    return float(np.median(np.diff(steps))) if len(steps) > 1 else 1.0


def _steps_per_epoch(case: Case) -> float | None:
    steps, values = series(case, "epoch")
    if len(steps) < 4 or values[-1] - values[0] < 0.5:
        return None
    return float(steps[-1] - steps[0]) / float(values[-1] - values[0])
