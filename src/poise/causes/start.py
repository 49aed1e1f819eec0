"""A wrong start: weights that do not fit, outputs that are uniform, blocks that pass no gradient to the ones below."""

from __future__ import annotations

import math
import re

import numpy as np

from poise.causes.base import Case
from poise.causes.clues import STANDSTILL, Weigh, concerns, finite, loss_of, series, setting
from poise.records import Hypothesis

WELL_KNOWN = (
    2,
    3,
    4,
    5,
    10,
    20,
    21,
    37,
    80,
    81,
    91,
    100,
    101,
    102,
    200,
    256,
    365,
    1000,
    1001,
    21841,
    32000,
    50257,
    50304,
    128256,
)
"""Numbers of classes or words that data sets and tokenizers have; any other number is inferred with less trust."""


def initialization(case: Case) -> Hypothesis | None:
    """The first loss is far above guessing, the output stays uniform, or gradients are tiny from the first step."""
    if not concerns(case, *STANDSTILL, "divergence", "gradient-explosion"):
        return None
    weigh = Weigh(case, "initialization")
    first = _first(case)
    chance, _classes = chance_level(case)
    if concerns(case, "bad-start") and first is not None:
        reference = chance or math.log(262_144)
        weigh.fact(first > 1.2 * reference, 0.5, "starts-above-chance", value=first, chance=reference)
    uniform = uniform_classes(case)
    weigh.fact(
        uniform is not None,
        0.4,
        "uniform-output",
        value=uniform[1] if uniform else 0,
        classes=uniform[0] if uniform else 0,
    )
    _shallow(weigh, 0.45)
    norm = finite(series(case, "grad_norm")[1])
    weigh.fact(
        concerns(case, "gradient-vanishing") and len(norm) >= 4 and float(np.median(norm[:4])) < 1e-4,
        0.25,
        "tiny-from-start",
        value=float(np.median(norm[:4])) if len(norm) else 0,
    )
    blown = concerns(case, "gradient-explosion", "divergence") and len(norm) >= 1 and norm[0] > 100
    weigh.fact(
        blown and case.incident.onset_step <= 0.02 * max(case.last_step, 50),
        0.3,
        "huge-from-start",
        value=float(norm[0]) if len(norm) else 0,
    )
    priority = "P1" if concerns(case, "gradient-vanishing") else "P0"
    return weigh.verdict("P0" if priority == "P0" else "P1", "initialise", "check-loaded-weights", test="first-loss")


def uniform_output(case: Case) -> Hypothesis | None:
    """The loss is ln C and does not move: the output is the same for every class, dead units or a cut graph behind it."""
    if not concerns(case, *STANDSTILL):
        return None
    found = uniform_classes(case)
    if found is None:
        return None
    classes, value, exact = found
    weigh = Weigh(case, "uniform-output")
    weigh.fact(
        True,
        0.75 if exact else 0.45,
        "constant-at-chance",
        value=value,
        classes=classes,
        error=abs(value - math.log(classes)),
    )
    norm = finite(series(case, "grad_norm")[1])
    weigh.fact(
        len(norm) and float(np.median(norm)) < 1e-6,
        0.15,
        "no-gradient",
        value=float(np.median(norm)) if len(norm) else 0,
    )
    return weigh.verdict("P0", "check-dead-units", "initialise", "check-input-scale", test="overfit-one-batch")


def residual_missing(case: Case) -> Hypothesis | None:
    """The gradient falls block by block towards the input: no short way back through the branches."""
    if not concerns(case, "gradient-vanishing"):
        return None
    weigh = Weigh(case, "residual-missing")
    _shallow(weigh, 0.4)
    return weigh.verdict("P1", "check-residuals", "check-norms", test="branch-entry")


def normalization(case: Case) -> Hypothesis | None:
    """The same profile as a missing residual; norms that are missing or misplaced give it too."""
    if not concerns(case, "gradient-vanishing"):
        return None
    weigh = Weigh(case, "normalization")
    _shallow(weigh, 0.38)
    return weigh.verdict("P1", "check-norms", "check-residuals", test="branch-entry")


def chance_level(case: Case) -> tuple[float | None, int | None]:
    """What guessing costs by the number of classes that the log states."""
    classes = setting(case, "vocab_size", "padded_vocab_size", "num_classes", "num_labels", "nc")
    return (math.log(classes), classes) if isinstance(classes, int) and classes > 1 else (None, None)


def uniform_classes(case: Case) -> tuple[int, float, bool] | None:
    """Number of classes whose guessing loss the constant loss equals, the loss, and whether it fits to 1e-4."""
    values = finite(series(case, loss_of(case) or "loss")[1])
    if len(values) < 8 or case.has("reward"):
        return None
    tail = values[len(values) // 4 :]
    level = float(np.median(tail))
    if not 0.6 < level < 13 or float(np.percentile(np.abs(tail - level), 80)) > 2e-3 * level:
        return None
    stated = chance_level(case)[1]
    classes = stated or round(math.exp(level))
    error = abs(level - math.log(classes))
    tolerance = 1e-4 if classes in WELL_KNOWN or classes < 64 else 1e-6
    if error <= tolerance:
        return classes, level, True
    near = min(WELL_KNOWN, key=lambda c: abs(math.log(c) - level))
    return (near, level, False) if abs(math.log(near) - level) < 4e-3 else None


def _shallow(weigh: Weigh, weight: float) -> None:
    """Gradient norms by depth: the shallowest block far below the deepest, persistently."""
    profile = _profile(weigh.case)
    if len(profile) >= 3:
        shallow, deep = profile[0], float(np.median([v for _, v in profile[len(profile) // 2 :]]))
        ratio = deep / max(shallow[1], 1e-300)
        weigh.fact(
            ratio > 100, weight, "shallow-gradient-tiny", block=shallow[0], value=shallow[1], deep=deep, ratio=ratio
        )


def _profile(case: Case) -> list[tuple[str, float]]:
    """Median gradient norm of each numbered block, from the input up."""
    blocks: dict[int, list[float]] = {}
    for name in case.columns:
        match = re.search(r"(\d+)", name) if name.startswith("grad_norm/") else None
        values = finite(series(case, name)[1])[-32:]
        if match and len(values):
            blocks.setdefault(int(match[1]), []).append(float(np.median(values)))
    return [(str(block), float(np.median(values))) for block, values in sorted(blocks.items())]


def _first(case: Case) -> float | None:
    values = finite(series(case, loss_of(case) or "loss")[1])
    return float(values[0]) if len(values) else None
