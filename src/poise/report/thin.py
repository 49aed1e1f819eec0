"""Fewer points of a series without losing what matters: extremes, the first and last value that is not finite, and onsets."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence

import numpy as np

from poise.records import Bools, Floats, Ints

NOISE = 0.02  # share of the smooth line's range above which a series is noisy
PER_BUCKET = 4  # least, greatest, first and last that is not finite


def shares(lengths: Sequence[int], budget: int, least: int = 256) -> list[int]:
    """How many points each series may keep: short ones all, long ones what is left in equal parts, at least `least`."""
    caps = [0] * len(lengths)
    left = budget
    for done, index in enumerate(sorted(range(len(lengths)), key=lambda i: lengths[i])):
        caps[index] = min(lengths[index], max(left // (len(lengths) - done), least))
        left = max(left - caps[index], 0)
    return caps


def kept_rows(values: Floats, cap: int, around: Iterable[int] = (), reach: int = 200) -> Ints:
    """Rows to keep, in order.

    Args:
        values: (n,) or (n, k); of several values in a row the extremes count.
        cap: about how many rows to keep.
        around: rows near which every row within `reach` is kept.
    """
    rows = len(values)
    if rows <= max(cap, 1):
        return np.arange(rows)
    wide = values if values.ndim == 2 else values[:, None]
    fine = np.isfinite(wide)
    low = np.where(fine, wide, np.inf).min(axis=1)
    high = np.where(fine, wide, -np.inf).max(axis=1)
    keep = np.zeros(rows, bool)
    keep[[0, -1]] = True
    _keep_extremes(keep, low, high, np.asarray(~fine.all(axis=1)), max(cap // PER_BUCKET, 1))
    for row in around:
        keep[max(0, row - reach) : row + reach] = True
    return np.flatnonzero(keep)


def _keep_extremes(keep: Bools, low: Floats, high: Floats, bad: Bools, buckets: int) -> None:
    rows = len(keep)
    size = -(-rows // buckets)
    buckets = -(-rows // size)
    starts = np.arange(buckets) * size
    spare = buckets * size - rows

    def table(column: Floats | Bools, fill: float) -> Floats:
        return np.concatenate([column, np.full(spare, fill)]).reshape(buckets, size)

    keep[np.minimum(starts + table(low, np.inf).argmin(axis=1), rows - 1)] = True
    keep[np.minimum(starts + table(high, -np.inf).argmax(axis=1), rows - 1)] = True
    marked = table(bad, 0.0)
    some = marked.any(axis=1)
    keep[(starts + marked.argmax(axis=1))[some]] = True
    keep[(starts + size - 1 - marked[:, ::-1].argmax(axis=1))[some]] = True


def smoothed(values: Floats, rows: Ints, anchors: int = 300) -> tuple[Ints, Floats] | None:
    """A smooth line through a long noisy series: medians of a window around some of the kept rows.

    Args:
        values: (n,) the whole series.
        rows: (m,) the rows that are kept.

    Returns:
        Which of the kept rows (indices into `rows`) and the medians there; None for a short series or one without noise.
    """
    if len(values) < 2 * anchors:
        return None
    at = np.unique(np.linspace(0, len(rows) - 1, anchors).astype(np.int64))
    reach = max(len(values) // anchors, 12)
    fine = np.where(np.isfinite(values), values, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a window without a finite value has no median: NaN, a gap
        medians = np.array([np.nanmedian(fine[max(0, row - reach) : row + reach + 1]) for row in rows[at].tolist()])
        noise = np.nanmedian(np.abs(fine[rows[at]] - medians))
        span = np.nanmax(medians) - np.nanmin(medians)
    known = np.isfinite(medians)
    return (at[known], medians[known]) if noise > NOISE * span else None
