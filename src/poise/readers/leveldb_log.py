"""The log framing of LevelDB as W&B uses it: blocks of 32 KiB, records whole or in parts, a plain CRC-32 on each."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct

from poise.readers import source
from poise.readers.tfrecord import Damage
from poise.records import Message

BLOCK = 1 << 15
LARGEST = 1 << 26
"""Bytes of a record above which it is left out."""

MAGIC = b":W&B"
_FILE_HEADER = 7
_PART = Struct("<IHB")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4


def payloads(path: Path, damage: Damage, notes: list[Message]) -> Iterator[bytes]:
    """Yield the records of a file; damaged ones are left out and counted.

    Raises:
        UnreadableError: as `source.raw` does.
    """
    records = _Records(damage)
    for offset, block, is_last in _blocks(path, notes):
        yield from records.of_block(block, offset, is_last)
    if records.parts and damage.torn is None:
        damage.torn = records.began


def _blocks(path: Path, notes: list[Message]) -> Iterator[tuple[int, bytes, bool]]:
    """Yield (place in the file, bytes, whether it is the last one) of each block."""
    buffer, offset = b"", 0
    for piece in source.raw(path, BLOCK * 32, notes):
        buffer = buffer + piece if buffer else piece
        whole = (len(buffer) - 1) // BLOCK * BLOCK  # the last block waits until it is known to be the last
        for at in range(0, whole, BLOCK):
            yield offset + at, buffer[at : at + BLOCK], False
        buffer, offset = buffer[whole:], offset + whole
    yield offset, buffer, True


@dataclass(slots=True)
class _Records:
    damage: Damage
    parts: list[bytes] = field(default_factory=list)
    began: int = 0
    size: int = 0

    def of_block(self, block: bytes, offset: int, is_last: bool) -> Iterator[bytes]:
        at = _FILE_HEADER if offset == 0 else 0
        while at + _PART.size <= len(block):
            _, length, kind = _PART.unpack_from(block, at)
            if not kind and not length:  # padding
                return
            following = at + _PART.size + length
            if following > len(block) and is_last and _FULL <= kind <= _LAST:
                self.damage.torn = offset + at
                return
            if not _is_good(block, at):
                self.damage.at(offset + at)
                self.parts.clear()
                if not _is_good(block, following):
                    return
            else:
                yield from self._part(kind, block[at + _PART.size : following], offset + at)
            at = following
        if is_last and block[at:].strip(b"\0"):
            self.damage.torn = offset + at

    def _part(self, kind: int, data: bytes, place: int) -> Iterator[bytes]:
        if kind in (_FULL, _FIRST):
            if self.parts:
                self.damage.at(self.began)
            self.parts, self.began, self.size = [], place, 0
        elif not self.parts:
            return  # its beginning was damaged and is counted
        self.size += len(data)
        self.parts.append(data if self.size <= LARGEST else b"")
        if kind in (_FULL, _LAST):
            whole, self.parts = b"".join(self.parts), []
            if self.size <= LARGEST:
                yield whole


def _is_good(block: bytes, at: int) -> bool:
    """Whether a part with the right check sum stands here."""
    if at + _PART.size > len(block):
        return False
    crc, length, kind = _PART.unpack_from(block, at)
    end = at + _PART.size + length
    return bool(_FULL <= kind <= _LAST and end <= len(block) and zlib.crc32(block[at + 6 : end]) == crc)
