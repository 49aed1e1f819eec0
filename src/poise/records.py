"""The records that flow through Poise. Read this first.

Readers and the live monitor make a `RunInfo` and `Frame`s. The `Watch` turns frames into `Finding`s (one symptom, seen
by one detector) and `Incident`s (what a person would call one event). Causes add `Hypothesis`es, policies `Action`s.
Everything is plain data: no torch, clock, rank or file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Severity = Literal["info", "warning", "critical"]
State = Literal["open", "recovered", "ended"]
Priority = Literal["P0", "P1", "P2"]
SEVERITIES: tuple[Severity, ...] = ("info", "warning", "critical")


def worst(*severities: Severity) -> Severity:
    """Return the most serious of some severities."""
    return max(severities, key=SEVERITIES.index)


@dataclass(frozen=True, slots=True)
class Message:
    """A sentence for people as an id of the catalogues in `poise.messages` and its parameters."""

    id: str
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Column:
    """One signal's measured points: absent steps were not measured, NaN was measured as NaN.

    Args:
        steps: (n,) the log's own step numbers, never decreasing inside a branch; a step may hold several points.
        values: (n,) scalars, (n, bins) fixed-width vectors, or (n, ranks) one value per rank, see `shape`.
        resolution: half the last printed digit of a rounded log, 0 where values are exact. A floor for scales.
        shape: what the second axis of `values` means.
    """

    steps: Ints
    values: Floats
    resolution: float = 0.0
    shape: Literal["scalar", "vector", "ranks"] = "scalar"

    def __len__(self) -> int:
        return len(self.steps)

    def slice(self, start: int, stop: int) -> Column:
        """Rows start to stop, as views."""
        return Column(self.steps[start:stop], self.values[start:stop], self.resolution, self.shape)


@dataclass(frozen=True, slots=True)
class Calm:
    """What a column would look like in health, by its own calm past; made by `stats.baseline`, aligned with the column.

    Args:
        level: (n,) expected value at that row, NaN while there is too little past.
        scale: (n,) robust standard deviation around the level (on the log axis where `log`).
        z: (n,) (value - level) / scale on that axis, NaN where level or value is not finite.
        accepted: (n,) whether the value was let into the baseline.
        log: (n,) whether scale and z live on the log axis; `level` is always on the value's own axis.
        shifts: (row, former level, new level) where 128 rejected values in a row had a level of their own and were adopted.
    """

    level: Floats
    scale: Floats
    z: Floats
    accepted: Bools
    log: Bools
    shifts: tuple[tuple[int, float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    """Something that is no number: text, batch ids, an exception, a snapshot, the end of a run.

    Kinds in use: `exception` (data: type, text, oom), `signal` (data: name), `overflow` (a skipped step; data: loss_scale),
    `run-end` (data: complete), `text` (data: text), `restart`.
    """

    kind: str
    step: int | None
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Frame:
    """A stretch of one branch of a run, in named columns, all ranks together.

    Names are those of `signals.py`; a member follows after a slash (`grad_norm/layers.3.mlp`, `loss/box`). A frame may hold
    one step or a million; it never crosses a branch, and two frames never share a step. Detectors must give the same
    findings however a stretch is cut. `calm` is filled in by the Watch: one baseline per signal, shared by all detectors.
    """

    columns: Mapping[str, Column]
    events: tuple[Event, ...] = ()
    branch: int = 0
    calm: Mapping[str, Calm] = field(default_factory=dict)

    def members(self, signal: str) -> Iterator[tuple[str, Column]]:
        """Yield the column of a signal and those of its members: `loss` gives `loss`, `loss/box`, ..."""
        for name, column in self.columns.items():
            if name == signal or name.startswith(signal + "/"):
                yield name, column

    def cut(self, rows: int) -> Iterator[Frame]:
        """Yield consecutive frames of about `rows` rows of the longest column, cut between steps."""
        longest = max(self.columns.values(), key=len, default=None)
        if longest is None or len(longest) <= rows:
            yield self
            return
        edges = np.unique(longest.steps[rows::rows])  # a frame ends before each edge step
        starts = dict.fromkeys(self.columns, 0)
        before: float = -np.inf
        for edge in [*edges.tolist(), np.inf]:
            columns = {}
            for name, column in self.columns.items():
                stop = len(column) if edge == np.inf else int(np.searchsorted(column.steps, edge))
                if stop > starts[name]:
                    columns[name] = column.slice(starts[name], stop)
                starts[name] = stop
            events = tuple(e for e in self.events if before <= (np.inf if e.step is None else e.step) < edge)
            if edge == np.inf:
                events += tuple(e for e in self.events if e.step is None)
            before = edge
            yield Frame(columns, events, self.branch)


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What is known of a run beside its numbers.

    Args:
        path: the file or folder, as the user named it.
        format: the reader's name, for example `hf-trainer-state`.
        trainer: whose trainer wrote it (`hf`, `lightning`, `megatron`, `keras`, ...), which decides the dialect of advice.
        config: hyper-parameters that the log states, flat, under the log's own names.
        names: signal name -> the log's own name for it; what was guessed is shown to the user.
        members: member id -> module path, role and depth (live runs).
        notes: what the reader wants said (torn tail, lines skipped, steps out of order).
        versions: library versions that the log states.
    """

    path: str
    format: str
    trainer: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    members: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    notes: tuple[Message, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    """One symptom on one signal, as a detector saw it at step `step`.

    A detector opens a finding, may repeat it with a higher severity, and closes it with state `recovered` (back on its
    former trend) or `ended`. `(kind, signal, onset)` is its identity: the three stay the same in all of these.

    Args:
        kind: the symptom, a name of `signals.KINDS`.
        signal: column name.
        onset: step at which it began, in hindsight of at most the detector's own delay.
        step: step at which this was known. Never before `onset`, never from later data.
        severity: `info` (benign or healed), `warning`, `critical` (the run is failing or lost).
        reach: steps within which another finding is the same incident; left at 0 the Watch fills in about 16 rows of the column.
        chronic: a condition without a moment (always flat, always overfitting): an incident of its own.
        value, expected: what was measured and what calm past predicts, for plots and evidence.
        strength: -log10 of its p-value where there is one, else 0.
        facts: what causes may want to know (numbers, indices), JSON-able.
    """

    kind: str
    signal: str
    onset: int
    step: int
    severity: Severity
    message: Message
    state: State = "open"
    reach: int = 0
    chronic: bool = False
    value: float = float("nan")
    expected: float = float("nan")
    strength: float = 0.0
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Surprise:
    """How unusual each point is: `values` = -log10 p under the calm past, with the signal family that it counts for."""

    signal: str
    family: str
    steps: Ints
    values: Floats


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a detector says of one frame."""

    findings: tuple[Finding, ...] = ()
    surprise: tuple[Surprise, ...] = ()


@dataclass(frozen=True, slots=True)
class Moment:
    """One line of an incident's timeline: who moved when."""

    step: int
    signal: str
    message: Message


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A possible cause with what speaks for it. Scores are in [0, 1] and compare only within one incident.

    Args:
        cause: a name of `causes.NAMES`.
        advice: what to change, most local remedy first.
        test: the experiment that would tell it from its rivals.
    """

    cause: str
    score: float
    priority: Priority
    evidence: tuple[Message, ...]
    advice: tuple[Message, ...]
    test: Message | None = None


@dataclass(frozen=True, slots=True)
class Incident:
    """What a person would call one event: findings close in time, who moved first, and the likely causes."""

    id: int
    kind: str
    severity: Severity
    onset_step: int
    detected_step: int
    end_step: int | None
    state: State
    first_signal: str
    timeline: tuple[Moment, ...]
    findings: tuple[Finding, ...]
    branch: int = 0
    causes: tuple[Hypothesis, ...] = ()

    @property
    def recovered(self) -> bool:
        """Whether every symptom went back to its former trend."""
        return self.state == "recovered"


@dataclass(frozen=True, slots=True)
class Action:
    """What a policy decided to do about an incident. Offline it reads "would have"."""

    name: str
    step: int
    incident: int
    params: Mapping[str, Any] = field(default_factory=dict)
    done: bool = False


Record = Event | Finding | Incident | Action
