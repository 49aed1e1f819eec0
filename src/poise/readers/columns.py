"""Growing columns: what readers collect points in, at the memory cost of the points themselves."""

from __future__ import annotations

import re
from array import array

import numpy as np

from poise.readers.base import RawColumn
from poise.records import Floats, Ints

_REPR = re.compile(
    r"(?:np\.|numpy\.|torch\.|tf\.)?(?:tensor|Tensor|array|float\d*|int\d*)\(\s*\[?([^\s,\]()\[]+)\]?\s*[,)]"
)
"""A scalar as its library prints it."""


class Columns:
    """The columns of one run while its file is being read; points are appended in row order, block by block.

    A column without gaps since row 0 stores no row numbers, and columns with equal rows share one array in the end.
    """

    def __init__(self) -> None:
        self._values: dict[str, array[float]] = {}
        self._rows: dict[str, array[int] | None] = {}

    def __len__(self) -> int:
        return len(self._values)

    def extend(self, name: str, values: Floats, first: int, rows: Ints | None = None) -> None:
        """Append points to a column.

        Args:
            values: (n,) the points.
            first: row number of the block's first record.
            rows: (n,) their places in the block, ascending; None where every record has one.
        """
        if not len(values):
            return
        known = self._values.get(name)
        if known is None:
            known = self._values[name] = array("d")
            self._rows[name] = None
        dense = self._rows[name]
        if dense is None and not (rows is None and first == len(known)):
            dense = self._rows[name] = array("q", range(len(known)))
        if dense is not None:
            places = np.arange(first, first + len(values)) if rows is None else rows + first
            dense.frombytes(np.ascontiguousarray(places, np.int64).tobytes())
        known.frombytes(np.ascontiguousarray(values, np.float64).tobytes())

    def finish(self) -> dict[str, RawColumn]:
        """Return the columns in order of first appearance. The object is spent."""
        dense: dict[int, Ints] = {}
        shared: dict[tuple[int, int, int], list[Ints]] = {}
        columns = {}
        for name, values in self._values.items():
            rows, count = self._rows.pop(name), len(values)
            if rows is not None:
                places = _share(np.frombuffer(rows, np.int64), shared)
            elif count in dense:
                places = dense[count]
            else:
                places = dense[count] = np.arange(count, dtype=np.int64)
            columns[name] = RawColumn(places, np.frombuffer(values, np.float64))
        return columns


def _share(rows: Ints, shared: dict[tuple[int, int, int], list[Ints]]) -> Ints:
    """The same row numbers as an array that exists already, if one does."""
    peers = shared.setdefault((len(rows), int(rows[0]), int(rows[-1])), [])
    for peer in peers:
        if np.array_equal(peer, rows):
            return peer
    peers.append(rows)
    return rows


def number(value: object) -> float | None:
    """A cell as a float: numbers but not booleans, and texts that are wholly a number ("0.5", "NaN", "-inf")."""
    kind = type(value)
    if kind is float:
        return value  # type: ignore[return-value]
    if kind is int:
        try:
            return float(value)  # type: ignore[arg-type]
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")  # type: ignore[operator]
    if kind is str:
        return from_text(value)  # type: ignore[arg-type]
    return None


def from_text(text: str) -> float | None:
    """A text that is wholly a number as a float, else None: also `12.5%` as 12.5, and `tensor(0.5, device=...)` as 0.5."""
    if len(text) > 100 or "_" in text:
        return None
    try:
        return float(text)
    except ValueError:
        pass
    if text[-1:] == "%":
        bare = text[:-1]
    elif text[-1:] == ")" and (found := _REPR.match(text)):
        bare = found[1]
    else:
        return None
    try:
        return float(bare)
    except ValueError:
        return None
