"""JSON logs of any make: a line each, arrays, pretty-printed, glued, torn, with rubbish between."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from poise.messages import render
from poise.readers import json_text, source
from poise.readers.base import RawRun, UnreadableError
from poise.readers.json_rows import RowTable
from poise.readers.jsonl import READER

Points = dict[str, tuple[list[int], list[float]]]


def read(folder: Path, text: str | bytes) -> RawRun:
    path = folder / "metrics.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    (run,) = READER.read(path)
    return run


def points(run: RawRun) -> Points:
    return {name: (column.rows.tolist(), column.values.tolist()) for name, column in run.columns.items()}


def jsonl(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


TWO = [{"step": 1, "loss": 0.5}, {"step": 2, "loss": 0.25}]
TWO_POINTS: Points = {"step": ([0, 1], [1.0, 2.0]), "loss": ([0, 1], [0.5, 0.25])}


@pytest.mark.parametrize(
    "text",
    [
        jsonl(TWO),
        jsonl(TWO).replace("\n", "\r\n"),
        "\ufeff" + jsonl(TWO),
        "\n" + jsonl(TWO).replace("\n", "\n\n"),
        jsonl(TWO).rstrip("\n"),
        jsonl(TWO).replace("\n", ""),
        json.dumps(TWO),
        json.dumps(TWO, indent=2),
        "\n".join(json.dumps(row, indent=2) for row in TWO),
        json.dumps({"loss": [0.5, 0.25], "step": [1, 2]}),
        json.dumps({"epochs": TWO, "lr": 0.1}),
        "".join(f"2026-01-01 INFO {json.dumps(row)}\n" for row in TWO),
        "".join(f"[12:00:01] {json.dumps(row)}\n" for row in TWO),
        jsonl([{"step": "1", "loss": "0.5", "ok": True, "none": None, "t": "0:01:02"}, {"step": "2", "loss": "0.25"}]),
    ],
)
def test_however_it_is_laid_out_the_log_is_the_same(text: str, tmp_path: Path) -> None:
    run = read(tmp_path, text)
    assert {name: points(run)[name] for name in TWO_POINTS} == TWO_POINTS
    assert len(run.columns) == 2
    assert run.notes == []


def test_rows_of_one_metric_each_become_its_column(tmp_path: Path) -> None:
    rows = [
        {"metric": name, "value": value, "step": i} for i, value in enumerate([0.5, 0.25]) for name in ("loss", "lr")
    ]
    assert points(read(tmp_path, jsonl(rows))) == {
        "step": ([0, 1, 2, 3], [0, 0, 1, 1]),
        "loss": ([0, 2], [0.5, 0.25]),
        "lr": ([1, 3], [0.5, 0.25]),
    }


def test_text_above_the_objects_is_counted_and_skipped(tmp_path: Path) -> None:
    run = read(tmp_path, "loading data\nready\n" + jsonl(TWO))
    assert points(run) == TWO_POINTS
    assert render(run.notes[0]).startswith("2 lines could not be read")


def test_nested_objects_and_short_lists_are_flattened(tmp_path: Path) -> None:
    rows = [
        {"step": i, "loss": {"box": {"l1": 0.5}, "cls": 1.0}, "lr": [0.1, 0.2], "hist": list(range(50))}
        for i in range(2)
    ]
    assert list(read(tmp_path, jsonl(rows)).columns) == ["step", "loss/box/l1", "loss/cls", "lr/0", "lr/1"]


@pytest.mark.parametrize("word", ["NaN", '"NaN"', '"nan"'])
def test_nan_is_a_value_and_null_is_absent(word: str, tmp_path: Path) -> None:
    run = read(
        tmp_path,
        f'{{"step":1,"loss":{word}}}\n{{"step":2,"loss":null}}\n{{"step":3,"loss":-Infinity}}\n{{"step":4,"loss":"inf"}}\n',
    )
    loss = run.columns["loss"]
    assert loss.rows.tolist() == [0, 2, 3]
    np.testing.assert_array_equal(loss.values, [np.nan, -np.inf, np.inf])


def test_booleans_are_not_numbers_even_among_zeros_and_ones(tmp_path: Path) -> None:
    rows = [{"step": 1, "flag": True, "x": 0}, {"step": 2, "flag": False, "x": True}, {"step": 3, "flag": True, "x": 1}]
    assert points(read(tmp_path, jsonl(rows))) == {"step": ([0, 1, 2], [1, 2, 3]), "x": ([0, 2], [0, 1])}


@pytest.mark.parametrize("key", ["args", "config", "hparams", "training_args"])
def test_settings_in_the_first_row_become_configuration(key: str, tmp_path: Path) -> None:
    run = read(
        tmp_path, jsonl([{"type": "start", key: {"lr": 0.1, "model": {"depth": 8}, "name": "x"}, "seed": 7}, *TWO])
    )
    assert run.config == {"type": "start", "lr": 0.1, "model.depth": 8, "name": "x", "seed": 7}
    assert points(run) == {"step": ([1, 2], [1.0, 2.0]), "loss": ([1, 2], [0.5, 0.25])}


def test_a_first_row_that_shares_nothing_with_the_next_is_settings(tmp_path: Path) -> None:
    run = read(tmp_path, jsonl([{"lr": 0.1, "batch_size": 32}, *TWO]))
    assert run.config == {"lr": 0.1, "batch_size": 32}
    assert list(run.columns) == ["step", "loss"]


def test_settings_in_each_row_are_kept_out_of_the_columns(tmp_path: Path) -> None:
    run = read(tmp_path, jsonl([{**row, "config": {"lr": 0.1}} for row in TWO]))
    assert run.config == {"lr": 0.1}
    assert points(run) == TWO_POINTS


def test_rubbish_between_is_counted_and_a_torn_end_is_told(tmp_path: Path) -> None:
    text = '{"step":1,"loss":0.5}\nWARNING: slow\n{"step":2,"lo\n{"step":2,"loss":0.25}\n{"step":3,"lo'
    run = read(tmp_path, text)
    assert points(run) == TWO_POINTS
    assert [render(note) for note in run.notes] == [
        "2 lines could not be read and were skipped, the first is line 2",
        "the file breaks off inside its last record, line 5; what comes before was read",
    ]


def test_invalid_bytes_in_a_text_cost_nothing_but_that_text(tmp_path: Path) -> None:
    run = read(tmp_path, b'{"t":"\xff\xfe","step":1,"loss":0.5}\n{"t":"\\ud800\x01","step":2,"loss":0.25}\n')
    assert points(run) == TWO_POINTS


def test_numbers_too_large_for_a_float_are_infinite(tmp_path: Path) -> None:
    run = read(tmp_path, '{"step":1,"loss":1e999}\n{"step":2,"loss":' + "9" * 400 + "}\n")
    assert run.columns["loss"].values.tolist() == [float("inf"), float("inf")]


@pytest.mark.parametrize("indent", [None, 1])
def test_a_torn_array_gives_its_whole_items(indent: int | None, tmp_path: Path) -> None:
    rows = [{"step": i, "loss": 1 / (i + 1)} for i in range(20_000)]
    text = json.dumps(rows, indent=indent)[:-20]
    assert len(text) > json_text.PIECE

    run = read(tmp_path, text)

    assert points(run)["step"] == (list(range(19_999)), [float(i) for i in range(19_999)])
    assert "item 20000" in render(run.notes[0])


def test_pretty_printed_objects_larger_than_a_piece_in_sum_are_all_read(tmp_path: Path) -> None:
    rows = [{"step": i, "loss": 1 / (i + 1)} for i in range(10_000)]
    text = "\n".join(json.dumps(row, indent=4) for row in rows)
    assert len(text) > json_text.PIECE
    assert points(read(tmp_path, text))["loss"] == (list(range(10_000)), [row["loss"] for row in rows])


def test_where_batches_are_cut_does_not_matter() -> None:
    draw = random.Random(1)
    kinds: list[dict[str, Any]] = [
        {"step": 0, "loss": 0.5},
        {"step": 0, "eval": {"loss": 1.0}},
        {"loss": "nan", "step": 0},
        {"step": 0, "loss": None},
    ]
    items: list[Any] = [{**draw.choice(kinds), "step": i} if draw.random() < 0.95 else "text" for i in range(500)]
    whole = RowTable()
    whole.add(items)
    cut = RowTable()
    start = 0
    while start < len(items):
        stop = start + draw.randint(2, 30)
        cut.add(items[start:stop])
        start = stop

    left, right = whole.finish(), cut.finish()

    assert left.keys() == right.keys() == {"step", "loss", "eval/loss"}
    assert whole.bad == cut.bad > 0
    for name, column in left.items():
        np.testing.assert_array_equal(column.rows, right[name].rows)
        np.testing.assert_array_equal(column.values, right[name].values)


@pytest.mark.parametrize(
    ("row", "format_", "trainer"),
    [
        ({"current_steps": 1, "total_steps": 9, "loss": 1.0, "percentage": 0.1}, "llamafactory-jsonl", "llama-factory"),
        ({"iteration": 19, "eta_seconds": 5.0, "data_time": 0.1, "total_loss": 2.0}, "detectron2-jsonl", "detectron2"),
        ({"step": 1, "loss": 1.0}, "jsonl", None),
    ],
)
def test_the_writer_shows_in_the_keys(row: dict[str, Any], format_: str, trainer: str | None, tmp_path: Path) -> None:
    run = read(tmp_path, jsonl([row, row]))
    assert (run.format, run.trainer) == (format_, trainer)


@pytest.mark.parametrize("text", ["{}", "[]", '{"a": "b"}\n', "[1, 2, 3]", '{"a": ', "{rubbish}\n{more}\n"])
def test_json_without_numbers_is_refused_by_name(text: str, tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match=r"metrics\.json"):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        (jsonl(TWO), 0.6, 1.0),
        (json.dumps(TWO, indent=2), 0.6, 1.0),
        (json.dumps({"name": "package", "version": [1, 2]}), 0.0, 0.25),
        ("step,loss\n1,2\n", 0.0, 0.0),
    ],
)
def test_the_sniffer_tells_logs_from_other_json(text: str, least: float, most: float, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(text)
    assert least <= READER.sniff(source.head(path), path) <= most
