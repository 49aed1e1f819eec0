"""The optimizer's memory is gone, or lags behind the gradients."""

from __future__ import annotations

import numpy as np

from poise.causes.base import Case
from poise.causes.clues import Weigh, burst, concerns, first_rise, loss_of, past, series, settled
from poise.causes.rate import rate
from poise.records import Hypothesis


def optimizer_state_lost(case: Case) -> Hypothesis | None:
    """The loss jumps at a restart although the learning rate goes on: moments were not restored."""
    restarts = [e for e in case.events if e.kind in ("restart", "resume")]
    near = [e for e in restarts if e.step is None or abs(e.step - case.incident.onset_step) <= _reach(case)]
    if not concerns(case, "resume-jump") and not near:
        return None
    weigh = Weigh(case, "optimizer-state-lost")
    jump = _jump(case)
    if jump is not None:
        weigh.fact(True, 0.4, "jump-at-restart", step=case.incident.onset_step, value=jump[0], usual=jump[1])
    elif concerns(case, "resume-jump"):
        weigh.fact(True, 0.15, "jump-found", step=case.incident.onset_step)
    if not weigh.evidence:
        return None
    schedule = rate(case)
    if schedule is not None:
        before = (
            schedule.values[np.searchsorted(schedule.steps, case.incident.onset_step) - 1]
            if case.incident.onset_step > schedule.steps[0]
            else schedule.at_onset
        )
        smooth = abs(schedule.at_onset - before) <= 0.1 * max(before, 1e-300)
        weigh.fact(smooth, 0.2, "rate-goes-on", before=float(before), after=schedule.at_onset)
    end = settled(case)
    weigh.fact(
        jump is not None and end is not None and end.healed,
        0.1,
        "heals",
        before=end.before if end else 0,
        after=end.after if end else 0,
    )
    return weigh.verdict(
        "P0",
        "save-optimizer-state",
        ("longer-warmup", {"steps": 100}),
        test="inspect-checkpoint",
        step=case.incident.onset_step,
    )


def stale_second_moment(case: Case) -> Hypothesis | None:
    """The update grows first, then the loss, then the gradient: Adam divides by a second moment that lags behind the first."""
    if not case.has("update_norm") and not case.has("update_ratio"):
        return None
    signal = "update_norm" if case.has("update_norm") else "update_ratio"
    if not concerns(
        case, "loss-spike", "divergence", "gradient-explosion", "update-norm-spike", "training-collapse", "oscillation"
    ):
        return None
    weigh = Weigh(case, "stale-second-moment")
    update, loss, gradient = (
        first_rise(case, signal),
        first_rise(case, loss_of(case) or "loss"),
        first_rise(case, "grad_norm"),
    )
    if update is None:
        return None
    rise = _rise(case, signal, update)
    weigh.fact(
        loss is None or update < loss,
        0.4,
        "update-first",
        step=update,
        ratio=rise,
        loss=loss if loss is not None else case.incident.onset_step,
    )
    weigh.fact(
        gradient is None or gradient > update,
        0.25,
        "gradient-later",
        step=gradient if gradient is not None else case.last_step,
        update=update,
    )
    weigh.fact(
        weigh.evidence and loss is not None and gradient is not None and update < loss <= gradient,
        0.15,
        "order",
        update=update,
        loss=loss or 0,
        gradient=gradient or 0,
    )
    return weigh.verdict(
        "P0", "clip-update", "lower-beta2", "skip-updates-not-gradients", test="fresh-second-moment", step=update
    )


def _rise(case: Case, signal: str, step: int) -> float:
    calm = past(case, signal)
    _steps, values = series(case, signal, start=step)
    return (
        float(np.nanmax(values[:16]) / np.median(calm))
        if len(calm) and len(values) and np.median(calm) > 0
        else float("nan")
    )


def _jump(case: Case) -> tuple[float, float] | None:
    """Loss after and before the restart, by the detector where it knows (the past may lie on another branch)."""
    for finding in case.incident.findings:
        if (
            finding.kind == "resume-jump"
            and finding.signal.startswith("loss")
            and finding.value > 1.02 * finding.expected > 0
        ):
            return finding.value, finding.expected
    loss = loss_of(case)
    rise = burst(case, loss) if loss else None
    return (rise.value, rise.usual) if rise is not None and rise.ratio > 1.02 else None


def _reach(case: Case) -> float:
    steps = case.columns["loss"].steps if case.has("loss") else np.empty(0)
    return 8 * float(np.median(np.diff(steps))) if len(steps) > 1 else 8.0
