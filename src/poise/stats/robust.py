"""Medians, lines and scales that a few wild values cannot move, over many windows at once."""

from __future__ import annotations

import numpy as np

from poise.records import Floats

FLAT_SIGMAS = 2.0
MAD_TO_SIGMA = 1.4826  # a normal's standard deviation per median absolute deviation


def median(windows: Floats) -> Floats:
    """Median along the last axis of finite values. For short rows a vectorised sort beats a partition tenfold."""
    n = windows.shape[-1]
    ordered = np.sort(windows, axis=-1)
    middle: Floats = ordered[..., (n - 1) // 2] * 0.5 + ordered[..., n // 2] * 0.5
    return middle


def line_and_scale(windows: Floats) -> tuple[Floats, Floats]:
    """Fit Tukey's resistant line to each window; return its value at the window's end and the residuals' robust scale.

    Args:
        windows: (m, n) finite values, oldest first.

    A slope that moves less than two scales over the window is noise, and is left out: the level is then the median.

    Returns:
        level (m,) and scale (m,) = 1.4826 MAD of the residuals, so that neither a trend nor a few outliers widen it.
    """
    n = windows.shape[1]
    third = max(1, n // 3)
    slope = (median(windows[:, n - third :]) - median(windows[:, :third])) / (n - third)
    rest = windows - slope[:, None] * np.arange(1 - n, 1)
    level = median(rest)
    scale = MAD_TO_SIGMA * median(np.abs(rest - level[:, None]))
    flat = np.abs(slope) * n < FLAT_SIGMAS * scale
    if flat.any():
        level[flat] = median(windows[flat])
        scale[flat] = MAD_TO_SIGMA * median(np.abs(windows[flat] - level[flat, None]))
    return level, scale


def log10_tail(z: Floats) -> Floats:
    """-log10 of a standard normal's upper tail at z, for any z; NaN stays NaN.

    Below 5 by a rational fit of the error function's complement (relative error 1.2e-7), above by the asymptotic series.
    """
    x = np.clip(z, 0.0, 1e100) / np.sqrt(2.0)
    t = 1.0 / (1.0 + 0.5 * x)
    series = (
        -1.26551223,
        1.00002368,
        0.37409196,
        0.09678418,
        -0.18628806,
        0.27886807,
        -1.13520398,
        1.48851587,
        -0.82215223,
        0.17087277,
    )
    polynomial = np.zeros_like(t)
    for coefficient in reversed(series):  # numpy.polynomial would cost 10 ms of imports
        polynomial = polynomial * t + coefficient
    log_erfc = np.log(t) - x * x + polynomial
    return np.where(z > 0, (np.log(2.0) - log_erfc) / np.log(10.0), np.where(z <= 0, np.log10(2.0), z))
