"""From an incident to its ranked causes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from poise.causes import CAUSES
from poise.causes.base import Case, Cause
from poise.causes.likely import open_rivals
from poise.records import Column, Event, Frame, Hypothesis, Incident, RunInfo

KEPT = 6
"""More causes than this say that nothing is known."""
FLOOR = 0.06
KNOWN = 0.15
"""Where no cause exceeds this, the usual suspects are shown as well, as such."""
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
    if max((h.score for h in found), default=0.0) <= KNOWN:
        found += open_rivals(near, frozenset(h.cause for h in found))
    found.sort(key=lambda h: (-h.score, h.priority))
    best = found[0].score if found else 0.0
    return tuple(h for h in found[:KEPT] if h.score >= 0.2 * best or h.score >= 0.1)


def case_of(incident: Incident, info: RunInfo, frames: Iterable[Frame], incidents: Iterable[Incident]) -> Case:
    """Collect what a run says about an incident.

    A branch is given with what came before it, up to the step at which it began: that is what its own run looked like.

    Args:
        frames: one per branch, in order, or several consecutive ones of each.
        incidents: all of the run; the others are context.
    """
    columns: dict[str, Column] = {}
    events: list[Event] = []
    for frame in frames:
        if frame.branch > incident.branch:
            break
        begin = min((int(c.steps[0]) for c in frame.columns.values() if len(c)), default=None)
        if begin is not None:
            columns = {name: c.slice(0, int(np.searchsorted(c.steps, begin))) for name, c in columns.items()}
            columns |= {name: _joined(columns.get(name), c) for name, c in frame.columns.items()}
        events += frame.events
    others = tuple(i for i in incidents if i.id != incident.id)
    return Case(incident, info, columns, tuple(events), others)


def _joined(first: Column | None, second: Column) -> Column:
    if first is None or not len(first) or first.values.shape[1:] != second.values.shape[1:]:
        return second
    steps, values = np.concatenate([first.steps, second.steps]), np.concatenate([first.values, second.values])
    return replace(second, steps=steps, values=values, resolution=max(first.resolution, second.resolution))


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
