"""Record files of TensorFlow: length, masked CRC of the length, payload, masked CRC of the payload.

The walk checks every length, so that a damaged file cannot lead it astray: behind damage it goes on at the next header
whose CRC is right. Memory is bounded by the size of a piece plus the largest record that is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from struct import Struct

import numpy as np

from poise.readers import crc32c, source
from poise.records import Ints, Message

PIECE = 1 << 20
LARGEST = 1 << 24
"""Bytes of a record above which it is skipped unseen: no number of a training log is that long."""

_HEADER, _FRAME = 12, 16
_LENGTH = Struct("<Q")
_LENGTH_CRC = Struct("<QI")
_MAYBE_HEADER = re.compile(rb"(?=(?:[^\0]...|.[^\0]..|..[^\0].|...[^\0])\0{4})", re.DOTALL)


@dataclass(slots=True)
class Damage:
    """What a walk had to leave out."""

    first: int | None = None
    stretches: int = 0
    torn: int | None = None

    def at(self, offset: int) -> None:
        """Count a damaged stretch that begins at byte `offset`."""
        self.first = offset if self.first is None else self.first
        self.stretches += 1

    def notes(self) -> list[Message]:
        """What to tell the user."""
        said = []
        if self.stretches:
            said.append(Message("reading.damaged", {"count": self.stretches, "byte": self.first}))
        if self.torn is not None:
            said.append(Message("reading.torn-end", {"place": f"at byte {self.torn}"}))
        return said


@dataclass(frozen=True, slots=True)
class Records:
    """Whole records in a buffer.

    Args:
        data: the buffer.
        starts: (n,) positions of the payloads in `data`.
        lengths: (n,) bytes of the payloads.
        offset: the buffer's place in the file.
    """

    data: bytes
    starts: Ints
    lengths: Ints
    offset: int


@lru_cache(maxsize=1 << 16)
def _crc_of(length: int) -> int:
    return crc32c.masked(_LENGTH.pack(length))


def is_header(data: bytes, at: int = 0) -> bool:
    """Whether the 12 bytes at a position are a length and its CRC."""
    if len(data) < at + _HEADER:
        return False
    length, crc = _LENGTH_CRC.unpack_from(data, at)
    return bool(crc == crc32c.masked(_LENGTH.pack(length)))


def walk(path: Path, damage: Damage, notes: list[Message]) -> Iterator[Records]:
    """Yield the records of a file, many at a time.

    Raises:
        UnreadableError: as `source.raw` does.
    """
    state = _Walk(damage)
    for piece in source.raw(path, PIECE, notes):
        yield from state.feed(piece)
    if len(state.buffer) and not state.lost:
        damage.torn = state.offset


@dataclass(slots=True)
class _Walk:
    damage: Damage
    buffer: bytes = b""
    offset: int = 0  # of the buffer in the file
    skip: int = 0  # bytes of an oversized record still to come
    lost: bool = False  # looking for the next header
    reach: int = PIECE  # bytes to walk before checking; small behind damage, lest much damage cost a walk each

    def feed(self, piece: bytes) -> Iterator[Records]:
        self.buffer = self.buffer + piece if self.buffer else piece
        while True:
            if self.skip:
                self._drop(min(self.skip, len(self.buffer)), skipped=True)
            if self.skip or (self.lost and not self._found()):
                return
            records, stop, damaged = self._whole()
            if len(records.starts):
                yield records
            self._drop(stop)
            if damaged:
                self.damage.at(self.offset)
                self.lost, self.reach = True, 1 << 10
            elif stop > self.reach:
                self.reach *= 4
            elif not self._oversized():
                return

    def _drop(self, count: int, skipped: bool = False) -> None:
        self.buffer = self.buffer[count:]
        self.offset += count
        self.skip -= count if skipped else 0

    def _found(self) -> bool:
        """Go to the next header; keep what may be the start of one."""
        for match in _MAYBE_HEADER.finditer(self.buffer, 1):
            if is_header(self.buffer, match.start()):
                self._drop(match.start())
                self.lost = False
                return True
        self._drop(max(0, len(self.buffer) - _HEADER))
        return False

    def _whole(self) -> tuple[Records, int, bool]:
        """The whole records at the buffer's start, where they end, and whether damage follows there."""
        data, at, places = self.buffer, 0, []
        last, end, unpack = min(len(data) - _HEADER, self.reach), len(data), _LENGTH.unpack_from
        while at <= last:
            following = at + _FRAME + unpack(data, at)[0]
            if following > end:
                break
            places.append(at)
            at = following
        damaged = len(data) >= at + _HEADER and not is_header(data, at)
        heads = np.array([*places, at], np.int64)
        lengths = np.diff(heads) - _FRAME
        good = self._good(data, heads[:-1], lengths)
        if good < len(lengths):
            at, damaged = int(heads[good]), True
        return Records(data, heads[:good] + _HEADER, lengths[:good], self.offset), at, damaged

    def _good(self, data: bytes, heads: Ints, lengths: Ints) -> int:
        """How many records from the start have the right CRC of their length."""
        if not len(heads):
            return 0
        distinct, which = np.unique(lengths, return_inverse=True)
        expected = np.array([_crc_of(n) for n in distinct.tolist()], np.uint32)
        stored = np.lib.stride_tricks.sliding_window_view(np.frombuffer(data, np.uint8), 4)[heads + 8].view("<u4")[:, 0]
        wrong = np.flatnonzero(stored != expected[which])
        return int(wrong[0]) if len(wrong) else len(heads)

    def _oversized(self) -> bool:
        """Begin to skip a record that is not worth keeping."""
        if len(self.buffer) < _HEADER:
            return False
        length = _LENGTH.unpack_from(self.buffer)[0]
        if length <= LARGEST or length + _FRAME <= len(self.buffer):
            return False
        self.skip = length + _FRAME
        return True


def by_length(lengths: Ints) -> Iterator[Ints]:
    """Yield the indices of the records of each length, in order."""
    order = np.argsort(lengths, kind="stable")
    edges = np.flatnonzero(np.diff(lengths[order])) + 1
    for a, b in pairwise([0, *edges.tolist(), len(order)]):
        yield order[a:b]
