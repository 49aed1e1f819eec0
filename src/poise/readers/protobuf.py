"""The wire format of protocol buffers: just enough to walk a message field by field and skip what is not wanted."""

from __future__ import annotations

from collections.abc import Iterator

VARINT, EIGHT_BYTES, BYTES, FOUR_BYTES = 0, 1, 2, 5
Field = tuple[int, int, int, int]
_SIZES = {EIGHT_BYTES: 8, FOUR_BYTES: 4}


class MalformedError(ValueError):
    """Bytes that are no protocol buffer message."""


def varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Return an unsigned integer of 1 to 10 bytes and the position behind it."""
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise MalformedError(f"integer at byte {at} does not end")


def signed(value: int) -> int:
    """An int32 or int64 field's value: negative numbers are stored as their 64-bit complement."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def fields(data: bytes, start: int = 0, end: int | None = None) -> Iterator[Field]:
    """Yield (number, wire type, start, stop) of each field of a message; the bytes of its value are data[start:stop].

    Raises:
        MalformedError: while walking, at the first field that is none.
    """
    at, end = start, len(data) if end is None else end
    while at < end:
        key = data[at]
        if key < 0x80:
            at += 1
        else:
            key, at = varint(data, at, end)
        wire = key & 7
        if wire == BYTES:
            length, at = varint(data, at, end)
            stop = at + length
        elif wire == VARINT:
            stop = varint(data, at, end)[1]
        elif wire in _SIZES:
            stop = at + _SIZES[wire]
        else:
            raise MalformedError(f"no such wire type {wire} at byte {at}")
        if stop > end or key < 8:
            raise MalformedError(f"field at byte {at} does not fit its message")
        yield key >> 3, wire, at, stop
        at = stop


def text(data: bytes, start: int, stop: int) -> str:
    """A string field's value; invalid bytes become U+FFFD."""
    return data[start:stop].decode("utf-8", "replace")
