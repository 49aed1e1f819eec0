"""W&B's binary log, whole and as killed runs leave it."""

from __future__ import annotations

from pathlib import Path

import event_files as ef
import numpy as np
import pytest

from poise.messages import render
from poise.readers import wandb_binary
from poise.readers.base import RawRun, UnreadableError


def write(path: Path, *records: bytes) -> bytes:
    data = ef.wandb_log(records)
    path.write_bytes(data)
    return data


def read(path: Path, *records: bytes) -> RawRun:
    write(path, *records)
    [run] = wandb_binary.read(path)
    return run


def printed(text: str) -> bytes:
    return ef.sub(13, ef.sub(3, text.encode()))


def test_history_is_read_over_many_blocks(tmp_path: Path) -> None:
    run = read(tmp_path / "r.wandb", *(ef.history(s, loss=s / 4, pad='"' + "x" * 500 + '"') for s in range(400)))

    assert run.columns["loss"].values.tolist() == [s / 4 for s in range(400)]
    assert run.columns["_step"].values.tolist() == list(range(400))
    assert run.notes == []


def test_a_record_longer_than_a_block_is_put_together(tmp_path: Path) -> None:
    run = read(tmp_path / "r.wandb", ef.history(0, loss=1, pad='"' + "x" * 100_000 + '"'), ef.history(1, loss=2))

    assert run.columns["loss"].values.tolist() == [1, 2]


def test_nan_nested_keys_and_objects_are_read_and_media_are_not(tmp_path: Path) -> None:
    media = '{"_type": "histogram", "values": [1, 2], "bins": [0, 1, 2]}'
    nested = ef.sub(
        2, ef.item("", "0.5", nested=("train", "loss")) + ef.item("eval", '{"acc": 0.25}') + ef.item("h", media)
    )
    run = read(tmp_path / "r.wandb", nested, ef.history(1, loss="NaN", norm="Infinity"))

    assert run.columns["train/loss"].values.tolist() == [0.5]
    assert run.columns["eval/acc"].values.tolist() == [0.25]
    np.testing.assert_array_equal(run.columns["loss"].values, [np.nan])
    np.testing.assert_array_equal(run.columns["norm"].values, [np.inf])
    assert not any(name.startswith("h") for name in run.columns)


def test_configuration_and_versions_are_read(tmp_path: Path) -> None:
    config = ef.item("lr", "0.1") + ef.item("optim", '{"name": "adamw"}') + ef.item("_wandb", "{}")
    telemetry = ef.sub(4, b"3.11.5") + ef.sub(6, b"4.40.0")
    run = read(tmp_path / "r.wandb", ef.sub(17, ef.sub(4, config) + ef.sub(19, telemetry)), ef.history(0, loss=1))

    assert run.config == {"lr": 0.1, "optim.name": "adamw"}
    assert run.versions == {"python": "3.11.5", "transformers": "4.40.0"}


def test_the_exit_code_ends_the_run(tmp_path: Path) -> None:
    run = read(tmp_path / "r.wandb", ef.history(0, loss=1), ef.sub(18, b"\x08\x01"))

    assert [(e.kind, e.data["complete"]) for e in run.events] == [("run-end", False)]


TRACE = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\nRuntimeError: CUDA out of memory\n'


def test_an_exception_at_the_end_of_the_output_is_an_event(tmp_path: Path) -> None:
    run = read(tmp_path / "r.wandb", *(ef.history(s, loss=s) for s in range(9)), printed(TRACE), ef.history(9, loss=1))

    assert [(e.kind, e.data["type"], e.data["oom"]) for e in run.events] == [("exception", "RuntimeError", True)]


def test_an_exception_that_the_run_survived_is_none(tmp_path: Path) -> None:
    run = read(tmp_path / "r.wandb", printed(TRACE), *(ef.history(s, loss=s) for s in range(9)))

    assert run.events == []


def test_a_log_cut_anywhere_gives_what_came_before(tmp_path: Path) -> None:
    records = [ef.history(s, loss=s, pad='"' + "x" * 3000 + '"') for s in range(30)]
    data = write(tmp_path / "r.wandb", *records)
    for cut in range(4000, len(data), 997):
        (tmp_path / "r.wandb").write_bytes(data[:cut])
        [run] = wandb_binary.read(tmp_path / "r.wandb")
        found = run.columns["loss"].values.tolist()
        assert found == list(range(len(found)))
        assert len(found) >= cut // 3100 - 1


def test_a_flipped_byte_costs_its_record_only(tmp_path: Path) -> None:
    data = bytearray(write(tmp_path / "r.wandb", *(ef.history(s, loss=s) for s in range(50))))
    place = data.index(b"loss", 700)
    data[place] ^= 1
    (tmp_path / "r.wandb").write_bytes(data)
    [run] = wandb_binary.read(tmp_path / "r.wandb")

    assert len(run.columns["loss"].values) == 49
    assert "damaged" in render(run.notes[0])


def test_a_log_without_history_says_so_and_what_to_do(tmp_path: Path) -> None:
    write(tmp_path / "r.wandb", ef.sub(17, b""))

    with pytest.raises(UnreadableError, match=r"r\.wandb holds no history.*output\.log"):
        wandb_binary.read(tmp_path / "r.wandb")
