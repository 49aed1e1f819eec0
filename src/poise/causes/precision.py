"""Updates that a low-precision format rounds away, and an epsilon that does not fit the format."""

from __future__ import annotations

import numpy as np

from poise.causes.base import Case
from poise.causes.clues import (
    STANDSTILL,
    Weigh,
    concerns,
    finite,
    first_bad,
    first_rise,
    half_precision,
    past,
    series,
    setting,
)
from poise.causes.rate import rate
from poise.records import Hypothesis

BF16_STEP = 2.0**-9
"""Half of bf16's spacing relative to the number: smaller relative updates leave a bf16 weight as it is."""


def low_precision_stall(case: Case) -> Hypothesis | None:
    """Gradients are there and the learning rate is not zero, but the weights do not move, or gradients are flushed to zero."""
    if not concerns(case, *STANDSTILL, "gradient-zeros"):
        return None
    weigh = Weigh(case, "low-precision-stall")
    schedule = rate(case)
    alive = schedule is None or schedule.at_onset > 0
    gradient, update = finite(series(case, "grad_norm")[1]), finite(series(case, "update_norm")[1])
    weigh.fact(
        len(update) and np.median(update[-16:]) == 0 and len(gradient) and np.median(gradient[-16:]) > 0 and alive,
        0.8,
        "updates-vanish",
        gradient=float(np.median(gradient[-16:])) if len(gradient) else 0,
    )
    ratio = finite(series(case, "update_ratio")[1])[-16:]
    small = len(ratio) and 0 < np.median(ratio) < BF16_STEP / 64
    weigh.fact(
        small and "bf" in _format(case), 0.4, "updates-below-format", value=float(np.median(ratio)) if len(ratio) else 0
    )
    zero = len(gradient) >= 4 and float(np.mean(gradient[-16:] == 0)) > 0.8
    weigh.fact(zero and half_precision(case), 0.6, "gradients-flushed", rows=int(np.sum(gradient == 0)))
    return weigh.verdict("P1", "fp32-master", "use-bf16", test="fp32", step=case.incident.onset_step)


def epsilon(case: Case) -> Hypothesis | None:
    """Adam's epsilon against the number format and the size of the gradients."""
    if not concerns(case, "non-finite", "loss-spike", "divergence", "update-norm-spike"):
        return None
    value = setting(case, "adam_epsilon", "adam_eps", "eps", "epsilon")
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    weigh = Weigh(case, "epsilon")
    pure = half_precision(case) and not case.has("loss_scale")
    gradient, loss = first_bad(case, "grad_norm"), first_bad(case, "loss")
    fine = len(past(case, "grad_norm")) > 0 and loss is not None and (gradient is None or gradient[0] >= loss[0])
    weigh.fact(pure and value < 6e-8 and fine, 0.45, "epsilon-rounds-to-zero", value=value, step=loss[0] if loss else 0)
    update, moved = first_rise(case, "update_norm"), first_rise(case, "grad_norm")
    calm = past(case, "grad_norm")
    tiny = len(calm) and float(np.median(calm)) < 1e-4
    weigh.fact(
        tiny and update is not None and (moved is None or update < moved),
        0.3,
        "gradients-near-epsilon",
        value=value,
        gradient=float(np.median(calm)) if len(calm) else 0,
    )
    return weigh.verdict("P1", "raise-epsilon", "fp32-master", test="epsilon", value=value)


def _format(case: Case) -> str:
    named = str(setting(case, "precision", "mixed_precision", "dtype", "params_dtype") or "").lower()
    return "bf16" if setting(case, "bf16") is True else named
