"""From event records to numbers: a slow parser that says where the numbers stand, applied to many records at once.

Records of one length whose bytes agree everywhere but in the wall time, the step and the values are read as one table.
What has no such positions (numbers of variable width, several formats of one length) is taken one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from poise.readers import protobuf
from poise.readers.protobuf import BYTES, FOUR_BYTES, MalformedError, fields, signed, varint
from poise.records import Floats, Ints

Bytes = NDArray[np.uint8]
Place = tuple[int, str]
"""Where a number stands in its record, and its type: a numpy type, `bf16`, or `=` and the number itself."""

_TYPES = {1: "<f4", 2: "<f8", 3: "<i4", 4: "|u1", 5: "<i2", 6: "|i1", 9: "<i8", 10: "|u1", 14: "bf16", 17: "<u2"}
_TYPES |= {19: "<f2", 22: "<u4", 23: "<u8"}
_BFLOAT16 = 14
_LISTS = {5: "<f4", 6: "<f8"}  # float_val, double_val
_INTEGERS = {7, 10, 11, 16, 17}  # int_val, int64_val, bool_val, uint32_val, uint64_val
_HALVES = 13  # half_val
_SIZE = {name: 2 if name == "bf16" else np.dtype(name).itemsize for name in _TYPES.values()}


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the numbers stand in the records of a kind; positions count from the record's start, -1 means absent."""

    wall: int
    step: int
    step_size: int
    places: tuple[Place, ...]

    @property
    def fixed_width(self) -> bool:
        """Whether records that agree elsewhere can be read with this layout."""
        return bool(self.places) and not any(kind.startswith("=") for _, kind in self.places)


@dataclass(frozen=True, slots=True)
class Shape:
    """What one event holds: a layout, and a tag for each number."""

    layout: Layout
    tags: tuple[str, ...]


Extra = Callable[[str, bytes, int, int], None]
"""Told of each value that is no number: tag, record, and the span of the Summary.Value message."""


def parse(data: bytes, extra: Extra | None = None) -> Shape:
    """Find the numbers of one event.

    Raises:
        MalformedError: the bytes are no event.
    """
    wall = step = -1
    step_size = 0
    found: list[tuple[str, Place]] = []
    for number, wire, at, stop in fields(data):
        if number == 1 and wire == protobuf.EIGHT_BYTES:
            wall = at
        elif number == 2 and wire == protobuf.VARINT:
            step, step_size = at, stop - at
        elif number == 5 and wire == BYTES:
            for inner, kind, a, b in fields(data, at, stop):
                if inner == 1 and kind == BYTES and (value := _value(data, a, b, extra)):
                    found.append(value)
    return Shape(Layout(wall, step, step_size, tuple(p for _, p in found)), tuple(t for t, _ in found))


def _value(data: bytes, start: int, end: int, extra: Extra | None) -> tuple[str, Place] | None:
    """One value of a summary: its tag and place, None where it is no scalar."""
    tag, place = "", None
    for number, wire, at, stop in fields(data, start, end):
        if number == 1 and wire == BYTES:
            tag = protobuf.text(data, at, stop)
        elif number == 2 and wire == FOUR_BYTES:
            place = (at, "<f4")
        elif number == 8 and wire == BYTES:
            place = _tensor(data, at, stop)
    if place is None:
        if extra is not None:
            extra(tag, data, start, end)
        return None
    return tag, place


def _tensor(data: bytes, start: int, end: int) -> Place | None:
    """The number of a tensor with one element, in any of the ways in which it may be stored."""
    dtype, place = 0, None
    for number, wire, at, stop in fields(data, start, end):
        if number == 1 and wire == protobuf.VARINT:
            dtype = varint(data, at, stop)[0]
        elif number == 2 and wire == BYTES and not _is_one(data, at, stop):
            return None
        elif number == 4 and wire == BYTES and dtype in _TYPES:
            place = (at, _TYPES[dtype]) if stop - at == _SIZE[_TYPES[dtype]] else None
        elif number in _LISTS:
            place = (at, _LISTS[number]) if stop - at == _SIZE[_LISTS[number]] else None
        elif number in _INTEGERS or number == _HALVES:
            value, behind = varint(data, at, stop)
            place = (at, f"={_integer(value, dtype, number)!r}") if behind == stop else None
    return place if dtype in _TYPES else None


def _integer(value: int, dtype: int, field_number: int) -> float:
    if field_number == _HALVES:
        bits = np.array([value & 0xFFFF], np.uint16)
        wide = (bits.astype(np.uint32) << 16).view(np.float32)
        return float(wide[0] if dtype == _BFLOAT16 else bits.view(np.float16)[0])
    return float(signed(value))


def _is_one(data: bytes, start: int, end: int) -> bool:
    """Whether a shape has one element: no axes, or axes of size 1."""
    for number, wire, at, stop in fields(data, start, end):
        if number == 2 and wire == BYTES:
            sizes = [varint(data, a, b)[0] for n, w, a, b in fields(data, at, stop) if n == 1 and w == protobuf.VARINT]
            if sizes != [1]:
                return False
        elif number == 3:  # unknown rank
            return False
    return True


@lru_cache(maxsize=4096)
def mask_of(layout: Layout, length: int, width: int) -> NDArray[np.uint64]:
    """(width / 8,) words: the bits in which records of a layout must agree."""
    mask = np.zeros(width, np.uint8)
    mask[:length] = 0xFF
    if layout.wall >= 0:
        mask[layout.wall : layout.wall + 8] = 0
    if layout.step >= 0:
        mask[layout.step : layout.step + layout.step_size] = 0x80
    for at, kind in layout.places:
        mask[at : at + _SIZE[kind]] = 0
    return mask.view(np.uint64)


def column(rows: Bytes, place: Place) -> Floats:
    """(n,) numbers that stand at one place in all rows."""
    at, kind = place
    if kind.startswith("="):
        return np.full(len(rows), float(kind[1:]))
    cells = np.ascontiguousarray(rows[:, at : at + _SIZE[kind]])
    if kind == "bf16":
        return (cells.view("<u2")[:, 0].astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return cells.view(kind)[:, 0].astype(np.float64)


def steps_of(rows: Bytes, layout: Layout) -> Ints:
    """(n,) steps; an absent one is 0, as the format has it."""
    if layout.step < 0:
        return np.zeros(len(rows), np.int64)
    steps = np.zeros(len(rows), np.uint64)
    for i in range(layout.step_size):
        steps |= (rows[:, layout.step + i] & 0x7F).astype(np.uint64) << np.uint64(7 * i)
    return steps.view(np.int64)


def walls_of(rows: Bytes, layout: Layout) -> Floats:
    """(n,) wall times in seconds, NaN where absent."""
    return column(rows, (layout.wall, "<f8")) if layout.wall >= 0 else np.full(len(rows), np.nan)


@dataclass(frozen=True, slots=True)
class Alike:
    """Records that one layout reads.

    Args:
        rows: (k,) which rows of the table.
        layout: their layout.
        tags: for each number of the layout the (k,) tag numbers.
    """

    rows: Ints
    layout: Layout
    tags: tuple[Ints, ...]


class Shapes:
    """Knows the shapes met so far, and numbers their tags in order of first appearance."""

    def __init__(self, extra: Extra | None = None) -> None:
        self.tags: dict[str, int] = {}
        self._known: dict[tuple[Layout, bytes], Shape] = {}
        self._extra = extra

    def number(self, tag: str) -> int:
        """The number of a tag."""
        return self.tags.setdefault(tag, len(self.tags))

    def sort(self, table: Bytes, length: int) -> Iterator[Alike]:
        """Group records of one length by what reads them; records that are no events are left out.

        Args:
            table: (n, a multiple of 8, at least length) bytes, one record a row.
        """
        words = table.view(np.uint64)
        rest = np.arange(len(table))
        for _ in range(6):
            if len(rest) < 4:
                break
            layout = self._layout(table[rest[0], :length].tobytes())
            if layout is None:
                yield from self._single(table[rest[0], :length].tobytes(), int(rest[0]))
                rest = rest[1:]
                continue
            alike, rest = self._alike(words, rest, layout, length)
            yield from alike
        for row in rest.tolist():
            yield from self._single(table[row, :length].tobytes(), row)

    def _layout(self, data: bytes) -> Layout | None:
        try:
            layout = parse(data).layout
        except MalformedError:
            return None
        return layout if layout.fixed_width else None

    def _alike(self, words: NDArray[np.uint64], rest: Ints, layout: Layout, length: int) -> tuple[list[Alike], Ints]:
        mask = mask_of(layout, length, words.shape[1] * 8)
        used = np.flatnonzero(mask)
        same = words[rest[:, None], used] & mask[used] if len(rest) < len(words) else words[:, used] & mask[used]
        _, first, group = np.unique(_hashes(same), return_index=True, return_inverse=True)
        shapes = [self._shape(words, int(rest[i]), same[i].tobytes(), layout, length) for i in first.tolist()]
        fits = np.array([shape is not None for shape in shapes])[group]
        fits &= (same == same[first][group]).all(axis=1)
        chosen = group[fits]
        tags = []
        for k in range(len(layout.places)):
            numbers = np.array([self.number(s.tags[k]) if s else -1 for s in shapes], np.int64)
            tags.append(numbers[chosen])
        return [Alike(rest[fits], layout, tuple(tags))], rest[~fits]

    def _shape(self, words: NDArray[np.uint64], row: int, same: bytes, layout: Layout, length: int) -> Shape | None:
        """The shape of a record if it has this layout, else None."""
        known = self._known.get((layout, same))
        if known is None:
            try:
                known = parse(words[row].tobytes()[:length])
            except MalformedError:
                return None
            if len(self._known) > 1 << 14:
                self._known.clear()
            self._known[layout, same] = known
        return known if known.layout == layout else None

    def _single(self, data: bytes, row: int) -> Iterator[Alike]:
        try:
            shape = parse(data, self._extra)
        except MalformedError:
            return
        if shape.tags:
            yield Alike(np.array([row]), shape.layout, tuple(np.array([self.number(t)]) for t in shape.tags))


def _hashes(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """(n,) one number for each row, equal for equal rows."""
    total = np.zeros(len(words), np.uint64)
    for i in range(words.shape[1]):
        total += words[:, i]
        total *= np.uint64(0x9E3779B97F4A7C15)
        total ^= total >> np.uint64(29)
    return total
