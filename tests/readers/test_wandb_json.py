"""W&B's history and summary files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from poise.messages import render
from poise.readers import source
from poise.readers.base import RawRun, UnreadableError
from poise.readers.wandb_json import READER


def read(folder: Path, text: str) -> RawRun:
    path = folder / "file"
    path.write_text(text)
    assert READER.sniff(source.head(path), path) > 0.9
    (run,) = READER.read(path)
    return run


def test_a_history_gives_a_record_per_line(tmp_path: Path) -> None:
    rows = [
        {"_step": i, "_runtime": 1.5 * i, "_timestamp": 1e9 + i, "loss": "NaN" if i == 3 else 1 / (i + 1)}
        for i in range(5)
    ]
    run = read(tmp_path, "".join(json.dumps(row) + "\n" for row in rows))
    assert run.format == "wandb-history"
    assert run.columns["_step"].values.tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(run.columns["loss"].values, [1, 1 / 2, 1 / 3, np.nan, 1 / 5])
    assert run.notes == []


def test_a_summary_gives_one_point_each_and_says_that_there_is_no_history(tmp_path: Path) -> None:
    summary = {
        "loss": 0.5,
        "_step": 7,
        "_runtime": 9.0,
        "hist": {"_type": "histogram", "values": [1, 2]},
        "_wandb": {"runtime": 9},
    }
    run = read(tmp_path, json.dumps(summary))
    assert run.format == "wandb-summary"
    assert {name: column.values.tolist() for name, column in run.columns.items()} == {
        "loss": [0.5],
        "_step": [7],
        "_runtime": [9],
    }
    assert "only the last value" in render(run.notes[0])


def test_a_summary_without_values_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="file"):
        read(tmp_path, '{"_wandb": {"runtime": 3}}')


def test_other_json_is_not_taken_for_wandb(tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert READER.sniff(b'{"step": 1, "loss": 2.0}\n', path) == 0.0
    assert READER.sniff(b"step,loss\n", path) == 0.0
