"""What a cause is given. A cause is a function `(Case) -> Hypothesis | None`; `diagnose.py` ranks what they return."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from poise.records import Column, Event, Floats, Hypothesis, Incident, Ints, RunInfo

_EMPTY: tuple[Ints, Floats] = (np.empty(0, np.int64), np.empty(0))


@dataclass(frozen=True, slots=True)
class Case:
    """One incident and all that the run can say about it up to `incident.detected_step` and beyond.

    Args:
        columns: the incident's branch, whole (offline) or as far back as the history reaches (live).
        others: the run's other incidents.
    """

    incident: Incident
    info: RunInfo
    columns: Mapping[str, Column]
    events: tuple[Event, ...] = ()
    others: tuple[Incident, ...] = ()

    def has(self, signal: str) -> bool:
        """Whether the log has this signal at all."""
        return signal in self.columns and len(self.columns[signal]) > 0

    def between(self, signal: str, start: float, stop: float) -> tuple[Ints, Floats]:
        """Steps and values of a signal with start <= step < stop; empty where it was not measured."""
        column = self.columns.get(signal)
        if column is None:
            return _EMPTY
        first, last = np.searchsorted(column.steps, [start, stop])
        return column.steps[first:last], column.values[first:last]

    def before(self, signal: str, rows: int = 64) -> Floats:
        """The finite values of the last `rows` rows before the onset."""
        values = self.between(signal, -np.inf, self.incident.onset_step)[1][-rows:]
        return values[np.isfinite(values)]

    def after(self, signal: str, rows: int = 64) -> Floats:
        """The finite values of the first `rows` rows from the onset on."""
        values = self.between(signal, self.incident.onset_step, np.inf)[1][:rows]
        return values[np.isfinite(values)]

    @property
    def last_step(self) -> int:
        """The last step of the branch in any column."""
        return max((int(c.steps[-1]) for c in self.columns.values() if len(c)), default=0)

    @property
    def progress(self) -> float:
        """Where in the run the onset lies, 0 to 1, by the planned number of steps if the log states it."""
        planned = self.info.config.get("max_steps")
        last = max(self.last_step, int(planned) if isinstance(planned, int | float) and planned > 0 else 0)
        return self.incident.onset_step / last if last else 0.0


Cause = Callable[[Case], Hypothesis | None]
