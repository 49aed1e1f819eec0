"""From an incident to its ranked causes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from poise.causes import CAUSES
from poise.causes.base import Case, Cause
from poise.records import Column, Hypothesis

KEPT = 6
"""More causes than this say that nothing is known."""
FLOOR = 0.05
NEAR, FAR = 2048, 4096
"""Rows kept to either side of the onset, and of the rest of the run: a million say no more about a cause."""


def diagnose(case: Case, causes: Iterable[Cause] = CAUSES) -> tuple[Hypothesis, ...]:
    """Return the likely causes of an incident, best first.

    Scores compare only within one incident. Where two lie close together the log cannot tell them apart; each then
    carries the experiment that would. The cost does not grow with the log: far from the onset rows are thinned, where
    non-finite values are always kept.

    Args:
        case: the incident with its columns.
        causes: functions to ask; by default every cause that a log alone can support.
    """
    near = replace(case, columns={name: _thinned(c, case.incident.onset_step) for name, c in case.columns.items()})
    with np.errstate(all="ignore"):
        found = [h for cause in causes if (h := cause(near)) is not None and h.score >= FLOOR]
    found.sort(key=lambda h: (-h.score, h.priority))
    best = found[0].score if found else 0.0
    return tuple(h for h in found[:KEPT] if h.score >= 0.2 * best or h.score >= 0.1)


def _thinned(column: Column, onset: int) -> Column:
    """All rows around the onset, every k-th elsewhere, the last one, and the first non-finite ones."""
    rows = len(column)
    if rows <= 2 * NEAR + FAR:
        return column
    center = int(np.searchsorted(column.steps, onset))
    keep = np.zeros(rows, np.bool_)
    keep[:: rows // FAR + 1] = True
    keep[max(0, center - NEAR) : center + NEAR] = True
    keep[-1] = True
    bad = ~np.isfinite(column.values if column.values.ndim == 1 else column.values.sum(axis=1))
    keep[np.flatnonzero(bad)[:NEAR]] = True
    return replace(column, steps=column.steps[keep], values=column.values[keep])
