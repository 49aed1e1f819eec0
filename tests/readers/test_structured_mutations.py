"""Damaged files: every structured reader gives runs or a clear error, never anything else."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from poise.messages import render
from poise.readers import csv, hf_state, jsonl, source, wandb_json
from poise.readers.base import RawRun, Reader, UnreadableError

READERS = (csv.READER, hf_state.READER, jsonl.READER, wandb_json.READER)
ROWS = [
    {"step": i, "loss": 3.0 / i, "lr": "1e-4", "inner": {"a": [i, 2.5], "b": None}, "ok": True} for i in range(1, 9)
]
TABLE = [[str(i), repr(2.0 / i), "", "nan", '"a, b"'] for i in range(1, 9)]
ORIGINALS = tuple(
    text.encode()
    for text in (
        "".join(json.dumps(row) + "\n" for row in ROWS),
        "".join(json.dumps({"_step": i, "_runtime": 1.5, **row}) + "\n" for i, row in enumerate(ROWS)),
        json.dumps({"epoch": 1.0, "log_history": ROWS, "max_steps": 8}, indent=2),
        json.dumps(ROWS),
        "\n".join(json.dumps(row, indent=1) for row in ROWS),
        json.dumps({"history": {"loss": [1.0, 2.0, 3.0], "val_loss": [1.0, float("nan"), 2.0]}}),
        "step,loss,lr,x,note\n" + "".join(",".join(row) + "\n" for row in TABLE),
        "step;loss\n" + "".join(f"{i};0,{i}\n" for i in range(9)),
        "| step | loss |\n|------|------|\n" + "".join(f"| {i} | {1 / (i + 1):.3f} |\n" for i in range(9)),
        "Step,r1 - loss,r1 - loss__MIN,r2 - loss\n" + "".join(f"{i},0.{i},0.{i},\n" for i in range(9)),
        "".join(f"{i} 0.{i} {i}e-3\n" for i in range(9)),
    )
)
TOKENS = [
    b"\n",
    b"\r",
    b",",
    b";",
    b'"',
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b"NaN",
    b"-Infinity",
    b"null",
    b"true",
    b"\0",
    b"\xff",
]
TOKENS += [
    b"1" * 5000,
    b"[" * 3000,
    b'{"a":' * 1500,
    b"1e999",
    b"\\ud800",
    b"#",
    b"|",
    b"\xef\xbb\xbf",
    b" ",
    b"\xff\xfe",
    b"_",
    b"''",
]


def mutated(seed: int) -> bytes:
    """One of the originals with up to eight random damages."""
    draw = random.Random(seed)
    data = bytearray(draw.choice(ORIGINALS))
    for _ in range(draw.randint(1, 8)):
        at = draw.randrange(len(data) + 1)
        match draw.randrange(6):
            case 0:
                data[at:at] = draw.choice(TOKENS)
            case 1:
                del data[at : at + draw.randint(1, 40)]
            case 2:
                data[at : at + 1] = bytes([draw.randrange(256)])
            case 3:
                data[at:at] = data[max(0, at - draw.randint(1, 200)) : at]
            case 4:
                del data[at:]
            case _:
                data[at:at] = draw.choice(ORIGINALS)[: draw.randint(1, 60)]
    packed = gzip.compress(bytes(data)) if draw.random() < 0.05 else bytes(data)
    return packed[: draw.randint(0, len(packed))] if draw.random() < 0.1 else packed


def check(path: Path) -> None:
    """Sniff and read a file with each reader."""
    try:
        head = source.head(path)
    except UnreadableError:
        return
    for reader in READERS:
        assert 0.0 <= reader.sniff(head, path) <= 1.0
        for run in read_or_refuse(reader, path):
            assert run.columns
            assert all(isinstance(render(note), str) for note in run.notes)
            for column in run.columns.values():
                assert len(column.rows) == len(column.values)
                assert column.rows.dtype == np.int64
                assert column.values.dtype == np.float64
                assert bool(np.all(np.diff(column.rows) >= 0))


def read_or_refuse(reader: Reader, path: Path) -> list[RawRun]:
    """The runs, or none if the reader refuses the file with a message that names it."""
    try:
        return reader.read(path)
    except UnreadableError as error:
        refusal = str(error)
    assert refusal.startswith(str(path))
    return []


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_a_damaged_file_gives_runs_or_a_clear_error(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(mutated(seed))
    check(path)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=300))
def test_arbitrary_bytes_give_runs_or_a_clear_error(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(data)
    check(path)


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
@pytest.mark.parametrize(
    "data", [b'{"a":' * 100_000, b"[" * 100_000, b"{" * 100_000, b'"' * 100_000, b"1" * 300_000, b"," * 100_000]
)
def test_endless_nesting_and_endless_cells_do_not_hang_or_crash(reader: Reader, data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(data)
    assert read_or_refuse(reader, path) is not None
