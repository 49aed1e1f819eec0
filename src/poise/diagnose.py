"""From an incident to its ranked causes."""

from __future__ import annotations

from collections.abc import Iterable

from poise.causes import CAUSES
from poise.causes.base import Case, Cause
from poise.records import Hypothesis

KEPT = 6
"""More causes than this say that nothing is known."""
FLOOR = 0.05


def diagnose(case: Case, causes: Iterable[Cause] = CAUSES) -> tuple[Hypothesis, ...]:
    """Return the likely causes of an incident, best first.

    Scores compare only within one incident. Where two lie close together the log cannot tell them apart; each then
    carries the experiment that would.

    Args:
        case: the incident with its columns.
        causes: functions to ask; by default every cause that a log alone can support.
    """
    found = [h for cause in causes if (h := cause(case)) is not None and h.score >= FLOOR]
    found.sort(key=lambda h: (-h.score, h.priority))
    best = found[0].score if found else 0.0
    return tuple(h for h in found[:KEPT] if h.score >= 0.2 * best or h.score >= 0.1)
