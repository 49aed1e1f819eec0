"""Training and validation part company, or are suspiciously at one."""

from __future__ import annotations

import numpy as np

from poise.causes.base import Case
from poise.causes.clues import Weigh, concerns, finite, series
from poise.records import Hypothesis


def overfitting_data(case: Case) -> Hypothesis | None:
    """Validation turns and worsens while the training loss still falls: too little, or too uniform, data for so many passes."""
    if not concerns(case, "overfitting"):
        return None
    weigh = Weigh(case, "overfitting-data")
    steps, values, name = _validation(case)
    if len(values) >= 3:
        worse = -values if name == "eval_accuracy" else values
        best = int(np.nanargmin(worse))
        weigh.fact(
            best < len(values) - 1,
            0.5,
            "validation-turns",
            signal=name,
            step=int(steps[best]),
            best=float(values[best]),
            last=float(values[-1]),
        )
    train_steps, train = series(case, "loss")
    late = finite(train[np.searchsorted(train_steps, case.incident.onset_step) :])
    early = finite(train[: max(1, np.searchsorted(train_steps, case.incident.onset_step))])
    if len(late) >= 2 and len(early):
        tail = float(np.median(late[-4:]))
        weigh.fact(
            tail < float(np.median(early[-4:])),
            0.25,
            "training-still-falls",
            before=float(np.median(early[-4:])),
            after=tail,
        )
    epochs = finite(series(case, "epoch")[1])
    weigh.fact(len(epochs) and epochs[-1] > 2, 0.1, "epochs-seen", epochs=float(epochs[-1]) if len(epochs) else 0)
    return weigh.verdict("P2", "fewer-epochs", "regularise", "remove-duplicates", "resample-domains", test="fresh-data")


def data_leak(case: Case) -> Hypothesis | None:
    """Training and validation loss fall together to a level that honest data does not allow: the target is in the input."""
    if not concerns(case, "suspicious-loss"):
        return None
    weigh = Weigh(case, "data-leak")
    train, (_, held, name) = finite(series(case, "loss")[1]), _validation(case)
    low, high = _fall(train)
    weigh.fact(len(train) >= 2 and low < 0.3 * high, 0.4, "falls-too-far", signal="loss", first=high, last=low)
    if name == "eval_loss" and len(finite(held)) >= 2:
        low, high = _fall(finite(held))
        weigh.fact(low < 0.3 * high, 0.45, "validation-falls-too", signal=name, first=high, last=low)
    return weigh.verdict("P0", "check-split", "check-shift", test="shuffled-labels")


def _validation(case: Case) -> tuple[np.ndarray, np.ndarray, str]:
    signals = [f.signal for f in case.incident.findings if f.signal.startswith("eval")]
    for name in (
        *signals,
        "eval_loss",
        "eval_perplexity",
        "eval_accuracy",
        *(n for n in case.columns if n.startswith("eval_")),
    ):
        if case.has(name):
            return (*series(case, name), name.partition("/")[0])
    return np.empty(0, np.int64), np.empty(0), ""


def _fall(values: np.ndarray) -> tuple[float, float]:
    if not len(values):
        return 0.0, 0.0
    return float(np.median(values[-2:])), float(values[: max(1, len(values) // 2)].max())
