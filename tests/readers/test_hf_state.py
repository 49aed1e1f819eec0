"""trainer_state.json as Hugging Face writes it, whole, torn, with bare NaN, and larger than one piece."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from poise.messages import render
from poise.readers import json_text, source
from poise.readers.base import RawRun, UnreadableError
from poise.readers.hf_state import READER

Points = dict[str, tuple[list[int], list[float]]]


def read(folder: Path, text: str) -> RawRun:
    path = folder / "any_name.txt"
    path.write_text(text)
    (run,) = READER.read(path)
    assert READER.sniff(source.head(path), path) >= 0.9
    return run


def points(run: RawRun) -> Points:
    return {name: (column.rows.tolist(), column.values.tolist()) for name, column in run.columns.items()}


def by_hand(rows: Sequence[dict[str, Any]]) -> Points:
    """The slow obvious way."""
    found: Points = {}
    for i, row in enumerate(rows):
        for key, value in row.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                known = found.setdefault(key, ([], []))
                known[0].append(i)
                known[1].append(float(value))
    return found


def history(count: int) -> list[dict[str, Any]]:
    """Train rows, with an evaluation after each tenth."""
    rows: list[dict[str, Any]] = []
    for i in range(count):
        rows.append({"epoch": i / 100, "grad_norm": 1.0 + i % 7, "learning_rate": 1e-4, "loss": 5 / (i + 1), "step": i})
        if i % 10 == 9:
            rows.append({"epoch": i / 100, "eval_loss": 6 / (i + 1), "eval_runtime": 1.5, "step": i})
    return rows


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("count", [3, 25, 12_000])
def test_mixed_train_and_eval_rows_keep_their_places(count: int, indent: int | None, tmp_path: Path) -> None:
    rows = history(count)

    run = read(tmp_path, json.dumps({"epoch": 1.0, "log_history": rows, "max_steps": count}, indent=indent))

    assert points(run) == by_hand(rows)
    assert run.config == {"epoch": 1.0, "max_steps": count}
    assert (run.format, run.trainer, run.notes) == ("hf-trainer-state", "hf", [])


def test_bare_nan_and_infinity_are_numbers(tmp_path: Path) -> None:
    rows = [{"step": 1, "loss": float("nan")}, {"step": 2, "loss": float("inf")}, {"step": 3, "loss": -float("inf")}]
    run = read(tmp_path, json.dumps({"log_history": rows}))
    np.testing.assert_array_equal(run.columns["loss"].values, [np.nan, np.inf, -np.inf])


def test_a_bare_nan_far_inside_does_not_disturb_its_neighbours(tmp_path: Path) -> None:
    rows = history(12_000)
    rows[7000]["loss"] = float("nan")

    run = read(tmp_path, json.dumps({"log_history": rows}, indent=2))

    loss = run.columns["loss"]
    assert loss.rows[np.isnan(loss.values)].tolist() == [7000]
    assert points(run)["step"] == by_hand(rows)["step"]


def test_the_text_nan_inside_a_string_stays_a_string(tmp_path: Path) -> None:
    text = '{"log_history": [{"step": 1, "note": "a: NaN, b", "loss": NaN}, {"step": 2, "loss": 1.0}]}'
    assert points(read(tmp_path, text))["step"] == ([0, 1], [1.0, 2.0])


def test_numeric_texts_are_numbers_but_booleans_nulls_and_nested_values_are_not(tmp_path: Path) -> None:
    row = {"step": 1, "loss": "0.5", "a": True, "b": None, "c": {"x": 1}, "d": [1, 2], "e": "0:01:02"}
    run = read(tmp_path, json.dumps({"log_history": [row, {"step": 2, "loss": 0.25}]}))
    assert points(run) == {"step": ([0, 1], [1.0, 2.0]), "loss": ([0, 1], [0.5, 0.25])}


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_a_torn_file_gives_the_good_part_and_a_note(share: float, tmp_path: Path) -> None:
    rows = history(5000)
    text = json.dumps({"log_history": rows}, indent=2)
    text = text[: int(len(text) * share)]

    run = read(tmp_path, text)

    whole = text.count("}")
    assert points(run) == by_hand(rows[:whole])
    assert "breaks off" in render(run.notes[0])


def test_a_list_of_rows_alone_is_a_history(tmp_path: Path) -> None:
    rows = history(12)
    assert points(read(tmp_path, json.dumps(rows))) == by_hand(rows)


def test_rows_with_lists_of_objects_are_cut_at_rows_only(tmp_path: Path) -> None:
    rows = [{"parts": [{"a": 1}, {"a": 2}], "step": i, "loss": 1.0 / (i + 1)} for i in range(20_000)]
    run = read(tmp_path, json.dumps({"log_history": rows, "max_steps": 7}))
    assert points(run)["loss"] == by_hand(rows)["loss"]
    assert run.config == {"max_steps": 7}


def test_long_fields_behind_the_history_do_not_hide_its_end(tmp_path: Path) -> None:
    rows = history(50)
    rest = {"stateful_callbacks": {f"c{i}": {"args": {"a": i}} for i in range(40_000)}, "total_flos": 1.5}
    text = json.dumps({"log_history": rows, **rest})
    assert len(text) > 4 * json_text.PIECE

    run = read(tmp_path, text)

    assert points(run) == by_hand(rows)
    assert run.config == {"total_flos": 1.5}


@pytest.mark.parametrize(
    "text", ['{"log_history": []}', '{"log_history": 5}', '{"epoch": 1}', '{"log_history": [{"a": "b"}]}']
)
def test_a_state_without_numbers_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "trainer_state.json"
    path.write_text(text)
    with pytest.raises(UnreadableError, match=r"trainer_state\.json"):
        READER.read(path)
