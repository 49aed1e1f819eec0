"""The gradient has a wrong size: clipped before it was unscaled, clipped to nothing, summed instead of averaged, never cleared."""

from __future__ import annotations

import numpy as np

from poise.causes.base import Case
from poise.causes.clues import STANDSTILL, Weigh, concerns, finite, loss_of, series, setting
from poise.records import Hypothesis

HUGE = 1e4
USUAL_SCALE = 65536.0


def clip_order(case: Case) -> Hypothesis | None:
    """The logged gradient norm is as large as the loss scale from the start: it was clipped while still scaled."""
    if not concerns(case, *STANDSTILL, "gradient-explosion", "oscillation", "gradient-vanishing"):
        return None
    weigh = Weigh(case, "clip-order")
    norm = finite(series(case, "grad_norm")[1])
    scale = finite(series(case, "loss_scale")[1])
    if len(norm) < 4 or float(np.median(norm)) < HUGE:
        return None
    usual = float(np.median(norm))
    divisor = float(np.median(scale)) if len(scale) else USUAL_SCALE
    sensible = divisor >= 256 and 0.005 <= usual / divisor <= 500
    weigh.fact(sensible and len(scale), 0.8, "norm-is-scaled", value=usual, scale=divisor, true=usual / divisor)
    weigh.fact(sensible and not len(scale), 0.5, "norm-looks-scaled", value=usual, scale=divisor, true=usual / divisor)
    weigh.fact(weigh.evidence and _stands(case), 0.12, "loss-stands", **_range(case))
    return weigh.verdict("P0", "unscale-before-clip", test="unscaled-norm")


def clip_too_low(case: Case) -> Hypothesis | None:
    """Nearly every update is clipped, and by a lot: the threshold, not the learning rate, sets the step."""
    if not concerns(case, *STANDSTILL):
        return None
    weigh = Weigh(case, "clip-too-low")
    share = finite(series(case, "clip_share")[1])
    weigh.fact(
        len(share) >= 4 and float(np.median(share)) >= 0.95,
        0.5,
        "always-clipped",
        share=100 * float(np.median(share)) if len(share) else 0,
    )
    limit = setting(
        case, "max_grad_norm", "gradient_clipping", "clip_grad", "gradient_clip_val", "grad_clip", "max_norm"
    )
    norm = finite(series(case, "grad_norm")[1])
    if isinstance(limit, int | float) and limit > 0 and len(norm) >= 4:
        ratio = float(np.percentile(norm, 10)) / limit
        weigh.fact(
            ratio >= 10 and float(np.median(norm)) < HUGE,
            0.5,
            "far-above-threshold",
            limit=float(limit),
            value=float(np.median(norm)),
            ratio=float(np.median(norm)) / limit,
        )
    value = float(np.percentile(norm, 90)) if len(norm) else 1.0
    return weigh.verdict("P1", ("clip-gradients", {"value": round(value, 1) or 1.0}), test="higher-threshold")


def accumulation_scaling(case: Case) -> Hypothesis | None:
    """The training loss is a whole multiple of the validation loss: micro-batch losses were summed, or one step's tokens miscounted."""
    weigh = Weigh(case, "accumulation-scaling")
    train, held = series(case, "loss"), series(case, "eval_loss")
    steps = setting(
        case, "gradient_accumulation_steps", "accumulate_grad_batches", "grad_accum", "gradient_accumulation"
    )
    ratio = _ratio(train, held)
    if ratio is None or not concerns(
        case, "bad-start", "gradient-explosion", "divergence", "level-shift", "resume-jump", "not-learning", "plateau"
    ):
        return None
    if isinstance(steps, int) and steps > 1:
        weigh.fact(
            0.85 < ratio / steps < 1.2 or 0.85 < ratio * steps < 1.2,
            0.75,
            "loss-times-accumulation",
            ratio=ratio,
            steps=steps,
        )
    else:
        whole = round(ratio)
        weigh.fact(whole in (2, 4, 8, 16, 32, 64) and abs(ratio / whole - 1) < 0.05, 0.3, "loss-multiple", ratio=ratio)
    return weigh.verdict("P0", "count-tokens", test="one-big-batch")


def gradients_not_cleared(case: Case) -> Hypothesis | None:
    """The gradient norm grows in a straight line from the first step on: each backward adds to the last."""
    if not concerns(case, "gradient-explosion", "divergence", "oscillation", "level-shift"):
        return None
    weigh = Weigh(case, "gradients-not-cleared")
    steps, norm = series(case, "grad_norm", stop=case.incident.onset_step + 1)
    if len(norm) < 8 or not np.isfinite(norm).all() or norm[-1] < 3 * norm[0]:
        return None
    fit = np.polyfit(steps, norm, 1)
    error = norm - np.polyval(fit, steps)
    straight = float(np.var(error)) < 0.02 * float(np.var(norm))
    weigh.fact(
        straight and fit[0] > 0 and abs(np.polyval(fit, steps[0])) < 0.5 * norm[-1],
        0.6,
        "norm-grows-straight",
        first=float(norm[0]),
        last=float(norm[-1]),
        step=int(steps[-1]),
    )
    return weigh.verdict("P0", "zero-gradients", test="cleared-gradients")


def _stands(case: Case) -> bool:
    values = finite(series(case, loss_of(case) or "loss")[1])
    return len(values) >= 8 and abs(float(np.median(values[-4:])) - float(np.median(values[:4]))) < 0.05 * abs(
        float(np.median(values[:4]))
    )


def _range(case: Case) -> dict[str, float]:
    values = finite(series(case, loss_of(case) or "loss")[1])
    return {"first": float(values[0]), "last": float(values[-1])} if len(values) else {"first": 0.0, "last": 0.0}


def _ratio(train: tuple[np.ndarray, np.ndarray], held: tuple[np.ndarray, np.ndarray]) -> float | None:
    """Median of training loss over validation loss at the validations, if it holds steady."""
    ratios = []
    for step, value in zip(*held, strict=True):
        at = int(np.searchsorted(train[0], step))
        near = finite(train[1][max(0, at - 4) : at + 1])
        if len(near) and value > 0 and np.median(near) > 0:
            ratios.append(float(np.median(near)) / float(value))
    if len(ratios) < 2:
        return None
    middle = float(np.median(ratios))
    return middle if float(np.max(np.abs(np.array(ratios) / middle - 1))) < 0.25 else None
