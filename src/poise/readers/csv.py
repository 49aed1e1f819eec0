"""Tables: comma, semicolon, tab or `|` between cells, of any trainer, with the quirks that such files have.

A block of rows that is nothing but numbers is decoded as one JSON array, which costs about as much as a compiled CSV
parser; what that refuses is decoded by numpy, and what that refuses cell by cell.
"""

from __future__ import annotations

import csv
import re
import warnings
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import orjson

from poise.readers import source
from poise.readers.base import RawColumn, RawRun, Reader, UnreadableError
from poise.readers.columns import Columns, from_text
from poise.readers.table_layout import Layout, layout, unique, writer
from poise.records import Floats, Ints, Message

NAME = "csv"
BLOCK = 1 << 18
_LONGEST_QUOTE = 1 << 22
_RULE = re.compile(r"[\s:+=-]*$")
_MISSING = b"-1.2345678901234567e-300"
"""Stands for an empty cell while a block is a list of numbers."""
_MISSING_VALUE = float(_MISSING)


def sniff(head: bytes, path: Path) -> float:
    """How sure that these lines are a table of numbers."""
    if b"\0" in head[:4096]:
        return 0.0
    text = source.decode(head).replace("\r\n", "\n").replace("\r", "\n")
    found = layout(text if len(head) < 65536 else text[: text.rfind("\n")])
    if found is None:
        return 0.0
    if found.delimiter == " " or found.regular < 0.75 or found.preamble:
        return 0.3
    if writer(found.names)[0] != NAME:
        return 0.9
    return 0.5 if found.headless or found.delimiter == "|" or len(found.names) == 1 else 0.7


def read(path: Path) -> list[RawRun]:
    """Read each row as a record; cells that are no numbers are left out. A W&B export gives one run per run in it."""
    notes: list[Message] = []
    blocks = source.blocks(path, BLOCK, notes)
    first = next(blocks, b"")
    found = layout(source.decode(first[:65536] if len(first) < 65536 else first[: first.rfind(b"\n", 0, 65536) + 1]))
    if found is None:
        raise UnreadableError(f"{path} is no table of numbers: no delimiter gives rows of equal width under a header.")
    table = Table(found)
    for block in _whole_quotes(_from_row(first, found.skip), blocks):
        table.add(block)
    columns = table.finish()
    if not columns:
        raise UnreadableError(f"{path} has a header but no row with a number. The run has logged nothing yet.")
    format_, trainer = writer(found.names)
    run = RawRun(str(path), format_, trainer, columns, config=found.config, notes=notes + table.notes())
    return _exported_runs(run) if format_ == "wandb-csv-export" else [run]


def _from_row(first: bytes, skip: int) -> bytes:
    at = 0
    for _ in range(skip):
        at = first.find(b"\n", at) + 1
        if not at:
            return b""
    return first[at:]


def _whole_quotes(first: bytes, blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Join blocks whose cut lies inside a quoted cell."""
    held = first
    for block in blocks:
        if held.count(b'"') % 2 and len(held) < _LONGEST_QUOTE:
            held += block
            continue
        if held:
            yield held
        held = block
    if held:
        yield held


class Table:
    """Collects the rows of a table, block by block."""

    def __init__(self, found: Layout) -> None:
        self._layout = found
        self._names = found.names
        self._columns = Columns()
        self._rows = 0
        self._line = found.skip
        self._ragged: list[int] = []
        self._headers: list[int] = []
        self._torn = 0

    def add(self, block: bytes) -> None:
        """Append the rows of a block of whole lines."""
        plain = _plain(block, self._layout) if block.strip() else b""
        if plain is not None and plain and _rectangular(plain, len(self._names)):
            self._rectangle(plain)
        elif plain != b"":
            self._slow(block)
        self._line += block.count(b"\n")

    def finish(self) -> dict[str, RawColumn]:
        """Return the columns; the table is spent."""
        return self._columns.finish()

    def notes(self) -> list[Message]:
        """What the user should know of the table."""
        said = []
        if self._layout.headless:
            said.append(Message("reading.no-header", {"first": self._names[0], "last": self._names[-1]}))
        if self._headers:
            said.append(Message("reading.header-again", {"line": self._headers[0], "count": len(self._headers)}))
        if self._ragged:
            said.append(Message("reading.ragged", {"count": len(self._ragged), "line": self._ragged[0]}))
        if self._torn:
            said.append(Message("reading.torn-end", {"place": f"line {self._torn}"}))
        return said

    def _rectangle(self, plain: bytes) -> None:
        """Append rows that all have one cell per column, with commas between."""
        width = len(self._names)
        joined = plain.replace(b"\n", b",")
        rows = plain.count(b"\n") + 1
        values = flat_numbers(joined, rows * width)
        if values is not None:
            for i, name in enumerate(self._names):
                self._numbers(name, values[i::width])
            self._rows += rows
            return
        cells = source.decode(joined).split(",")
        if self._names[0] in cells[::width]:
            self._slow(plain + b"\n", ",")  # the header again
            return
        for i, name in enumerate(self._names):
            self._cells(name, cells[i::width])
        self._rows += rows

    def _numbers(self, name: str, column: Floats) -> None:
        empty = column == _MISSING_VALUE
        at = np.flatnonzero(~empty) if empty.any() else None
        self._columns.extend(name, column if at is None else column[at], self._rows, at)

    def _cells(self, name: str, cells: list[str]) -> None:
        values = flat_numbers(",".join(cells).encode("utf-8", "replace"), len(cells))
        if values is not None:
            self._numbers(name, values)
            return
        known = {cell: from_text(cell) for cell in dict.fromkeys(cells)}
        found = [(i, x) for i, cell in enumerate(cells) if (x := known[cell]) is not None]
        self._columns.extend(
            name, np.array([x for _, x in found]), self._rows, np.array([i for i, _ in found], np.int64)
        )

    def _slow(self, block: bytes, delimiter: str = "") -> None:
        """Take a block row by row: quotes, repeated headers, ragged rows."""
        pending: list[list[str]] = []
        whole = block.endswith(b"\n")
        rows = _cells_of_rows(source.decode(block), delimiter or self._layout.delimiter)
        for i, cells in enumerate(rows):
            line = self._line + i + 1
            if not any(cells) or (self._layout.delimiter == "|" and all(map(_RULE.match, cells))):
                continue
            if not whole and i == len(rows) - 1 and len(cells) < len(self._names):
                self._torn = line  # and its last cell may be half a number
                continue
            if self._repeats_header(cells):
                self._headers.append(line)
                self._texts(pending)
                pending = []
                self._names = unique(cells)
                continue
            if len(cells) != len(self._names):
                self._ragged.append(line)
            pending.append(cells)
        self._texts(pending)

    def _repeats_header(self, cells: Sequence[str]) -> bool:
        """Whether a row is the header again, perhaps with columns more or less: all names, some of them known."""
        if cells[0] in self._names[:1] and cells == self._names[: len(cells)]:
            return True
        known = sum(cell in self._names for cell in cells)
        return 2 * known > len(cells) and not any(from_text(cell) is not None for cell in cells)

    def _texts(self, rows: list[list[str]]) -> None:
        """Append rows of cells."""
        width = max(map(len, rows), default=0)
        for k in range(width):
            name = self._names[k] if k < len(self._names) else f"c{k}"
            cells = [row[k] if k < len(row) else "" for row in rows]
            if self._layout.decimal_comma:
                cells = [cell.replace(",", ".") for cell in cells]
            self._cells(name, cells)
        self._rows += len(rows)


def _cells_of_rows(text: str, delimiter: str) -> list[list[str]]:
    """The stripped cells of each row."""
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    if delimiter == " ":
        return [line.split() for line in lines]
    if delimiter == "|":
        lines = [line.strip().removeprefix("|").removesuffix("|") for line in lines]
    if '"' not in text:
        return [[cell.strip() for cell in line.split(delimiter)] for line in lines]
    former = csv.field_size_limit(source.LONGEST_LINE)  # RLlib writes whole histograms into a cell
    try:
        return [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=delimiter, skipinitialspace=True)]
    except csv.Error:
        return [[cell.strip().strip('"') for cell in line.split(delimiter)] for line in lines]
    finally:
        csv.field_size_limit(former)


def _plain(block: bytes, found: Layout) -> bytes | None:
    """The block with commas between its cells and nothing around them; None where that cannot be said of all cells."""
    plain = block[:-1] if block.endswith(b"\n") else block
    if found.delimiter == "|" or (not block.endswith(b"\n") and plain[-1:] not in b"0123456789"):
        return None
    if found.delimiter == " ":
        return b"\n".join(b",".join(line.split()) for line in plain.split(b"\n"))
    if b" " in plain:
        for old, new in ((b" ,", b","), (b", ", b","), (b" \n", b"\n"), (b"\n ", b"\n")):
            old, new = (part.replace(b",", found.delimiter.encode()) for part in (old, new))
            while old in plain:
                plain = plain.replace(old, new)
        plain = plain.strip(b" ")
    if b'"' in plain:
        plain = plain.replace(b'"', b"")
    if found.delimiter != ",":
        if b"," in plain:
            if not found.decimal_comma:
                return None
            plain = plain.replace(b",", b".")
        plain = plain.replace(found.delimiter.encode(), b",")
    return plain


def _rectangular(plain: bytes, width: int) -> bool:
    """Whether each line has exactly `width` cells."""
    data = np.frombuffer(plain + b"\n", np.uint8)
    ends = data == 10
    marks = data[ends | (data == 44)]
    if len(marks) % width:
        return False
    return bool((marks.reshape(-1, width)[:, -1] == 10).all()) and int(ends.sum()) * width == len(marks)


def flat_numbers(joined: bytes, count: int) -> Floats | None:
    """Cells joined by commas as numbers, empty ones as `_MISSING_VALUE`; None if that cannot be said of `count` cells."""
    if b"true" in joined or b"false" in joined:
        return None  # JSON, but no numbers
    values = _by_json(joined, count)
    if values is not None:
        return values
    filled = b"," + joined + b","
    filled = filled.replace(b",,", b"," + _MISSING + b",").replace(b",,", b"," + _MISSING + b",")[1:-1]
    values = _by_json(filled, count)
    return _by_numpy(filled, count) if values is None else values


def _by_json(joined: bytes, count: int) -> Floats | None:
    try:
        values = np.frombuffer(array("d", orjson.loads(b"[" + joined + b"]")))
    except (ValueError, TypeError, OverflowError):
        return None
    return values if len(values) == count else None


def _by_numpy(joined: bytes, count: int) -> Floats | None:
    """What JSON does not take for numbers: nan, inf, +1, .5, 1. and 007."""
    if joined.translate(None, b"0123456789.,+-eEnaifNAIF"):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            values = np.fromstring(joined.decode("ascii"), sep=",")
        except (DeprecationWarning, ValueError):
            return None
    return values if len(values) == count else None


def _exported_runs(run: RawRun) -> list[RawRun]:
    """Split an export of W&B's charts, with columns `run - metric`, into its runs, which share the first column."""
    axes = {name: column for name, column in run.columns.items() if " - " not in name}
    runs: dict[str, RawRun] = {}
    for name, column in run.columns.items():
        owner, dash, metric = name.rpartition(" - ")
        if not dash or metric.endswith(("__MIN", "__MAX")):
            continue
        new = RawRun(run.path, run.format, run.trainer, notes=run.notes, config=run.config)
        runs.setdefault(owner, new).columns[metric] = column
    for one in runs.values():
        rows = np.unique(np.concatenate([column.rows for column in one.columns.values()]))
        one.columns = {**{name: _at_rows(axis, rows) for name, axis in axes.items()}, **one.columns}
    if len(runs) > 1:
        for owner, one in runs.items():
            one.path = f"{run.path}#{owner}"
    return list(runs.values()) or [run]


def _at_rows(column: RawColumn, rows: Ints) -> RawColumn:
    kept = np.isin(column.rows, rows)
    return RawColumn(column.rows[kept], column.values[kept])


READER = Reader(
    NAME, sniff, read, about="CSV of Lightning, Keras, YOLO, RLlib, OpenAI loggers, W&B exports, or any other"
)
