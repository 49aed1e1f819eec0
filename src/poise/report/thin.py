"""Fewer points of a series without losing what matters: extremes, the first and last value that is not finite, and onsets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from poise.records import Bools, Floats, Ints

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
    _keep_extremes(keep, low, high, ~fine.all(axis=1), max(cap // PER_BUCKET, 1))
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
