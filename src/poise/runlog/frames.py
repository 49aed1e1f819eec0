"""The tail format: frames of length, checksum and payload, appended with one write per step.

    file    = magic, frame*
    magic   = b"POISE\\x00" + version (u16)
    frame   = length of payload (u32), crc32 of payload (u32), payload
    payload = b"S" + JSON {"group": id, "name": ..., "columns": [...], "shape": ...}      a column group, agreed once
            | b"R" + group id (u16), branch (u32), step (i64), values (f32 each)          a row of it

All numbers are little-endian. A torn or damaged frame ends the readable part; everything before it stands.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

VERSION = 1
MAGIC = b"POISE\x00" + struct.pack("<H", VERSION)
HEAD = struct.Struct("<II")
ROW = struct.Struct("<cHIq")


@dataclass(frozen=True, slots=True)
class Group:
    """A column group: names agreed once, so that a row is one array and never a dict.

    Args:
        number: id within the file.
        name: what is measured together, for example `always` or `layers`.
        columns: signal names; a vector or per-rank signal of width w takes w places and is named once in `widths`.
        widths: values per column, 1 for scalars.
        shapes: `scalar`, `vector` or `ranks` for each column.
    """

    number: int
    name: str
    columns: tuple[str, ...]
    widths: tuple[int, ...]
    shapes: tuple[str, ...]

    @property
    def size(self) -> int:
        """float32 values per row."""
        return sum(self.widths)


def schema_frame(group: Group) -> bytes:
    """The frame that introduces a group."""
    fields = {
        "group": group.number,
        "name": group.name,
        "columns": group.columns,
        "widths": group.widths,
        "shapes": group.shapes,
    }
    return framed(b"S" + json.dumps(fields).encode())


def row_frame(number: int, branch: int, step: int, values: NDArray[np.float32]) -> bytes:
    """The frame of one row."""
    return framed(ROW.pack(b"R", number, branch, step) + values.tobytes())


def framed(payload: bytes) -> bytes:
    """Length, checksum, payload."""
    return HEAD.pack(len(payload), zlib.crc32(payload)) + payload


@dataclass(slots=True)
class Damage:
    """Where the readable part of a tail ends before its end."""

    offset: int
    reason: str


def payloads(data: bytes | memoryview, offset: int = len(MAGIC)) -> Iterator[tuple[int, memoryview]]:
    """Yield (end offset, payload) of each whole frame from `offset` on; stop at the first that is torn or damaged."""
    view = memoryview(data)
    while offset + HEAD.size <= len(view):
        length, checksum = HEAD.unpack_from(view, offset)
        end = offset + HEAD.size + length
        if end > len(view) or zlib.crc32(payload := view[offset + HEAD.size : end]) != checksum:
            return
        yield end, payload
        offset = end


def read_schema(payload: memoryview) -> Group:
    """The group that a schema frame introduces."""
    fields: dict[str, Any] = json.loads(bytes(payload[1:]))
    return Group(
        fields["group"], fields["name"], tuple(fields["columns"]), tuple(fields["widths"]), tuple(fields["shapes"])
    )
