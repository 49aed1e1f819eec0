"""From what was collected of a console text to one `RawRun`."""

from __future__ import annotations

from typing import Any

import numpy as np

from poise.readers.base import RawColumn, RawRun
from poise.readers.console import keys
from poise.readers.console.collect import Collector, Points, last_of_each
from poise.readers.console.failures import Failures, event_data
from poise.readers.steps import BATCH_RANK
from poise.records import Event, Message


def finish(collector: Collector, failures: Failures, loose: dict[str, Any], raw: RawRun) -> RawRun:
    """Fill a run with the columns and events of its text.

    Args:
        loose: settings from `key: value` lines, which may be records as well.
    """
    columns = {name: _ordered(column) for name, column in collector.columns.finish().items()}
    _settle_pending(collector, columns, raw)
    _take_settings(collector, columns, raw)
    _merge_equal_ranks(columns, collector.ranks)
    _add_meter(collector, columns)
    raw.config = {**{k: v for k, v in loose.items() if k not in columns}, **raw.config}
    raw.columns = columns
    if collector.unread:
        raw.notes.append(Message("reading.bad-lines", {"count": len(collector.unread), "line": collector.unread[0]}))
    raw.events = _events(collector, failures)
    return raw


def _ordered(column: RawColumn) -> RawColumn:
    rows, values = last_of_each(column.rows, column.values)
    return RawColumn(rows, values)


def _settle_pending(collector: Collector, columns: dict[str, RawColumn], raw: RawRun) -> None:
    """What was said only once: settings where it came before training, numbers where it came after, or is all there is."""
    start, live = collector.first_loss, set(columns)
    for points in collector.pending.values():
        telling = any(keys.signal_of(name) in ("loss", "eval_loss", "grad_norm") for name, _, _ in points)
        stepped = any(keys.position_rank(name) is not None for name, _, _ in points)
        alone = start is None and telling and stepped
        after = start is not None and int(points[0][1][0]) >= start and telling
        if alone or after or (stepped and _is_kin(points, live)):
            _add_points(points, columns)
        elif start is None or int(points[0][1][0]) < start:
            for name, _, values in points:
                raw.config.setdefault(name, _whole(float(values[-1])))


def _is_kin(points: list[Points], live: set[str]) -> bool:
    """Whether most of what a line says is said by other records too: a record with less or more than usual."""
    metrics = [name for name, _, _ in points if keys.position_rank(name.removesuffix(" total")) is None]
    return 2 * sum(name in live for name in metrics) >= max(1, len(metrics))


def _add_points(points: list[Points], columns: dict[str, RawColumn]) -> None:
    for name, rows, values in points:
        old = columns.get(name)
        if old is not None:
            rows, values = np.concatenate([old.rows, rows]), np.concatenate([old.values, values])
        columns[name] = RawColumn(*last_of_each(rows, values))


def _take_settings(collector: Collector, columns: dict[str, RawColumn], raw: RawRun) -> None:
    """What came only before training is a setting, or a list of layers and devices; so is what one rank said once."""
    start = collector.first_loss
    if start is None:
        return
    for name, column in list(columns.items()):
        if column.rows[-1] < start and keys.signal_of(name) not in ("loss", "eval_loss"):
            if len(column.values) <= 8:
                raw.config.setdefault(name, _whole(float(column.values[-1])))
            del columns[name]
        elif len(column.values) == 1 and "@rank" in name:
            del columns[name]


def _whole(value: float) -> float | int:
    return int(value) if np.isfinite(value) and value == int(value) and abs(value) < 2**53 else value


def _merge_equal_ranks(columns: dict[str, RawColumn], ranks: set[int]) -> None:
    """Ranks that all say the same speak once; a single rank needs no number."""
    groups: dict[str, list[str]] = {}
    for name in columns:
        base, mark, _ = name.rpartition("@rank")
        if mark:
            groups.setdefault(base, []).append(name)
    for base, names in groups.items():
        first = min(names, key=lambda n: int(n.rpartition("@rank")[2]))
        alike = all(np.array_equal(columns[n].values, columns[first].values, equal_nan=True) for n in names)
        if alike and base not in columns:
            columns[base] = columns[first]
            for name in names:
                del columns[name]
    if any("@rank" in name for name in columns) and len(ranks) == 1:
        for name in list(columns):
            columns[name.partition("@rank")[0]] = columns.pop(name)


def _add_meter(collector: Collector, columns: dict[str, RawColumn]) -> None:
    """Steps from progress bars, where records state none: the bar that goes with most losses is the training's."""
    meter = collector.meter
    if not meter.rows or any(_counts(name, column) for name, column in columns.items()):
        return
    losses = next((set(c.rows.tolist()) for n, c in columns.items() if keys.signal_of(n) == "loss"), set())
    found = meter.steps(losses)
    if found is not None:
        column, total = found
        columns["step"] = _ordered(column)
        columns["step total"] = RawColumn(columns["step"].rows, np.full(len(columns["step"].rows), total))


def _counts(name: str, column: RawColumn) -> bool:
    """Whether a column can be the steps: steps, batches, or epochs in whole numbers; not epochs in small fractions."""
    rank = keys.position_rank(name.partition("@")[0])
    if rank is None or name.endswith(" total"):
        return False
    finite = column.values[np.isfinite(column.values)]
    return rank <= BATCH_RANK or (len(finite) > 1 and bool(np.all(finite == np.rint(finite))))


def _events(collector: Collector, failures: Failures) -> list[Event]:
    """Failures with the step and the record that came last before them; only the axis, chosen later, turns records into steps."""
    if not failures.found:
        return []
    lines = np.concatenate([np.empty(0, np.int64), *(line for line, _, _ in collector.steps_by_line)])
    steps = np.concatenate([np.empty(0), *(step for _, step, _ in collector.steps_by_line)])
    records = np.concatenate([np.empty(0, np.int64), *(rows for _, _, rows in collector.steps_by_line)])
    order = np.argsort(lines, kind="stable")
    lines, steps, records = lines[order], steps[order], records[order]
    events = []
    for failure in failures.found:
        at = int(np.searchsorted(lines, failure.line))
        before, later = steps[:at], steps[at:]
        step = int(before[-1]) if at and np.isfinite(before[-1]) and abs(before[-1]) < 2**62 else None
        survived = (
            bool(len(later))
            and (not at or float(np.nanmax(later)) > float(before[-1]))
            and failure.line < collector.last_data_line
        )
        unsteady = collector.rows.fell and not survived and failure.kind != "overflow" and not len(later)
        data = event_data(failure, survived)
        data |= {"record": int(records[at - 1])} if at else {}
        events.append(Event(failure.kind, None if unsteady else step, data))
    return events
