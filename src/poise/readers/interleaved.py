"""Series that several ranks wrote into one log: `loss@rank0`, `loss@rank1`, ... become one series, and later one matrix."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from poise.readers.steps import Points
from poise.records import Column, Floats, Ints

_RANKED = re.compile(r"(.+)@rank(\d{1,6})")


def gather(columns: Mapping[str, Points]) -> dict[str, Points]:
    """Put the ranks' series of one name together, in record order, with the rank of each point beside it.

    Where the name also occurs without a rank, that series (the trainer's own reduction) stays as it is.
    """
    groups: dict[str, dict[int, Points]] = {}
    found: dict[str, Points] = {}
    for name, points in columns.items():
        match = _RANKED.fullmatch(name)
        if match is None or points.steps is not None:
            found[name] = points
        else:
            groups.setdefault(match[1], {})[int(match[2])] = points
    for base, ranks in groups.items():
        found[base if base not in columns else f"{base}@ranks"] = _together(ranks)
    return found


def _together(ranks: Mapping[int, Points]) -> Points:
    rows = np.concatenate([p.rows for p in ranks.values()])
    values = np.concatenate([p.values for p in ranks.values()])
    numbers = np.repeat(np.array(list(ranks), np.int64), [len(p.rows) for p in ranks.values()])
    order = np.argsort(rows, kind="stable")
    return Points(rows[order], values[order], None, numbers[order])


def matrix(steps: Ints, values: Floats, ranks: Ints, numbers: Ints) -> Column:
    """One row per step, one column per rank of `numbers`; NaN where a rank said nothing, its last word where it said more.

    Args:
        steps: (n,) in order.
    """
    unique, row = np.unique(steps, return_inverse=True)
    table = np.full((len(unique), len(numbers)), np.nan)
    table[row, np.searchsorted(numbers, ranks)] = values
    return Column(unique, table, 0.0, "ranks")


def mean_of_finite(column: Column) -> Column:
    """Mean over the ranks with a finite value; NaN where none has one."""
    finite = np.isfinite(column.values)
    count = finite.sum(axis=1)
    total = np.where(finite, column.values, 0.0).sum(axis=1)
    with np.errstate(invalid="ignore"):
        return Column(column.steps, np.where(count > 0, total / np.maximum(count, 1), np.nan))


def ranks_not_finite(values: Floats, ranks: Ints) -> list[int]:
    """Ranks that logged at least one NaN or Inf."""
    bad: list[int] = np.unique(ranks[~np.isfinite(values)]).tolist()
    return bad
