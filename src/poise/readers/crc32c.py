"""CRC-32C (Castagnoli), masked as record files store it: one text at a time, or many of equal length at once."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

UInts = NDArray[np.uint32]
_POLYNOMIAL = 0x82F63B78
_MASK_DELTA = 0xA282EAD8


@cache
def _table() -> tuple[int, ...]:
    """The remainder of each byte."""
    remainders = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        remainders.append(value)
    return tuple(remainders)


@cache
def _tables() -> tuple[UInts, UInts]:
    """The remainders of each byte, and of each pair of bytes."""
    single = np.array(_table(), np.uint32)
    pairs = np.arange(1 << 16, dtype=np.uint32)
    for _ in range(2):
        pairs = single[pairs & 0xFF] ^ (pairs >> 8)
    return single, pairs


def masked(data: bytes) -> int:
    """Masked CRC of some bytes; about 0.1 microseconds per byte."""
    table, crc = _table(), 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF


def masked_rows(rows: NDArray[np.uint8], length: int) -> UInts:
    """Masked CRCs of the first `length` bytes of each row.

    Args:
        rows: (n, at least length) bytes, C-contiguous rows.

    Returns:
        (n,) masked CRCs.
    """
    single, pairs = _tables()
    crc = np.full(len(rows), 0xFFFFFFFF, np.uint32)
    words = rows[:, : length & ~1].view("<u2")
    for i in range(words.shape[1]):
        crc = pairs[(crc ^ words[:, i]) & 0xFFFF] ^ crc >> 16
    if length & 1:
        crc = single[(crc ^ rows[:, length - 1]) & 0xFF] ^ crc >> 8
    crc = ~crc
    rotated: UInts = crc >> np.uint32(15) | crc << np.uint32(17)
    return np.asarray(rotated + np.uint32(_MASK_DELTA), np.uint32)
