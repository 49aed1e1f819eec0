"""Noise that is the batch's own."""

from __future__ import annotations

import numpy as np

from poise.causes.base import Case
from poise.causes.clues import Weigh, burst, concerns, finite, loss_of, past, series, setting
from poise.records import Hypothesis


def small_batch_noise(case: Case) -> Hypothesis | None:
    """The loss swings by the same amount from the start on while its level falls or stands: few samples per step."""
    if not concerns(case, "oscillation", "loss-spike", "plateau"):
        return None
    weigh = Weigh(case, "small-batch-noise")
    rise = burst(case, loss_of(case) or "loss")
    calm = past(case, loss_of(case) or "loss")
    sigma = 1.4826 * float(np.median(np.abs(calm - np.median(calm)))) if len(calm) else 0.0
    if rise is not None and rise.value - rise.usual > 6 * sigma and concerns(case, "loss-spike"):
        return None  # noise has no such tail
    values = finite(series(case, loss_of(case) or "loss")[1])
    size = _batch(case)
    if len(values) >= 32:
        swings = np.abs(np.diff(values))
        early, late = float(np.median(swings[: len(swings) // 3])), float(np.median(swings[-(len(swings) // 3) :]))
        level = abs(float(np.median(values)))
        weigh.fact(
            late > 0.05 * level and 0.5 < late / max(early, 1e-12) < 2,
            0.35,
            "noise-steady",
            early=early,
            late=late,
            level=level,
        )
    weigh.fact(weigh.evidence and size is not None and size <= 8, 0.25, "batch-small", size=size or 0)
    return weigh.verdict("P2", ("bigger-batch", {"factor": 8}), "read-smoothed", test="bigger-batch")


def _batch(case: Case) -> float | None:
    logged = finite(series(case, "batch_size")[1])
    if len(logged):
        return float(np.median(logged))
    stated = setting(
        case, "global_batch_size", "train_batch_size", "batch_size", "per_device_train_batch_size", "batch"
    )
    return float(stated) if isinstance(stated, int | float) and stated > 0 else None
