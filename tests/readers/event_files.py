"""Writers of event files and W&B logs for the tests, by the formats' public descriptions, the slow obvious way."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable


def crc(data: bytes) -> int:
    """Masked CRC-32C, bit by bit."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    value ^= 0xFFFFFFFF
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF


def record(payload: bytes) -> bytes:
    """A record of an event file."""
    length = struct.pack("<Q", len(payload))
    return length + struct.pack("<I", crc(length)) + payload + struct.pack("<I", crc(payload))


def varint(value: int) -> bytes:
    """An integer of the wire format."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def sub(number: int, content: bytes) -> bytes:
    """A field that holds bytes."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def event(step: int, *values: bytes, wall: float = 1.7e9) -> bytes:
    """A record with one event."""
    return record(b"\x09" + struct.pack("<d", wall) + b"\x10" + varint(step) + sub(5, b"".join(values)))


def scalar(tag: str, value: float) -> bytes:
    """A value in the form of TensorBoard 1 and PyTorch."""
    return sub(1, sub(1, tag.encode()) + b"\x15" + struct.pack("<f", value))


def tensor(tag: str, dtype: int, content: bytes, plugin: str = "scalars") -> bytes:
    """A value in tensor form; `content` are the fields after dtype."""
    about = sub(9, sub(1, sub(1, plugin.encode())))
    return sub(1, sub(1, tag.encode()) + about + sub(8, b"\x08" + varint(dtype) + sub(2, b"") + content))


def version() -> bytes:
    """The first record of every event file."""
    return record(b"\x09" + struct.pack("<d", 1.7e9) + sub(3, b"brain.Event:2"))


def wandb_log(records: Iterable[bytes]) -> bytes:
    """A W&B binary log: records in LevelDB framing."""
    out = bytearray(b":W&B" + struct.pack("<HB", 0xBEE1, 0))
    for content in records:
        first = True
        while True:
            room = 32768 - len(out) % 32768
            if room < 7:
                out += bytes(room)
                continue
            part, content = content[: room - 7], content[room - 7 :]
            kind = (1 if not content else 2) if first else (4 if not content else 3)
            out += struct.pack("<IHB", zlib.crc32(bytes([kind]) + part), len(part), kind) + part
            first = False
            if not content:
                break
    return bytes(out)


def item(key: str, value: str, *, nested: Iterable[str] = ()) -> bytes:
    """An item of a history, configuration or summary."""
    keys = sub(1, key.encode()) if key else b""
    return sub(1, keys + b"".join(sub(2, part.encode()) for part in nested) + sub(16, value.encode()))


def history(step: int, **values: object) -> bytes:
    """A record of W&B's history."""
    return sub(2, b"".join(item(key, str(value)) for key, value in values.items()) + sub(2, b"\x08" + varint(step)))
