"""Deterministic logs for `offline.py`: one healthy, noisy run with one spike, in every format that is measured."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from poise.readers import crc32c
from poise.records import Floats

SIGNALS = ("loss", "grad_norm", "learning_rate", "tokens_per_second")
FORMATS = {"csv": "csv", "jsonl": "jsonl", "trainer_state": "json", "console": "log", "tfevents": "tfevents"}
_ROWS_AT_ONCE = 50_000


def signals(rows: int, seed: int = 0) -> Floats:
    """(rows, 4) values of `SIGNALS` with the digits that trainers print."""
    rng = np.random.default_rng(seed)
    at = np.arange(rows) / rows
    loss = 2.0 + 6.0 * np.exp(-40.0 * at) + rng.normal(0, 0.08, rows)
    loss[int(0.7 * rows) : int(0.7 * rows) + 3] += 3.0
    norm = 0.6 * np.exp(rng.normal(0, 0.15, rows))
    rate = 3e-4 * np.minimum(1.0, at / 0.01) * (0.55 + 0.45 * np.cos(np.pi * at))
    speed = 1.0e5 * np.exp(rng.normal(0, 0.02, rows))
    table = np.column_stack([loss, norm, rate, speed])
    digits = 10.0 ** np.array([5, 5, 9, 1])
    return np.rint(table * digits) / digits


def write(folder: Path, form: str, rows: int, seed: int = 0, name: str = "run") -> Path:
    """Write a log of one format and return its path."""
    path = folder / f"{name}-{rows}.{FORMATS[form]}"
    table = signals(rows, seed)
    if form == "tfevents":
        path.write_bytes(b"".join(events(table)))
        return path
    with path.open("w") as file:
        file.write(_BEFORE.get(form, ""))
        for first in range(0, rows, _ROWS_AT_ONCE):
            part = table[first : first + _ROWS_AT_ONCE].tolist()
            text = _JOINT[form].join(_LINE[form](first + i, *row) for i, row in enumerate(part))
            file.write((_JOINT[form] if first else "") + text)
        file.write(_AFTER.get(form, "\n"))
    return path


def _object(step: int, loss: float, norm: float, rate: float, speed: float) -> str:
    values = {"step": step, "loss": loss, "grad_norm": norm, "learning_rate": rate, "tokens_per_second": speed}
    return json.dumps(values)


def _state_row(step: int, loss: float, norm: float, rate: float, speed: float) -> str:
    values = {"epoch": step / 1e6, "grad_norm": norm, "learning_rate": rate, "loss": loss, "step": step + 1}
    return json.dumps({**values, "tokens_per_second": speed}, indent=2)


_LINE = {
    "csv": lambda step, loss, norm, rate, speed: f"{step},{loss},{norm},{rate},{speed}",
    "jsonl": _object,
    "trainer_state": _state_row,
    "console": lambda step, loss, norm, rate, speed: (
        f"step:{step} loss:{loss:.5f} grad_norm: {norm:.5f} lr: {rate:.9f} tokens/s: {speed:.1f}"
    ),
}
_JOINT = {"csv": "\n", "jsonl": "\n", "console": "\n", "trainer_state": ",\n"}
_BEFORE = {"csv": "step," + ",".join(SIGNALS) + "\n", "trainer_state": '{"best_metric": null, "log_history": [\n'}
_AFTER = {"trainer_state": '], "max_steps": 1000000}\n'}


def events(table: Floats) -> Iterator[bytes]:
    """The bytes of an event file, one event per value."""
    version = b"\x09" + struct.pack("<d", 1.7e9) + b"\x1a\rbrain.Event:2"
    yield _record(version, crc32c.masked(version))
    for first in range(0, len(table), _ROWS_AT_ONCE):
        part = table[first : first + _ROWS_AT_ONCE].astype("<f4")
        payloads = [_event(first + i, tag, part[i, k]) for i in range(len(part)) for k, tag in enumerate(SIGNALS)]
        yield b"".join(map(_record, payloads, _checks(payloads).tolist()))


def _event(step: int, tag: str, value: np.float32) -> bytes:
    inner = b"\n" + bytes([len(tag)]) + tag.encode() + b"\x15" + value.tobytes()
    summary = b"\n" + bytes([len(inner)]) + inner
    wall = struct.pack("<d", 1.7e9 + step / 2)
    return b"\x09" + wall + b"\x10" + _varint(step) + b"*" + bytes([len(summary)]) + summary


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _checks(payloads: list[bytes]) -> crc32c.UInts:
    """Masked CRCs, computed for all payloads of one length at once."""
    lengths = np.array(list(map(len, payloads)))
    found = np.zeros(len(payloads), np.uint32)
    for length in np.unique(lengths).tolist():
        where = np.flatnonzero(lengths == length)
        joined = b"".join(payloads[i] for i in where.tolist())
        found[where] = crc32c.masked_rows(np.frombuffer(joined, np.uint8).reshape(len(where), length), length)
    return found


_HEADERS: dict[int, bytes] = {}


def _record(payload: bytes, check: int) -> bytes:
    header = _HEADERS.get(len(payload))
    if header is None:
        packed = struct.pack("<Q", len(payload))
        header = _HEADERS[len(payload)] = packed + struct.pack("<I", crc32c.masked(packed))
    return header + payload + struct.pack("<I", check)
