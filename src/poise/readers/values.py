"""What the values of a column tell of themselves: printed digits, placeholders, units."""

from __future__ import annotations

import numpy as np

from poise.readers.meaning import Meaning
from poise.records import Floats

_SAMPLE = 2048
_NEVER_ZERO = frozenset(
    {
        "grad_norm",
        "grad_norm_clipped",
        "param_norm",
        "perplexity",
        "eval_perplexity",
        "step_seconds",
        "tokens_per_second",
        "samples_per_second",
        "memory_allocated",
        "memory_reserved",
        "host_memory",
        "loss_scale",
    }
)


def is_placeholder(signal: str, values: Floats) -> bool:
    """Whether a column was never measured: norms, speeds and sizes that are zero (or -1) in every row."""
    if signal.partition("/")[0] not in _NEVER_ZERO or not len(values):
        return False
    first = values[0]
    return bool(first in (0.0, -1.0) and np.all(values == first))


def convert(values: Floats, meaning: Meaning) -> Floats:
    """Values in the signal's unit."""
    with np.errstate(all="ignore"):
        match meaning.convert:
            case "sqrt":
                values = np.sqrt(values)
            case "log":
                values = np.log(values)
            case "negate":
                values = np.negative(values)
            case "start":
                values = values - values[0] if np.isfinite(values[0]) else values
        return values * meaning.factor if meaning.factor not in (0.0, 1.0) else values


def resolution(values: Floats) -> float:
    """Half the last printed digit of a rounded log, 0 where values look exact.

    A strided sample of 2,048 values decides. Needs 8 distinct finite values. Scientific notation with few digits has a
    relative step: its coarsest, that of the largest value's decade, is returned for the median value.
    """
    sample = values[:: max(1, len(values) // _SAMPLE)][:_SAMPLE]
    sample = np.unique(sample[np.isfinite(sample)])
    if len(sample) < 8 or not np.all(np.abs(sample) < 1e12):
        return 0.0
    for digits in range(9):
        if _whole(sample * 10.0**digits):
            return 0.5 * 10.0**-digits
    return _significant(sample[sample != 0.0])


def _whole(scaled: Floats) -> bool:
    """Whether distinct values are distinct whole numbers, within the error of a float."""
    nearest = np.rint(scaled)
    tolerance = np.maximum(np.abs(scaled) * 4e-16, 1e-9)
    near = np.abs(scaled - nearest) <= tolerance
    return bool(near.all() and np.max(np.abs(nearest)) < 1e12 and np.all(nearest[1:] != nearest[:-1]))


def _significant(sample: Floats) -> float:
    """Half the last digit at the median magnitude, where all values have at most 7 significant digits."""
    if not len(sample):
        return 0.0
    exponents = np.floor(np.log10(np.abs(sample)) + 1e-12)
    if np.min(exponents) < -290:
        return 0.0
    mantissas = sample / 10.0**exponents
    for digits in range(2, 7):
        scaled = mantissas * 10.0**digits
        if np.all(np.abs(scaled - np.rint(scaled)) <= 1e-8 * 10.0**digits * 1e-2 + 1e-9):
            return float(0.5 * 10.0 ** (np.median(exponents) - digits))
    return 0.0
