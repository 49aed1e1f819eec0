"""Slow symptoms: several signals' courses in step with one of them, and a finding that stands until it is over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from poise.records import SEVERITIES, Bools, Column, Floats, Frame, Ints, Severity, State
from poise.stats.blocks import Course
from poise.stats.robust import MAD_TO_SIGMA


@dataclass(slots=True)
class Courses:
    """The course of each of some signals: block medians, one row each at first, so that a short log is judged row by row.

    A million rows make about 3,400 blocks, which bounds the cost of judging at every block.
    """

    branch: int = 0
    by_name: dict[str, Course] = field(default_factory=dict)
    leads: dict[str, str] = field(default_factory=dict)

    def walk(self, frame: Frame, primary: str, others: Iterable[str] = ()) -> Iterator[int]:
        """Take the frame's rows; yield the step of each block of `primary` that is full, with the others fed up to that step.

        Everything is causal and in step order, so it does not matter how the stream was cut. Rows that are not finite are
        left out. Must be used up.
        """
        rest = [feed for name in others if (feed := self._feed(frame, name)) is not None]
        main = self._feed(frame, primary)
        while main is not None and (step := main.block()) is not None:
            for feed in rest:
                feed.upto(step)
            yield step
        for feed in rest:
            feed.upto(None)

    def walk_all(self, frame: Frame, names: Iterable[str]) -> Iterator[tuple[str, int]]:
        """Take the frame's rows of several signals; yield (name, step) of each block that is full, all of them fed up to that step."""
        feeds = {name: feed for name in names if (feed := self._feed(frame, name)) is not None}
        while ends := {name: end for name, feed in feeds.items() if (end := feed.end()) is not None}:
            step = min(ends.values())
            for feed in feeds.values():
                feed.upto(step)
            yield from ((name, step) for name, end in ends.items() if end == step)
        for feed in feeds.values():
            feed.upto(None)

    def walk_members(self, frame: Frame, signal: str) -> Iterator[int]:
        """The same for a signal's members, the global column left out: in step with the member that was seen first."""
        names = {name: c for name, c in frame.members(signal) if name != signal and c.shape == "scalar" and len(c)}
        if signal not in self.leads and names:
            self.leads[signal] = min(names, key=lambda n: (int(names[n].steps[0]), n))
        lead = self.leads.get(signal, "")
        yield from self.walk(frame, lead, [name for name in sorted(names) if name != lead])

    def restart(self, frame: Frame) -> bool:
        """Forget everything where a new branch begins; whether one does."""
        if frame.branch == self.branch:
            return False
        self.branch, self.by_name, self.leads = frame.branch, {}, {}
        return True

    def values(self, name: str) -> Floats:
        """Block medians of a signal, oldest first; empty where it was not seen."""
        return np.array(self.by_name[name].medians) if name in self.by_name else np.empty(0)

    def steps(self, name: str) -> Ints:
        """First step of each block."""
        return np.array(self.by_name[name].first_steps) if name in self.by_name else np.empty(0, np.int64)

    def rows(self, name: str) -> int:
        """Finite rows seen."""
        return self.by_name[name].rows if name in self.by_name else 0

    def size(self, name: str) -> int:
        """Rows per block at present."""
        return self.by_name[name].size if name in self.by_name else 1

    def _feed(self, frame: Frame, name: str) -> _Feed | None:
        column = frame.columns.get(name)
        if column is None or column.shape != "scalar":
            return None
        return _Feed(self.by_name.setdefault(name, Course(size=1)), *_finite(column))


@dataclass(slots=True)
class _Feed:
    """Hands a column to its course, piece by piece."""

    course: Course
    steps: Ints
    values: Floats
    row: int = 0

    def block(self) -> int | None:
        """Go on to the end of the present block; its last step, or None where the frame ends before."""
        stop = self.row + self.course.room()
        full = stop <= len(self.values)
        self._take(min(stop, len(self.values)))
        return int(self.steps[stop - 1]) if full else None

    def end(self) -> int | None:
        """The step at which the present block will be full, None where it will not be in this frame."""
        stop = self.row + self.course.room()
        return int(self.steps[stop - 1]) if stop <= len(self.steps) else None

    def upto(self, step: int | None) -> None:
        """Go on to the last row at or before a step, or to the end."""
        self._take(len(self.steps) if step is None else int(np.searchsorted(self.steps, step, side="right")))

    def _take(self, stop: int) -> None:
        if stop > self.row:
            self.course.update(self.steps[self.row : stop], self.values[self.row : stop])
            self.row = stop


def _finite(column: Column) -> tuple[Ints, Floats]:
    keep = np.isfinite(column.values)
    return (column.steps, column.values) if keep.all() else (column.steps[keep], column.values[keep])


@dataclass(slots=True)
class Standing:
    """One finding that may be open: keeps its onset, so that what is said later has the same identity."""

    onset: int = -1
    severity: Severity = "info"
    open: bool = False

    def turn(self, severity: Severity | None, onset: int) -> tuple[Severity, State] | None:
        """What is to be said now that the symptom is seen with this severity, or not at all; None for nothing new."""
        if severity is None:
            if not self.open:
                return None
            self.open = False
            return "info", "recovered"
        if not self.open:
            self.open, self.onset, self.severity = True, onset, severity
            return severity, "open"
        if SEVERITIES.index(severity) <= SEVERITIES.index(self.severity):
            return None
        self.severity = severity
        return severity, "open"


def noise_of(values: Floats) -> float:
    """Standard deviation of a course around its own trend, from the differences of neighbours; 0 for fewer than 4."""
    if len(values) < 4:
        return 0.0
    steps = np.diff(values)
    return float(MAD_TO_SIGMA * np.median(np.abs(steps - np.median(steps))) / np.sqrt(2))


def tail(values: Floats, share: float, least: int) -> Floats:
    """The last share of a course, at least so many blocks."""
    return values[-max(least, int(len(values) * share)) :]


@dataclass(slots=True)
class Streak:
    """Rows in a row of which something is true.

    Args:
        needed: rows from which on it counts.
    """

    needed: int
    rows: int = 0
    onset: int = -1

    def take(self, at: Ints, true: Bools) -> list[tuple[int, int, bool]]:
        """Judge the next rows; (step, first step of the streak, whether it begins to count or is over) for each change."""
        if not len(at) or not (self.rows or true.any()):
            return []
        row = np.arange(len(at))
        last_false = np.maximum.accumulate(np.where(true, -1, row))
        length = np.where(true, np.where(last_false < 0, self.rows + row + 1, row - last_false), 0)
        before = np.concatenate([[self.rows], length[:-1]])
        begins, carried = true & (length == self.needed), self.onset
        events: list[tuple[int, int, bool]] = []
        for i in np.flatnonzero(begins | (~true & (before >= self.needed))).tolist():
            start = i - int(length[i] if begins[i] else before[i]) + int(begins[i])
            events.append((int(at[i]), int(at[start]) if start >= 0 else carried, bool(begins[i])))
        self.rows = int(length[-1])
        if 0 < self.rows <= len(at):
            self.onset = int(at[len(at) - self.rows])
        return events
