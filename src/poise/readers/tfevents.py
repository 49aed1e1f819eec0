"""TensorBoard event files, read without TensorFlow: one file, or the several files of one run.

A record of the raw run is a stretch of consecutive events with one step, so that the columns written together share
their record numbers. Values keep the order in which they arrived: steps that go back are a restart.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from poise.readers import crc32c, tfrecord
from poise.readers.base import RawColumn, RawRun, Reader, UnreadableError
from poise.readers.tfevent_settings import Settings
from poise.readers.tfevent_shapes import Shapes, column, steps_of, walls_of
from poise.readers.tfrecord import Damage, Records
from poise.records import Bools, Floats, Ints

NAME = "tfevents"
_CHECKED = 256  # bytes of a record up to which its payload is checked: those with numbers are shorter
_TRAINERS = (("rollout/ep_", "sb3"), ("epoch_loss", "keras"), ("hp_metric", "lightning"), ("lm-loss", "megatron"))


def sniff(head: bytes, path: Path) -> float:
    """How sure that these are records of events: the first length has the right check sum."""
    if tfrecord.is_header(head):
        return 1.0
    return 0.3 if "tfevents" in path.name and b"\0" in head[:64] else 0.0


def read(path: Path) -> list[RawRun]:
    """Read one event file."""
    return join([path])


def join(paths: Sequence[Path]) -> list[RawRun]:
    """Read the event files of one run, in the order of their first wall times.

    Where they lie in different folders (`train/`, `validation/`), the folder goes before the tag.
    """
    every = [_File(path, prefix) for path, prefix in _with_prefixes(paths)]
    files = every if len(every) == 1 else sorted(every, key=lambda file: (file.began(), str(file.path)))
    run = RawRun(str(paths[0] if len(paths) == 1 else os.path.commonpath([p.parent for p in paths])), NAME)
    points = _Points()
    for file in files:
        file.read(points, run)
    run.columns = points.finish()
    if not run.columns:
        raise UnreadableError(f"{run.path} holds no scalars. Log some, or name the run's other event file.")
    run.trainer = run.trainer or next((who for key, who in _TRAINERS if any(key in tag for tag in run.columns)), None)
    return [run]


def _with_prefixes(paths: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    folders = {path.parent for path in paths}
    base = Path(os.path.commonpath(list(folders)))
    for path in paths:
        inner = path.parent.relative_to(base).as_posix()
        yield path, f"{inner}/" if len(folders) > 1 and inner != "." else ""


@dataclass(slots=True)
class _File:
    """One event file."""

    path: Path
    prefix: str

    def began(self) -> float:
        """The wall time of its first event."""
        for records in tfrecord.walk(self.path, Damage(), []):
            for at, length in zip(records.starts[:1].tolist(), records.lengths[:1].tolist(), strict=True):
                table = np.frombuffer(records.data[at : at + length].ljust(9, b"\0"), np.uint8)
                return float(column(table[None, :], (1, "<f8"))[0]) if table[0] == 9 else 0.0
        return 0.0

    def read(self, points: _Points, run: RawRun) -> None:
        """Append its numbers to `points`; settings and notes to `run`."""
        damage, settings = Damage(), Settings(run.config)
        shapes = Shapes(settings.take)
        for records in tfrecord.walk(self.path, damage, run.notes):
            events = _decode(records, shapes, damage)
            points.add(events, [self.prefix + tag for tag in shapes.tags])
        points.end_file()
        run.notes += damage.notes()
        run.trainer = run.trainer or settings.trainer


@dataclass(slots=True)
class _Events:
    """The numbers of some records, as parallel arrays in no order.

    Args:
        steps, walls, is_scalar: (n,) for each record.
        records, tags, values: for each number its record, tag number and value.
    """

    steps: Ints
    walls: Floats
    is_scalar: Bools
    records: Ints
    tags: Ints
    values: Floats


def _decode(records: Records, shapes: Shapes, damage: Damage) -> _Events:
    """Read the numbers of a buffer's records."""
    n = len(records.starts)
    steps, walls, is_scalar = np.zeros(n, np.int64), np.full(n, np.nan), np.zeros(n, bool)
    parts: list[tuple[Ints, Ints, Floats]] = []
    buffer = np.frombuffer(records.data + bytes(16), np.uint8)
    for group in tfrecord.by_length(records.lengths):
        length = int(records.lengths[group[0]])
        width = (length + 11) // 8 * 8
        window = np.lib.stride_tricks.sliding_window_view(_reaching(buffer, width), width)
        table = window[records.starts[group]]
        table, group = _undamaged(table, group, length, records, damage)
        for alike in shapes.sort(table, length):
            rows, where = table[alike.rows], group[alike.rows]
            steps[where], walls[where] = steps_of(rows, alike.layout), walls_of(rows, alike.layout)
            is_scalar[where] = True
            parts += [(where, tags, column(rows, p)) for p, tags in zip(alike.layout.places, alike.tags, strict=True)]
    if not parts:
        return _Events(steps, walls, is_scalar, np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    return _Events(steps, walls, is_scalar, *map(np.concatenate, zip(*parts, strict=True)))


def _reaching(buffer: Any, width: int) -> Any:
    return buffer if width <= len(buffer) else np.concatenate([buffer, np.zeros(width, np.uint8)])


def _undamaged(table: Any, group: Ints, length: int, records: Records, damage: Damage) -> tuple[Any, Ints]:
    """The records whose payload has the right check sum; long ones hold no numbers and are taken as they are."""
    if length > _CHECKED:
        return table, group
    stored = np.ascontiguousarray(table[:, length : length + 4]).view("<u4")[:, 0]
    good = stored == crc32c.masked_rows(table, length)
    if good.all():
        return table, group
    for place in records.starts[group[~good]].tolist():
        damage.at(records.offset + place)
    return table[good], group[good]


@dataclass(slots=True)
class _Series:
    rows: list[Ints] = field(default_factory=list)
    steps: list[Ints] = field(default_factory=list)
    values: list[Floats] = field(default_factory=list)


@dataclass(slots=True)
class _Points:
    """The columns while files are being read."""

    series: dict[str, _Series] = field(default_factory=dict)
    clock: _Series = field(default_factory=_Series)
    row: int = -1
    last_step: int | None = None

    def add(self, events: _Events, tags: Sequence[str]) -> None:
        """Append the numbers of a buffer's records."""
        if not len(events.records):
            return
        rows, begins = self._rows(events)
        self._append(self.clock, rows[begins], events.steps[begins], events.walls[begins])
        order = np.lexsort((events.records, events.tags))
        edges = np.flatnonzero(np.diff(events.tags[order])) + 1
        groups = sorted(np.split(order, edges), key=lambda where: (int(events.records[where[0]]), int(where[0])))
        before: tuple[Ints, Ints, Ints] | None = None
        for where in groups:
            places = events.records[where]
            own = rows[places]
            if before is None or not np.array_equal(before[0], own):
                before = (own, own, events.steps[places])
            series = self.series.setdefault(tags[int(events.tags[where[0]])], _Series())
            self._append(series, before[1], before[2], events.values[where])

    def end_file(self) -> None:
        """The next event begins a record of its own."""
        self.last_step = None

    def _rows(self, events: _Events) -> tuple[Ints, Ints]:
        """Record numbers of all events, and which scalar events begin one."""
        scalars = np.flatnonzero(events.is_scalar)
        steps = events.steps[scalars]
        new = np.ones(len(steps), bool)
        new[1:] = steps[1:] != steps[:-1]
        new[0] = self.last_step is None or int(steps[0]) != self.last_step
        rows = np.zeros(len(events.steps), np.int64)
        rows[scalars] = self.row + np.cumsum(new)
        self.row, self.last_step = int(rows[scalars[-1]]), int(steps[-1])
        return rows, scalars[new]

    @staticmethod
    def _append(series: _Series, rows: Ints, steps: Ints, values: Floats) -> None:
        series.rows.append(rows)
        series.steps.append(steps)
        series.values.append(values)

    def finish(self) -> dict[str, RawColumn]:
        """The columns in order of first appearance, the wall time of each record last. The object is spent."""
        if self.series and self.clock.rows and any(np.isfinite(walls).any() for walls in self.clock.values):
            self.series.setdefault("wall_time", self.clock)
        stepless = self.row <= 0 and any(sum(map(len, s.rows)) > 1 for s in self.series.values())
        columns: dict[str, RawColumn] = {}
        shared: dict[tuple[int, ...], tuple[Ints, Ints]] = {}
        for name, series in self.series.items():
            values = _joined(series.values)
            if stepless:
                columns[name] = RawColumn(np.arange(len(values), dtype=np.int64), values)
                continue
            rows, steps = _joined(series.rows), _joined(series.steps)
            key = (len(rows), int(rows[0]), int(rows[-1]))
            peer = shared.setdefault(key, (rows, steps))
            if peer[0] is not rows and np.array_equal(peer[0], rows) and np.array_equal(peer[1], steps):
                rows, steps = peer
            columns[name] = RawColumn(rows, values, steps)
        return columns


def _joined(parts: list[Any]) -> Any:
    whole = parts[0] if len(parts) == 1 else np.concatenate(parts)
    parts.clear()
    return whole


READER = Reader(NAME, sniff, read, "TensorBoard event files, scalar and tensor form", join=join)
