"""From what a log says to what Poise judges: names, steps, branches and values made the same for all formats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from poise.readers.assign import Assigned, assign
from poise.readers.base import RawColumn, RawRun, UnreadableError
from poise.readers.branches import Pieces, fold, is_copy, restarts, said_twice
from poise.readers.interleaved import gather, matrix, mean_of_finite, ranks_not_finite
from poise.readers.settings import canonical_config
from poise.readers.steps import Axis, Points, choose_axis
from poise.readers.values import convert, is_placeholder, resolution
from poise.readers.words import split_name
from poise.records import Column, Event, Frame, Ints, Message, RunInfo
from poise.signals import signal_of

_MAIN = (
    "loss",
    "discriminator_loss",
    "generator_loss",
    "reward",
    "eval_loss",
    "accuracy",
    "eval_accuracy",
    "policy_loss",
    "grad_norm",
)
_SHOWN = 6  # names listed in a note


@dataclass(frozen=True, slots=True)
class Run:
    """One run, ready for the Watch.

    Args:
        frames: one per branch, all columns; steps never decrease inside.
        points: points of the main series and of the validation loss beside it, over all branches.
        main: the column judged as the main series, None if the log has none.
        not_named: the log's names that say nothing to us; they are under `other/`.
    """

    info: RunInfo
    frames: tuple[Frame, ...]
    points: int
    main: str | None
    not_named: tuple[str, ...]


@dataclass(slots=True)
class _Notes:
    """What has to be told of the reading, each kind once."""

    said: list[Message] = field(default_factory=list)

    def add(self, what: str, **params: Any) -> None:
        self.said.append(Message(f"reading.{what}", params))


@np.errstate(all="ignore")
def normalise(raw: RawRun, mapping: Mapping[str, str] | None = None) -> Run:
    """Turn a parsed log into frames of named signals.

    Args:
        raw: what a reader found.
        mapping: signal (or `step`) -> the log's name, as the user demands; wins over every guess.

    Raises:
        UnreadableError: the mapping names a signal or a column that does not exist, or a column is malformed.
    """
    notes = _Notes(list(raw.notes))
    columns = gather({name: _checked(raw, name, column) for name, column in raw.columns.items() if len(column.values)})
    decided = assign({name: p.values for name, p in columns.items()}, mapping or {})
    columns = _without_placeholders(columns, decided, notes)
    main = _main_of(columns, decided)
    axis = choose_axis(
        {n: p for n, p in columns.items() if p.steps is None and decided[n].meaning.rank >= 0},
        _main_rows(columns, main),
        _demanded_step(columns, mapping),
    )
    notes.said += [n for n in axis.notes if any(p.steps is None for p in columns.values())]
    config = canonical_config({**_plans(columns, axis), **raw.config})
    columns = {n: p for n, p in columns.items() if n != axis.name}
    frames = _frames(columns, decided, axis, main, notes)
    frames = _with_events(_without_copies(frames, notes), [_placed(event, axis) for event in raw.events])
    signal = decided[main].column if main else None
    points = (
        sum(len(f.columns[name]) for f in frames for name in {signal, "eval_loss"} if name in f.columns)
        if signal
        else 0
    )
    config = _with_stride(config, frames, signal)
    names = {decided[n].column: n for n in columns if not decided[n].column.startswith("other/")}
    not_named = tuple(n for n in columns if not decided[n].known)
    info = RunInfo(raw.path, raw.format, raw.trainer, config, names, {}, tuple(notes.said), dict(raw.versions))
    return Run(info, frames, points, signal, not_named)


def _checked(raw: RawRun, name: str, column: RawColumn) -> Points:
    """The column with rows in order. Raises if its arrays do not belong together."""
    rows, values, steps = (column.rows, np.asarray(column.values, np.float64), column.steps)
    if values.ndim != 1 or len(rows) != len(values) or (steps is not None and len(steps) != len(values)):
        raise UnreadableError(
            f"{raw.path}: column {name!r} has {len(rows)} record numbers for {values.shape} values. Please report this file's format."
        )
    if len(rows) > 1 and np.any(rows[1:] < rows[:-1]):
        order = np.argsort(rows, kind="stable")
        rows, values, steps = (rows[order], values[order], None if steps is None else steps[order])
    return Points(rows, values, steps)


def _without_placeholders(
    columns: Mapping[str, Points], decided: Mapping[str, Assigned], notes: _Notes
) -> dict[str, Points]:
    gone = [n for n, p in columns.items() if is_placeholder(decided[n].column, p.values)]
    for name in gone:
        notes.add("placeholder", name=name, value=float(columns[name].values[0]), count=len(columns[name].values))
    return {n: p for n, p in columns.items() if n not in gone}


def _main_of(columns: Mapping[str, Points], decided: Mapping[str, Assigned]) -> str | None:
    """The log's name of the main series: the training loss, its first part, or the best that can be judged instead."""
    by_column = {decided[n].column: n for n in columns}
    for signal in _MAIN:
        if signal in by_column:
            return by_column[signal]
        parts = [n for column, n in by_column.items() if column.startswith(signal + "/")]
        if parts:
            return min(parts, key=list(columns).index)
    judged = [n for n in columns if signal_of(decided[n].column).bad != "none"]
    return max(judged, key=lambda n: len(columns[n].values), default=None)


def _main_rows(columns: Mapping[str, Points], main: str | None) -> Ints:
    if main is not None:
        return columns[main].rows
    return max((p.rows for p in columns.values()), key=len, default=np.empty(0, np.int64))


def _demanded_step(columns: Mapping[str, Points], mapping: Mapping[str, str] | None) -> str | None:
    text = (mapping or {}).get("step")
    return next((n for n in columns if text and n.strip().lower() == text.strip().lower()), None)


def _plans(columns: Mapping[str, Points], axis: Axis) -> dict[str, Any]:
    """The planned number of steps, where a constant column states it."""
    for name, points in columns.items():
        words = split_name(name).set
        if (
            words & {"total", "max"}
            and words & {"step", "steps", "iters", "iterations", "iter"}
            and name != axis.name
            and words <= {"total", "max", "step", "steps", "iters", "iterations", "iter", "train", "num"}
        ):
            first = float(points.values[0])
            if np.isfinite(first) and 0 < first < 2.0**53 and np.all(points.values == first):
                return {"max_steps": int(first)}
    return {}


def _with_stride(config: dict[str, Any], frames: tuple[Frame, ...], signal: str | None) -> dict[str, Any]:
    """Add `logging_steps` where the main series is logged at one stride."""
    if "logging_steps" in config or not frames or signal is None or signal not in frames[0].columns:
        return config
    steps = frames[0].columns[signal].steps[:4096]
    gaps = steps[1:] - steps[:-1]
    gaps = gaps[gaps > 0]
    usual = int(np.median(gaps)) if len(gaps) > 2 else 0
    return {**config, "logging_steps": usual} if usual and np.mean(gaps == usual) > 0.8 else config


def _frames(
    columns: Mapping[str, Points], decided: Mapping[str, Assigned], axis: Axis, main: str | None, notes: _Notes
) -> tuple[Frame, ...]:
    breaks = _breaks(columns, axis, main)
    pieces = Pieces(breaks)
    branches: list[dict[str, Column]] = [{} for _ in range(len(breaks) + 1)]
    twice = _is_twice(columns, axis, main)
    folded = 0
    for name, points in columns.items():
        own = _own_breaks(points, breaks)
        cutter = pieces if own is breaks else Pieces(own)
        for branch, made in _column_pieces(points, decided[name], axis, cutter):
            for column_name, column in made.items():
                if twice and said_twice(column.steps, column.values):
                    column, dropped = fold(column)
                    folded = max(folded, dropped)
                branches[branch][column_name] = column
        pieces.disorder = max(pieces.disorder, cutter.disorder)
        _note_ranks(name, points, notes)
        _note_conversion(name, decided[name], notes)
    if pieces.disorder:
        notes.add("step-order", count=pieces.disorder)
    if folded:
        notes.add("said-twice", count=folded)
    if len(breaks):
        notes.add("restarts", count=len(breaks), steps=", ".join(_first_steps(branches[1:])))
    return tuple(Frame(made, (), branch) for branch, made in enumerate(branches) if made)


def _breaks(columns: Mapping[str, Points], axis: Axis, main: str | None) -> Ints:
    """Record numbers at which branches begin."""
    if main is not None and (own := columns[main].steps) is not None:
        return columns[main].rows[restarts(own)]
    if not len(axis.steps):
        return np.empty(0, np.int64)
    return axis.rows[restarts(axis.steps)]


def _own_breaks(points: Points, breaks: Ints) -> Ints:
    """For series with steps of their own: where they restart, if they do so as often as the main series."""
    if points.steps is None or not len(breaks):
        return breaks
    own = points.rows[restarts(points.steps)]
    return own if len(own) == len(breaks) else breaks


def _is_twice(columns: Mapping[str, Points], axis: Axis, main: str | None) -> bool:
    if main is None or columns[main].ranks is not None:
        return False
    points = columns[main]
    return said_twice(axis.at(points.rows) if points.steps is None else points.steps, points.values)


def _column_pieces(
    points: Points, assigned: Assigned, axis: Axis, pieces: Pieces
) -> Iterable[tuple[int, dict[str, Column]]]:
    values = convert(points.values, assigned.meaning)
    steps = axis.at(points.rows) if points.steps is None else points.steps
    digits = resolution(values) if not assigned.column.startswith(("time", "epoch")) else 0.0
    for branch, (where, ordered, order) in enumerate(pieces.cut(points.rows, steps)):
        if not len(ordered):
            continue
        piece = values[where] if order is None else values[where][order]
        if points.ranks is None:
            yield branch, {assigned.column: Column(ordered, piece, digits)}
            continue
        ranks = points.ranks[where] if order is None else points.ranks[where][order]
        table = matrix(ordered, piece, ranks, np.unique(points.ranks))
        yield (branch, {assigned.column: mean_of_finite(table), f"{assigned.column}/ranks": table})


def _note_ranks(name: str, points: Points, notes: _Notes) -> None:
    if points.ranks is None:
        return
    bad = ranks_not_finite(points.values, points.ranks)
    notes.add("ranks", name=name, count=len(np.unique(points.ranks)))
    if bad:
        notes.add("ranks-not-finite", name=name, ranks=", ".join(map(str, bad[:_SHOWN])), count=len(bad))


def _note_conversion(name: str, assigned: Assigned, notes: _Notes) -> None:
    kind = assigned.meaning.convert
    if kind in ("sqrt", "negate", "log") and not assigned.column.startswith("other/"):
        notes.add(f"converted-{kind}", name=name, signal=assigned.column)


def _first_steps(branches: list[dict[str, Column]]) -> list[str]:
    firsts = [min((int(c.steps[0]) for c in made.values()), default=0) for made in branches]
    return [*map(str, firsts[:_SHOWN]), *(["..."] if len(firsts) > _SHOWN else [])]


def _without_copies(frames: tuple[Frame, ...], notes: _Notes) -> tuple[Frame, ...]:
    kept: list[Frame] = []
    for frame in frames:
        if kept and is_copy(frame, kept[-1]):
            notes.add("copy", count=max(map(len, frame.columns.values())))
        else:
            kept.append(Frame(frame.columns, (), len(kept)))
    return tuple(kept)


def _placed(event: Event, axis: Axis) -> Event:
    """An event that knows its record, at the axis' step of it: what the record states may be epochs or batches."""
    record = event.data.get("record")
    if record is None:
        return event
    data = {key: value for key, value in event.data.items() if key != "record"}
    step = None if event.step is None else int(axis.at(np.array([record], np.int64))[0])
    return replace(event, step=step, data=data)


def _with_events(frames: tuple[Frame, ...], events: Iterable[Event]) -> tuple[Frame, ...]:
    """Give each event to the first branch that reaches its step; those without a step belong to the end."""
    if not frames:
        return ()
    lists: list[list[Event]] = [[] for _ in frames]
    for i, frame in enumerate(frames[1:], start=1):
        lists[i].append(Event("restart", min(int(c.steps[0]) for c in frame.columns.values()), {"branch": i}))
    ends = [max(int(c.steps[-1]) for c in f.columns.values()) for f in frames]
    for event in events:
        where = (
            len(frames) - 1
            if event.step is None
            else next((i for i, end in enumerate(ends) if event.step <= end), len(frames) - 1)
        )
        lists[where].append(event)
    ordered = (tuple(sorted(some, key=lambda e: np.inf if e.step is None else e.step)) for some in lists)
    return tuple(Frame(f.columns, some, f.branch) for f, some in zip(frames, ordered, strict=True))
