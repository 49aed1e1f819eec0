"""Which column counts the steps, and what step each record stands at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from poise.readers.words import EVAL, TRAIN, split_name
from poise.records import Floats, Ints, Message

_FILLER = TRAIN | {
    "trainer",
    "current",
    "cur",
    "num",
    "number",
    "idx",
    "index",
    "id",
    "optimizer",
    "optim",
    "state",
    "no",
}
_GLOBAL = frozenset({"step", "steps", "iteration", "iterations", "iter", "iters", "it"})
_BATCH = frozenset({"batch", "batches", "minibatch", "i", "idx"})
_LATER = {"samples": 5, "examples": 5, "tokens": 5, "images": 5, "epoch": 6, "epochs": 6}
_LARGEST = 2.0**62
GLOBAL_RANK = 2
BATCH_RANK = 4
EPOCH_RANK = 6
LEAST_REACH = 0.3  # share of the main series' records with a step of their own, below which rows are counted instead


@dataclass(frozen=True, slots=True)
class Points:
    """One series before it has steps: record numbers and values, possibly with steps of its own or a rank per point."""

    rows: Ints
    values: Floats
    steps: Ints | None = None
    ranks: Ints | None = None


@dataclass(slots=True)
class Axis:
    """The step of each record.

    Args:
        rows: record numbers at which the log states a step, ascending.
        steps: the steps stated there.
        name: the log's own name of the step column; None where rows are counted.
        backward: the log states the step after the numbers of a step, not before.
    """

    rows: Ints
    steps: Ints
    name: str | None = None
    backward: bool = False
    notes: list[Message] = field(default_factory=list)
    _cache: dict[tuple[int, int, int], tuple[Ints, Ints]] = field(default_factory=dict)

    def at(self, rows: Ints) -> Ints:
        """Steps of some records; columns of the same records share one array."""
        key = identity(rows)
        if key not in self._cache:
            self._cache[key] = (rows, self._at(rows))
        return self._cache[key][1]

    def _at(self, rows: Ints) -> Ints:
        if not len(self.rows):
            return rows
        head = self.rows[: len(rows)]
        if identity(head) == identity(rows) or np.array_equal(rows, head):
            return self.steps[: len(rows)]
        after = np.searchsorted(self.rows, rows, side="left" if self.backward else "right")
        where = after if self.backward else after - 1
        return self.steps[np.clip(where, 0, len(self.rows) - 1)]


def step_rank(name: str) -> int | None:
    """How good a name is for the step axis: 0 is best, None is no step at all."""
    split = split_name(name)
    words = split.set - _FILLER
    if not words.isdisjoint(EVAL):
        return None
    if split.has("global", "step") and len(words) == 2:
        return 0
    if (words and words <= _GLOBAL) or split.words == ("s",):
        return 2 if name.startswith("_") else 1
    if words in (
        {"update"},
        {"updates"},
        {"timesteps"},
        {"timesteps", "total"},
        {"training", "iteration"},
        {"steps", "total"},
        {"env", "steps"},
    ):
        return 3
    if words and words <= _BATCH:
        return BATCH_RANK
    core = words - {"consumed", "seen", "total", "processed", "cumulative", "so", "far"}
    return _LATER.get(next(iter(core))) if len(core) == 1 else None


def choose_axis(columns: Mapping[str, Points], main: Ints, demanded: str | None = None) -> Axis:
    """Choose the step column by name and behaviour, seen from the records `main` of the main series.

    A good axis states a step for most of these records (in the record itself or since the one before), and it moves.
    Batch numbers that restart in each epoch are unrolled. Without any axis the main series' points are counted from 0.
    """
    ranked = sorted((rank, i, name) for i, name in enumerate(columns) if (rank := step_rank(name)) is not None)
    ranked = [(0, 0, demanded), *ranked] if demanded else ranked
    best: tuple[float, int, Axis] | None = None
    for rank, _, name in ranked:
        axis = _stated(columns[name], name)
        if axis is None or not _moves(axis, rank):
            continue
        axis.backward = len(main) > 0 and main[0] < axis.rows[0] and axis.rows[-1] >= main[-1]
        axis = _unrolled(axis, columns)
        reached = 1.0 if name == demanded else _reach(axis, main)
        if best is None or reached > max(0.5, 1.5 * best[0]) or (best[0] < 0.5 < reached):
            best = (reached, rank, axis)
        if best[0] >= 0.9:
            break
    if best is not None and best[0] >= LEAST_REACH:
        return best[2] if best[2].name == demanded else _steadier(best[2], ranked, columns, main)
    note = Message("reading.no-steps")
    return Axis(main, np.arange(len(main), dtype=np.int64), None, False, [note])


def _steadier(axis: Axis, ranked: list[tuple[int, int, str]], columns: Mapping[str, Points], main: Ints) -> Axis:
    """Where the axis goes back, another global one that never does and is stated as often: the log then numbers through."""
    if not np.any(np.diff(axis.steps) < 0):
        return axis
    for rank, _, name in ranked:
        other = _stated(columns[name], name) if rank <= GLOBAL_RANK and name != axis.name else None
        if (
            other is not None
            and _moves(other, rank)
            and not np.any(np.diff(other.steps) < 0)
            and _reach(other, main) >= 0.9
        ):
            return other
    return axis


def _stated(points: Points, name: str) -> Axis | None:
    """The column as an axis: what is not a number is passed over, fractions are cut off."""
    rows, values = points.rows, points.values
    fine = np.isfinite(values) & (np.abs(values) < _LARGEST)
    if not fine.all():
        rows, values = rows[fine], values[fine]
    return Axis(rows, values.astype(np.int64), name) if len(values) else None


def _moves(axis: Axis, rank: int) -> bool:
    """Whether it counts: not a constant (a plan), no epochs in small fractions."""
    if len(axis.steps) < 3:
        return True
    first, last = int(np.min(axis.steps)), int(np.max(axis.steps))
    tied = rank == EPOCH_RANK and (last - first + 1) * 2 < len(axis.steps)
    return bool(last > first and not tied)


def _reach(axis: Axis, main: Ints) -> float:
    """Share of the main series' records that have a stated step of their own."""
    if not len(main):
        return 1.0
    main = np.unique(main)  # ranks that write one record share it
    where = np.searchsorted(axis.rows, main, side="left" if axis.backward else "right")
    return float((1 + np.count_nonzero(np.diff(where))) / len(main))


def _unrolled(axis: Axis, columns: Mapping[str, Points]) -> Axis:
    """Batch i of epoch e as a global step, where the numbers restart whenever the epoch goes up."""
    falls = np.flatnonzero(axis.steps[1:] < axis.steps[:-1]) + 1
    if not len(falls):
        return axis
    epoch_name = next(
        (n for n in columns if split_name(n).set - TRAIN - {"num", "current", "cur"} in ({"epoch"}, {"epochs"})), None
    )
    if epoch_name is None or epoch_name == axis.name:
        return axis
    epochs = _epochs_at(columns[epoch_name], axis)
    risen = epochs[falls] > epochs[falls - 1]
    if np.count_nonzero(risen) < 0.8 * len(falls):
        return axis
    per_epoch = _per_epoch(axis, epochs, falls, columns)
    start = epochs - (1 if epochs.min() >= 1 else 0)
    steps = axis.steps + start * per_epoch
    note = Message("reading.unrolled", {"name": axis.name, "epoch": epoch_name, "per_epoch": per_epoch})
    return Axis(axis.rows, steps, axis.name, axis.backward, [*axis.notes, note])


def _epochs_at(points: Points, axis: Axis) -> Ints:
    """Whole epochs at the axis's records."""
    stated = _stated(points, "epoch")
    if stated is None:
        return np.zeros(len(axis.rows), np.int64)
    stated.backward = bool(stated.rows[0] > axis.rows[0])
    return stated.at(axis.rows)


def _per_epoch(axis: Axis, epochs: Ints, falls: Ints, columns: Mapping[str, Points]) -> int:
    """Steps per epoch: a constant that the log states, else by the largest batch number and the usual stride."""
    most = int(axis.steps.max())
    stride = int(np.median(np.diff(axis.steps[: falls[0]]))) if falls[0] > 1 else 1
    zero_based = int(axis.steps.min()) == 0
    for name, points in columns.items():
        words = split_name(name).set
        plans = words & (_GLOBAL | _BATCH | {"total", "max", "num", "per", "of"})
        if not plans or name == axis.name or not words & (_GLOBAL | _BATCH):
            continue
        value = float(points.values[0])
        if np.isfinite(value) and most <= value <= most + max(2, 2 * stride) * 8 and np.all(points.values == value):
            return int(value)
    return most + (stride if zero_based else 0) if most else 1


def identity(array: Ints) -> tuple[int, int, int]:
    """Tell arrays of the same memory by address, length and stride; valid while they live."""
    return (int(array.__array_interface__["data"][0]), len(array), int(array.strides[0]))
