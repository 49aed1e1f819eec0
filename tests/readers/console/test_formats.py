from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from poise.readers import console
from poise.readers.base import RawRun
from poise.readers.source import head

sys.path.insert(0, str(Path(__file__).parent))
from texts import FORMATS, lines, loss


def run_of(folder: Path, text: str | bytes) -> RawRun:
    path = folder / "train.log"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return console.read(path)[0]


def values(run: RawRun, name: str) -> list[float]:
    return run.columns[name].values.tolist()


@pytest.mark.parametrize("name", FORMATS)
def test_the_loss_and_the_step_of_every_line_are_read(name: str, tmp_path: Path) -> None:
    write, loss_name, step_name = FORMATS[name]
    run = run_of(tmp_path, lines(60, write))
    np.testing.assert_allclose(values(run, loss_name), [loss(i) for i in range(1, 61)], rtol=0, atol=1e-9)
    assert run.columns[loss_name].rows.tolist() == list(range(60))
    if step_name:
        assert values(run, step_name) == list(range(1, 61))


@pytest.mark.parametrize("name", FORMATS)
def test_a_log_is_known_by_its_content(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(lines(5, FORMATS[name][0]))
    assert console.sniff(head(path), path) >= 0.5


@pytest.mark.parametrize(
    ("written", "value"),
    [("nan", np.nan), ("NaN", np.nan), ("inf", np.inf), ("-inf", -np.inf), ("1.2E+01", 12.0), ("1,234,567", 1234567.0)],
)
def test_numbers_in_all_spellings_are_read_as_written(written: str, value: float, tmp_path: Path) -> None:
    run = run_of(tmp_path, lines(40, lambda i: f"step: {i} | loss: {written if i == 7 else loss(i)} | lr: 0.1"))
    expected = [value if i == 7 else loss(i) for i in range(1, 41)]
    np.testing.assert_array_equal(values(run, "loss"), expected)


def test_percent_becomes_a_share_and_other_units_stay_in_the_name(tmp_path: Path) -> None:
    run = run_of(
        tmp_path, lines(5, lambda i: f"step {i}, accuracy: 45.6%, time: 12ms, speed: 3.2k tok/s, mem: 285MB, loss: {i}")
    )
    assert values(run, "accuracy") == pytest.approx([0.456] * 5)
    assert values(run, "time (ms)") == [12.0] * 5
    assert values(run, "mem (MB)") == [285.0] * 5


def test_lines_of_one_step_are_one_record(tmp_path: Path) -> None:
    text = "".join(
        f"Epoch: {e}/30\nTime Taken: 46.20s - LR: 9.98e-05\nTrain Loss: {loss(e)} - Train Perplexity: 17.1\nValid Loss: {loss(e) + 1}\n-----\n"
        for e in range(1, 9)
    )
    run = run_of(tmp_path, text)
    assert {name: column.rows.tolist() for name, column in run.columns.items()} == {
        name: list(range(8))
        for name in ("Epoch", "Epoch total", "Time Taken (s)", "LR", "Train Loss", "Train Perplexity", "Valid Loss")
    }


def test_a_value_with_its_running_average_gives_two_names(tmp_path: Path) -> None:
    run = run_of(
        tmp_path,
        lines(
            5,
            lambda i: (
                f"   --> STEP: {i}/1250 -- GLOBAL_STEP: {i}\n     | > loss: {loss(i)}  (2.5)\n     | > step_time: 0.1  (0.2)"
            ),
        ),
    )
    assert values(run, "loss") == [loss(i) for i in range(1, 6)]
    assert values(run, "loss (average)") == [2.5] * 5
    assert run.columns["loss"].rows.tolist() == run.columns["GLOBAL_STEP"].rows.tolist()


def test_a_bar_that_is_drawn_again_counts_once_with_its_last_numbers(tmp_path: Path) -> None:
    def bar(i: int, value: float) -> str:
        return f"\rEpoch 0:  {i:3d}%|####      | {i}/50 [00:05<00:20,  2.0it/s, v_num=1, train_loss={value:.3f}]"

    run = run_of(tmp_path, "".join(bar(i, 9.0) + bar(i, i / 10) for i in range(1, 51)))
    assert values(run, "train_loss") == [i / 10 for i in range(1, 51)]
    assert values(run, "step") == list(range(1, 51))


def test_bars_give_their_steps_to_dicts_that_state_none(tmp_path: Path) -> None:
    text = ""
    for i in range(1, 101):
        text += f"\r {i:3d}%|###   | {i}/100 [00:10<01:30, 3.21it/s]"
        if i % 10 == 0:
            text += f"\r      \r{{'loss': {loss(i)}, 'learning_rate': 5e-05, 'epoch': {i / 33:.2f}}}\n"
            text += (
                "".join(f"\r{k * 25:3d}%|##  | {k}/4 [00:00<00:01, 20.1it/s]" for k in range(1, 5))
                + f"\r{{'eval_loss': 2.0, 'epoch': {i / 33:.2f}}}\n"
            )
    run = run_of(tmp_path, text)
    assert values(run, "step") == list(range(10, 101, 10))
    assert len(run.columns["eval_loss"].values) == 10


def test_validation_lines_are_told_apart_by_their_heading_or_head(tmp_path: Path) -> None:
    text = "".join(
        f"Train: [{e}/9]\tlr 0.003\tloss {loss(e)} (2.4)\nValidate: \tTime 0.007 (0.031)\tLoss 2.3 (2.4)\n"
        for e in range(5)
    )
    run = run_of(tmp_path, text)
    assert values(run, "val Loss") == [2.3] * 5
    assert values(run, "loss") == [loss(e) for e in range(5)]


def test_a_table_under_a_header_is_read_by_its_columns(tmp_path: Path) -> None:
    run = run_of(tmp_path, "  step      loss        lr\n" + lines(20, lambda i: f"{i:6d}  {loss(i):8.4f}  1.0e-03"))
    assert values(run, "loss") == [loss(i) for i in range(1, 21)]
    assert values(run, "step") == list(range(1, 21))


def test_ranks_that_differ_are_kept_apart_and_share_their_records(tmp_path: Path) -> None:
    run = run_of(
        tmp_path, "".join(f"[rank{r}]: step {i} loss {loss(i) + r} lr 0.1\n" for i in range(10) for r in (0, 1))
    )
    assert values(run, "loss@rank1") == [loss(i) + 1 for i in range(10)]
    assert run.columns["loss@rank0"].rows.tolist() == run.columns["loss@rank1"].rows.tolist() == list(range(10))
    assert "lr" in run.columns and "lr@rank0" not in run.columns


def test_settings_before_training_are_no_data(tmp_path: Path) -> None:
    text = "Namespace(lr=20, model='rnn', clip=0.25)\nloss: focal\nbatch_size: 32\n  adam_eps ........ 1e-08\nUsing torch version: 2.4.1\n"
    run = run_of(tmp_path, text + lines(9, lambda i: f"step {i} loss {loss(i)}"))
    assert {k: run.config[k] for k in ("lr", "model", "clip", "batch_size", "adam_eps")} == {
        "lr": 20,
        "model": "rnn",
        "clip": 0.25,
        "batch_size": 32,
        "adam_eps": 1e-08,
    }
    assert set(run.columns) == {"step", "loss"}
    assert run.versions == {"torch": "2.4.1"}


def test_source_code_and_prose_are_no_data(tmp_path: Path) -> None:
    code = "import torch\ndef step(x):\n    loss = criterion(x, 3) / 10\n    return loss\nbest_loss = 1e9\nThe loss was 3.5 when we tried 7 layers in 2021.\n"
    run = run_of(tmp_path, code + lines(9, lambda i: f"step {i} loss {loss(i)}"))
    assert values(run, "loss") == [loss(i) for i in range(1, 10)]


@pytest.mark.parametrize(
    "encode",
    [
        lambda t: t.encode("utf-16"),
        lambda t: t.replace("\n", "\r\n").encode(),
        lambda t: b"\xef\xbb\xbf" + t.encode(),
        lambda t: t.encode() + b"\xff\xfe step 1",
    ],
)
def test_the_encoding_does_not_matter(encode: object, tmp_path: Path) -> None:
    run = run_of(tmp_path, encode(lines(20, lambda i: f"step {i}, loss {loss(i)}")))  # type: ignore[operator]
    assert values(run, "loss") == [loss(i) for i in range(1, 21)]


def test_a_line_with_less_than_usual_is_still_a_record(tmp_path: Path) -> None:
    usual = lines(
        9,
        lambda i: (
            f" iteration {i * 10}/ 1000 | lm loss: {loss(i)} | grad norm: 1.0 | number of skipped iterations: 0 |"
        ),
    )
    run = run_of(tmp_path, " iteration 5/ 1000 | number of skipped iterations: 5 |\n" + usual)
    assert values(run, "number of skipped iterations") == [5.0] + [0.0] * 9
    assert values(run, "iteration")[0] == 5.0


def test_blocks_do_not_show_in_the_result(tmp_path: Path) -> None:
    path = tmp_path / "long.log"
    path.write_text(lines(60_000, lambda i: f"step:{i} loss:{i / 7:.4f} lr:{'1e-4' if i % 3 else '0.0001'} tps:12345"))
    run = console.read(path)[0]
    np.testing.assert_allclose(run.columns["loss"].values, np.round(np.arange(1, 60_001) / 7, 4), atol=1e-9)
    assert run.columns["loss"].rows.tolist() == list(range(60_000))


@pytest.mark.parametrize("head", ["Step {}: ", "epoch {}: ", "iter {}= ", "[{}]: "])
def test_the_first_key_behind_a_counter_and_its_colon_is_read(head: str, tmp_path: Path) -> None:
    run = run_of(tmp_path, lines(30, lambda i: f"{head.format(i)}loss={loss(i)} lr={1e-4 * i:.2e}"))
    assert values(run, "loss") == [loss(i) for i in range(1, 31)]
