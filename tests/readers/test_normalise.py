"""From a raw run to frames: steps, branches, values, notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from poise.messages import render
from poise.readers.base import RawColumn, RawRun, UnreadableError
from poise.readers.normalise import Run, normalise
from poise.readers.settings import canonical_config
from poise.readers.steps import step_rank
from poise.readers.values import resolution
from poise.records import Event

NAN = float("nan")


def raw(records: Sequence[Mapping[str, float]], **more: object) -> RawRun:
    """A raw run of records as a text reader would leave it."""
    names = list(dict.fromkeys(name for record in records for name in record))
    columns = {}
    for name in names:
        rows = [i for i, record in enumerate(records) if name in record]
        values = [records[i][name] for i in rows]
        columns[name] = RawColumn(np.array(rows, np.int64), np.array(values, np.float64))
    return RawRun("log", "generic", columns=columns, **more)  # type: ignore[arg-type]


def notes(run: Run) -> list[str]:
    """Ids of the notes; each of them must have a text."""
    assert all(render(note) and render(note, "zh") for note in run.info.notes)
    return [note.id for note in run.info.notes]


def test_numbers_of_one_record_share_its_step() -> None:
    run = normalise(
        raw([{"step": 10, "loss": 3.0, "lr": 0.1}, {"step": 20, "eval_loss": 2.0}, {"step": 30, "loss": 1.0}])
    )
    columns = run.frames[0].columns
    assert columns["loss"].steps.tolist() == [10, 30]
    assert columns["eval_loss"].steps.tolist() == [20]
    assert columns["learning_rate"].values.tolist() == [0.1]
    assert (run.main, run.points, run.info.names["learning_rate"]) == ("loss", 3, "lr")


def test_a_step_said_before_the_numbers_is_carried_forward() -> None:
    run = normalise(raw([{"epoch": 1}, {"loss": 3.0}, {"epoch": 2}, {"loss": 2.0}, {"val_loss": 2.5}]))
    assert run.frames[0].columns["loss"].steps.tolist() == [1, 2]
    assert run.frames[0].columns["eval_loss"].steps.tolist() == [2]


def test_a_step_said_after_the_numbers_is_carried_back() -> None:
    run = normalise(raw([{"loss": 3.0}, {"step": 1}, {"loss": 2.0}, {"step": 2}]))
    assert run.frames[0].columns["loss"].steps.tolist() == [1, 2]


def test_the_global_step_is_preferred_and_a_constant_plan_is_no_step() -> None:
    records = [
        {"total_steps": 90.0, "_step": float(i), "train/global_step": 5.0 * i, "train/loss": 1.0} for i in range(6)
    ]
    run = normalise(raw(records))
    assert run.frames[0].columns["loss"].steps.tolist() == [0, 5, 10, 15, 20, 25]
    assert run.info.config["max_steps"] == 90
    assert run.info.config["logging_steps"] == 5


def test_without_a_step_rows_are_counted_and_it_is_said() -> None:
    run = normalise(raw([{"loss": 3.0, "val_loss": 3.0}, {"loss": 2.0, "val_loss": 3.0}]))
    assert run.frames[0].columns["eval_loss"].steps.tolist() == [0, 1]
    assert notes(run) == ["reading.no-steps"]


def test_epochs_in_small_fractions_do_not_become_steps() -> None:
    run = normalise(raw([{"epoch": i / 100, "loss": 1.0 / (1 + i)} for i in range(50)]))
    assert run.frames[0].columns["loss"].steps.tolist() == list(range(50))


def test_batches_that_restart_in_each_epoch_are_counted_on_by_the_stated_length() -> None:
    records = [{"epoch": e, "batch": b, "batches": 2983, "loss": 1.0} for e in (1, 2) for b in range(200, 2983, 200)]
    run = normalise(raw(records))
    steps = run.frames[0].columns["loss"].steps
    assert steps[0] == 200
    assert steps[14] == 2983 + 200
    assert notes(run) == ["reading.unrolled"]


def test_batches_from_zero_without_a_stated_length_are_counted_on_by_their_stride() -> None:
    run = normalise(raw([{"epoch": e, "iter": b, "loss": 1.0} for e in range(3) for b in (0, 10, 20, 30)]))
    assert run.frames[0].columns["loss"].steps.tolist() == list(range(0, 120, 10))


def test_headers_of_epochs_over_many_unnumbered_rows_do_not_make_one_step_of_them() -> None:
    records: list[dict[str, float]] = []
    for epoch in range(5):
        records += [{"epoch": epoch}, *({"loss": 2.0 - 0.01 * i} for i in range(100))]
    run = normalise(raw(records))
    assert run.frames[0].columns["loss"].steps.tolist() == list(range(500))


def test_a_global_step_with_epochs_keeps_the_logs_own_numbers() -> None:
    run = normalise(raw([{"epoch": i // 10, "step": i, "loss": 1.0} for i in range(30)]))
    assert run.frames[0].columns["loss"].steps.tolist() == list(range(30))


def test_concatenated_runs_become_branches() -> None:
    records = [{"step": s, "loss": 5.0 - 0.1 * s} for _ in range(3) for s in range(10)]
    run = normalise(raw([dict(r, loss=r["loss"] + i) for i, r in enumerate(records)]))
    assert [f.columns["loss"].steps.tolist() for f in run.frames] == [list(range(10))] * 3
    assert [f.branch for f in run.frames] == [0, 1, 2]
    assert run.points == 30
    assert notes(run) == ["reading.restarts"]


def test_a_resume_that_repeats_steps_is_a_branch_and_says_where() -> None:
    steps = [*range(0, 105, 5), *range(80, 160, 5)]
    run = normalise(raw([{"step": s, "loss": 1.0 / (1 + i)} for i, s in enumerate(steps)]))
    assert [int(f.columns["loss"].steps[0]) for f in run.frames] == [0, 80]
    assert run.frames[1].events == (Event("restart", 80, {"branch": 1}),)


def test_late_and_doubled_lines_are_kept_and_sorted_with_one_note() -> None:
    run = normalise(raw([{"step": s, "loss": float(i), "lr": 0.1} for i, s in enumerate([1, 2, 4, 3, 3, 5])]))
    assert len(run.frames) == 1
    assert run.frames[0].columns["loss"].steps.tolist() == [1, 2, 3, 3, 4, 5]
    assert run.frames[0].columns["loss"].values.tolist() == [0.0, 1.0, 3.0, 4.0, 2.0, 5.0]
    assert notes(run) == ["reading.step-order"]
    assert run.info.notes[0].params["count"] == 2


def test_a_table_with_the_newest_row_first_is_turned_around() -> None:
    run = normalise(raw([{"step": s, "loss": 9.0 / (1 + s)} for s in range(50, -1, -1)]))
    assert run.frames[0].columns["loss"].steps.tolist() == list(range(51))


def test_rows_shuffled_by_writers_are_no_restarts() -> None:
    rng = np.random.default_rng(3)
    steps = np.concatenate([rng.permutation(10) + 10 * i for i in range(30)])
    run = normalise(raw([{"step": int(s), "loss": float(s)} for s in steps]))
    assert [f.columns["loss"].values.tolist() for f in run.frames] == [list(map(float, range(300)))]


def test_a_late_batch_of_lines_that_fills_a_gap_is_no_restart() -> None:
    steps = [*range(10), *range(20, 30), *range(10, 20), *range(30, 60)]
    run = normalise(raw([{"step": s, "loss": float(s)} for s in steps]))
    assert len(run.frames) == 1


def test_every_line_twice_is_folded_and_said() -> None:
    rows = [{"step": i, "loss": 1.0 / (i + 1)} for i in range(20)]
    run = normalise(raw([r for r in rows for _ in range(2)]))
    assert run.frames[0].columns["loss"].steps.tolist() == list(range(20))
    assert notes(run) == ["reading.said-twice"]


def test_a_stretch_that_is_printed_twice_is_read_once() -> None:
    rows = [{"step": i, "loss": 1.0 / (i + 1)} for i in range(20)]
    run = normalise(raw(rows + rows))
    assert len(run.frames) == 1
    assert "reading.copy" in notes(run)


def test_ranks_become_a_matrix_and_the_mean_of_the_finite_ones() -> None:
    rows = [{"step": s, f"loss@rank{r}": NAN if (s, r) == (2, 1) else float(r)} for s in range(5) for r in range(3)]
    run = normalise(raw(rows))
    table, mean = run.frames[0].columns["loss/ranks"], run.frames[0].columns["loss"]
    assert table.shape == "ranks"
    assert table.values.shape == (5, 3)
    assert mean.values.tolist() == [1.0, 1.0, 1.0, 1.0, 1.0]
    assert [n.params["ranks"] for n in run.info.notes if n.id == "reading.ranks-not-finite"] == ["1"]


def test_placeholders_are_removed_and_said_but_zeros_that_are_real_stay() -> None:
    row = {"lm loss": 0.0, "learning rate": 0.0, "grad norm": 0.0, "loss scale": -1.0}
    run = normalise(raw([{"iteration": i, **row} for i in range(5)]))
    assert set(run.frames[0].columns) == {"loss", "learning_rate"}
    assert notes(run) == ["reading.placeholder", "reading.placeholder"]


def test_a_loss_of_zero_beside_a_gradient_that_is_not_a_number_stays() -> None:
    run = normalise(raw([{"step": i, "loss": 0.0, "grad_norm": NAN} for i in range(5)]))
    assert run.frames[0].columns["loss"].values.tolist() == [0.0] * 5
    assert np.isnan(run.frames[0].columns["grad_norm"].values).all()


def test_squares_and_signs_are_converted_and_said() -> None:
    rows = [{"step": i, "reward": 1.0 + i, "grad_norm_square": 4.0 + i, "train/entropy_loss": -0.5} for i in range(3)]
    run = normalise(raw(rows))
    assert run.frames[0].columns["grad_norm"].values[0] == 2.0
    assert run.frames[0].columns["entropy"].values.tolist() == [0.5] * 3
    assert sorted(notes(run)) == ["reading.converted-negate", "reading.converted-sqrt"]


def test_a_lone_perplexity_speaks_for_the_loss() -> None:
    run = normalise(raw([{"step": i, "ppl": float(np.exp(3.0))} for i in range(3)]))
    assert run.frames[0].columns["loss"].values == pytest.approx([3.0] * 3)
    assert notes(run) == ["reading.converted-log"]


def test_points_with_steps_of_their_own_keep_them() -> None:
    steps = np.arange(0, 100, 10)
    columns = {
        "loss": RawColumn(np.arange(10), np.ones(10), steps),
        "val_loss": RawColumn(np.array([10]), np.ones(1), np.array([95])),
    }
    run = normalise(RawRun("log", "tensorboard", columns=columns))
    assert run.frames[0].columns["loss"].steps.tolist() == steps.tolist()
    assert run.frames[0].columns["eval_loss"].steps.tolist() == [95]
    assert notes(run) == []


def test_names_of_no_meaning_are_kept_apart() -> None:
    run = normalise(raw([{"step": i, "loss": 1.0, "flubber": 2.0} for i in range(3)]))
    assert run.not_named == ("flubber",)
    assert "other/flubber" in run.frames[0].columns


def test_a_step_can_be_demanded() -> None:
    run = normalise(raw([{"step": 0.0, "tick": 7.0 * i, "loss": 1.0} for i in range(4)]), {"step": "tick"})
    assert run.frames[0].columns["loss"].steps.tolist() == [0, 7, 14, 21]


def test_events_go_to_the_branch_that_reaches_their_step() -> None:
    events = [Event("overflow", 15), Event("run-end", None, {"complete": True})]
    run = normalise(
        raw([{"step": s, "loss": 9.0 / (1 + i)} for i, s in enumerate([*range(10), *range(20)])], events=events)
    )
    assert [e.kind for e in run.frames[1].events] == ["restart", "overflow", "run-end"]


def test_columns_that_do_not_fit_together_are_an_error_that_names_them() -> None:
    broken = RawRun("log", "generic", columns={"loss": RawColumn(np.arange(3), np.ones(4))})
    with pytest.raises(UnreadableError, match="'loss'"):
        normalise(broken)


@pytest.mark.parametrize(("digits", "expected"), [(0, 0.5), (2, 0.005), (4, 5e-5), (8, 5e-9)])
def test_the_last_printed_digit_is_found(digits: int, expected: float) -> None:
    values = np.round(np.random.default_rng(1).uniform(1, 9, 500), digits)
    assert resolution(values) == pytest.approx(expected)


def test_scientific_notation_has_a_resolution_and_exact_numbers_have_none() -> None:
    rng = np.random.default_rng(2)
    printed = np.array([float(f"{v:.3e}") for v in rng.uniform(1e-11, 9e-11, 200)])
    assert resolution(printed) == pytest.approx(5e-15, rel=1e-6)
    assert resolution(rng.uniform(1, 9, 500)) == 0.0
    assert resolution(rng.uniform(1, 9, 500).astype(np.float32).astype(np.float64)) == 0.0
    assert resolution(np.array([1.0, 2.0] * 50)) == 0.0


def test_settings_are_found_under_canonical_names_too() -> None:
    config = {
        "args.lr": "2e-5",
        "n_vocab": 50257,
        "bf16": True,
        "warmup_ratio": 0.1,
        "max_iters": 1000,
        "clip": 1.0,
        "optim": "adamw",
    }
    found = canonical_config(config)
    assert found.items() >= config.items()
    wanted = {"learning_rate": 2e-5, "vocab_size": 50257, "precision": "bf16", "warmup_steps": 100, "max_steps": 1000}
    assert {k: found[k] for k in wanted} == wanted
    assert (found["max_grad_norm"], found["optimizer"]) == (1.0, "adamw")


def test_columns_of_the_same_records_share_their_steps() -> None:
    rng, rows = np.random.default_rng(0), np.arange(10_000)
    columns = {"step": RawColumn(rows, rows.astype(float))}
    columns |= {name: RawColumn(rows, rng.random(len(rows))) for name in ("loss", "grad_norm", "lr", "accuracy")}
    run = normalise(RawRun("log", "csv", columns=columns))
    assert run.frames[0].columns["loss"].steps is run.frames[0].columns["grad_norm"].steps


_NAMES = st.sampled_from(
    [
        "step",
        "epoch",
        "batch",
        "loss",
        "train_loss",
        "val_loss",
        "grad_norm",
        "lr",
        "reward",
        "flubber",
        "loss@rank0",
        "loss@rank1",
        "time",
    ]
)
_VALUES = st.one_of(st.floats(width=64), st.integers(-5, 40).map(float))


@st.composite
def _columns(draw: st.DrawFn) -> RawColumn:
    values = draw(hnp.arrays(np.float64, st.integers(0, 30), elements=_VALUES))
    rows = draw(hnp.arrays(np.int64, len(values), elements=st.integers(0, 60)))
    own = draw(st.booleans()) and draw(st.booleans())
    steps = draw(hnp.arrays(np.int64, len(values), elements=st.integers(-3, 50))) if own else None
    return RawColumn(np.sort(rows), values, steps)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.one_of(_NAMES, st.text(max_size=8)), _columns(), max_size=6))
def test_any_raw_run_gives_ordered_frames_and_loses_no_row(columns: dict[str, RawColumn]) -> None:
    run = normalise(RawRun("log", "any", columns=columns))
    for frame in run.frames:
        for column in frame.columns.values():
            assert all(a <= b for a, b in pairwise(column.steps.tolist()))
            assert len(column.steps) == len(column.values) > 0
    told = {"reading.said-twice", "reading.copy", "reading.placeholder", "reading.ranks"}
    if told.isdisjoint(notes(run)):
        kept = sum(len(c) for f in run.frames for c in f.columns.values())
        axes = [len(c.values) for name, c in columns.items() if step_rank(name) is not None]
        assert sum(len(c.values) for c in columns.values()) - kept in (0, *axes)
