"""From JSON objects to columns."""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from poise.readers.base import RawColumn
from poise.readers.columns import Columns, number
from poise.records import Floats, Ints

Rows = Sequence[dict[str, Any]]

DEEPEST = 8
WIDEST_LIST = 8
_WORDS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_CONFIG = re.compile(r"(^|_)(args|argv|arguments|config|cfg|hparams|hyper_?param(eter)?s?|settings)$", re.IGNORECASE)
_COURSE = re.compile(r"(^|[/_.])(step|steps|iter|iteration|epoch|loss|reward)s?$", re.IGNORECASE)


class RowTable:
    """Collects objects, one record each, as columns; null means absent, text that is no number is left out.

    Args:
        nested: whether objects inside objects become columns `outer/inner`; otherwise they are left out.
    """

    def __init__(self, nested: bool = True) -> None:
        self.columns = Columns()
        self.config: dict[str, Any] = {}
        self.total = 0
        self.bad = 0
        self._nested = nested
        self._parts: dict[str, list[tuple[Floats, Ints | None]]] = {}

    def add(self, items: Sequence[Any]) -> None:
        """Append one record per item; what is no object takes a record's place and is counted in `bad`."""
        if not items:
            return
        rows, index = items, None
        if set(map(type, items)) != {dict}:
            kept = [i for i, item in enumerate(items) if type(item) is dict]
            self.bad += len(items) - len(kept)
            rows, index = [items[i] for i in kept], np.array(kept, np.int64)
        if not self.total and rows and self._is_header(rows):
            merge_config(self.config, rows[0])
            rows, index = rows[1:], np.arange(1, len(rows)) if index is None else index[1:]
        self._group(rows, index, "", 0)
        self._flush()
        self.total += len(items)

    def add_columns(self, series: Mapping[str, list[Any]]) -> None:
        """Append records that are given column by column; the shorter columns lack the last ones."""
        for name, cells in series.items():
            self._column(name, cells, None, 0)
        self._flush()
        self.total += max(map(len, series.values()), default=0)

    def finish(self) -> dict[str, RawColumn]:
        """Return the columns; the table is spent."""
        return self.columns.finish()

    def _group(self, rows: Rows, index: Ints | None, prefix: str, depth: int) -> None:
        """Take apart records that may differ in their keys."""
        if not rows:
            return
        if len(rows) == 1 or self._same_keys(rows):
            self._uniform(rows, index, prefix, depth)
            return
        groups: dict[tuple[str, ...], list[int]] = {}
        for i, row in enumerate(rows):
            groups.setdefault(tuple(row), []).append(i)
        for places in groups.values():
            chosen = np.array(places, np.int64)
            at = chosen if index is None else index[chosen]
            self._uniform([rows[i] for i in places], at, prefix, depth)

    def _same_keys(self, rows: Rows) -> bool:
        keys, width = tuple(rows[0]), len(rows[0])
        if not keys or list(map(len, rows)).count(width) != len(rows) or rows[-1].keys() != rows[0].keys():
            return False
        return all(map(set(keys).issuperset, rows)) if len(rows) < 64 else self._has_all(rows, keys)

    def _has_all(self, rows: Rows, keys: tuple[str, ...]) -> bool:
        try:
            for key in keys:
                for _ in map(itemgetter(key), rows):
                    pass
        except KeyError:
            return False
        return True

    def _uniform(self, rows: Rows, index: Ints | None, prefix: str, depth: int) -> None:
        for key in rows[0]:
            self._column(prefix + key, list(map(itemgetter(key), rows)), index, depth)

    def _column(self, name: str, cells: list[Any], index: Ints | None, depth: int) -> None:
        values = _floats(cells)
        if values is None:
            self._mixed(name, cells, index, depth)
            return
        maybe = np.flatnonzero((values == 0) | (values == 1))  # the values that a boolean can have
        if maybe.size and any(type(cells[i]) is bool for i in maybe.tolist()):
            self._mixed(name, cells, index, depth)
            return
        self._parts.setdefault(name, []).append((values, index))

    def _mixed(self, name: str, cells: list[Any], index: Ints | None, depth: int) -> None:
        """A column with gaps, texts, objects or lists in it."""
        kinds = set(map(type, cells))
        if kinds & {dict, list} and self._nested and depth < DEEPEST:
            self._inner(name, cells, index, depth)
        if not kinds & {float, int, str}:
            return
        found = [(i, x) for i, cell in enumerate(cells) if (x := number(cell)) is not None]
        if not found:
            return
        places = np.array([i for i, _ in found], np.int64)
        at = places if index is None else index[places]
        self._parts.setdefault(name, []).append((np.array([x for _, x in found]), at))

    def _inner(self, name: str, cells: list[Any], index: Ints | None, depth: int) -> None:
        inner: list[dict[str, Any]] = []
        places = []
        for i, cell in enumerate(cells):
            if type(cell) is list and 0 < len(cell) <= WIDEST_LIST:
                cell = {str(k): item for k, item in enumerate(cell)}
            if type(cell) is dict and cell and "_type" not in cell:  # W&B's pictures and histograms are no numbers
                inner.append(cell)
                places.append(i)
        if _CONFIG.search(name):
            for row in inner[:1]:
                merge_config(self.config, row)
            return
        chosen = np.array(places, np.int64)
        self._group(inner, chosen if index is None else index[chosen], name + "/", depth + 1)

    def _flush(self) -> None:
        """Append the block's points in row order."""
        for name, parts in self._parts.items():
            if len(parts) == 1:
                self.columns.extend(name, parts[0][0], self.total, parts[0][1])
                continue
            values = np.concatenate([v for v, _ in parts])
            rows = np.concatenate([np.arange(len(v)) if at is None else at for v, at in parts])
            order = np.argsort(rows, kind="stable")
            self.columns.extend(name, values[order], self.total, rows[order])
        self._parts.clear()

    def _is_header(self, rows: Rows) -> bool:
        """Whether the first record states settings: it holds a `config` or shares no key with the next."""
        first = rows[0]
        if any(_COURSE.search(key) and number(value) is not None for key, value in first.items()):
            return False
        if any(_CONFIG.search(key) and value for key, value in first.items()):
            return True
        kind = first.get("type", first.get("event"))
        if isinstance(kind, str) and _CONFIG.search(kind):
            return True
        return len(rows) > 1 and not (first.keys() & rows[1].keys()) and any(map(_COURSE.search, rows[1]))


def _floats(cells: list[Any]) -> Floats | None:
    """Cells that are all numbers, or the words for NaN and infinity, as an array; booleans pass for numbers here."""
    try:
        return np.frombuffer(array("d", cells))
    except (TypeError, OverflowError):
        pass
    try:
        return np.frombuffer(array("d", list(map(_WORDS.get, cells, cells))))
    except (TypeError, OverflowError):
        return None


def merge_config(config: dict[str, Any], settings: Mapping[str, Any], prefix: str = "", depth: int = 0) -> None:
    """Add settings to a flat configuration: `optimizer.lr` for nested ones, no prefix for a `config` or `args`."""
    for key, value in settings.items():
        if isinstance(value, dict):
            inner = prefix if _CONFIG.search(key) else f"{prefix}{key}."
            if depth < DEEPEST:
                merge_config(config, value, inner, depth + 1)
        elif isinstance(value, (bool, int, float)) or (isinstance(value, str) and len(value) <= 200):
            config[prefix + key] = value
