"""Tables as trainers, spreadsheets and people write them."""

from __future__ import annotations

import csv as standard
import io
import math
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from poise.messages import render
from poise.readers import source
from poise.readers.base import RawRun, UnreadableError
from poise.readers.csv import READER, Table
from poise.readers.table_layout import layout

Points = dict[str, tuple[list[int], list[float]]]


def runs_of(folder: Path, text: str) -> list[RawRun]:
    path = folder / "log.txt"
    path.write_bytes(text.encode())
    assert READER.sniff(source.head(path), path) > 0.25
    return READER.read(path)


def read(folder: Path, text: str) -> RawRun:
    (run,) = runs_of(folder, text)
    return run


def points(run: RawRun) -> Points:
    return {name: (column.rows.tolist(), column.values.tolist()) for name, column in run.columns.items()}


def by_hand(text: str, delimiter: str = ",") -> Points:
    """The slow obvious way, for a table with a header and no ragged rows."""
    header, *rows = standard.reader(io.StringIO(text), delimiter=delimiter)
    found: Points = {}
    for i, row in enumerate(rows):
        for name, cell in zip(header, row, strict=True):
            try:
                value = float(cell)
            except ValueError:
                continue
            known = found.setdefault(name.strip(), ([], []))
            known[0].append(i)
            known[1].append(value)
    return found


def same(left: Points, right: Points) -> None:
    assert left.keys() == right.keys()
    for name, (rows, values) in left.items():
        assert rows == right[name][0], name
        np.testing.assert_array_equal(values, right[name][1], name)


SIMPLE = {"step": ([0, 1, 2], [1.0, 2.0, 3.0]), "loss": ([0, 1, 2], [0.5, 0.25, 0.125])}


@pytest.mark.parametrize(
    "text",
    [
        "step,loss\n1,0.5\n2,0.25\n3,0.125\n",
        "step,loss\r\n1,0.5\r\n2,0.25\r\n3,0.125",
        "\ufeffstep,loss\n1,0.5\n2,0.25\n3,0.125\n",
        "step;loss\n1;0.5\n2;0.25\n3;0.125\n",
        "step;loss\n1;0,5\n2;0,25\n3;0,125\n",
        "step\tloss\n1\t0.5\n2\t0.25\n3\t0.125\n",
        "step\tloss\n1\t0,5\n2\t0,25\n3\t0,125\n",
        "step|loss\n1|0.5\n2|0.25\n3|0.125\n",
        "| step | loss |\n|---|:--:|\n| 1 | 0.5 |\n| 2 | 0.25 |\n| 3 | 0.125 |\n",
        "   step,   loss  \n  1,   0.5 \n  2,  0.25\n  3, 0.125\n",
        '"step","loss"\n"1","0.5"\n"2","0.25"\n"3","0.125"\n',
        "step,loss\n+1,.5\n02,2.5e-1\n3.,+.125\n",
        "step loss\n1 0.5\n2 0.25\n3 0.125\n",
        "# step loss\n1 0.5\n2 0.25\n3 0.125\n",
        "sep=;\nstep;loss\n1;0.5\n2;0.25\n3;0.125\n",
        "step,loss\n\n1,0.5\n\n2,0.25\n3,0.125\n",
        "Training of model x\nstarted, finally\nstep,loss\n1,0.5\n2,0.25\n3,0.125\n",
        "step,loss\n1,tensor(0.5)\n2,np.float64(0.25)\n3,float32(0.125)\n",
        "# trained on Monday\nstep,loss\n1,0.5\n2,0.25\n3,0.125\n",
    ],
)
def test_however_it_is_laid_out_the_table_is_the_same(text: str, tmp_path: Path) -> None:
    run = read(tmp_path, text)
    assert points(run) == SIMPLE
    assert run.notes == []


def test_empty_cells_are_absent_and_nan_is_a_value(tmp_path: Path) -> None:
    text = "step,loss,acc\n1,,0.5\n2,nan,\n3,inf,\n4,-Infinity,0.25\n5,null,x\n"
    same(
        points(read(tmp_path, text)),
        {
            "step": ([0, 1, 2, 3, 4], [1, 2, 3, 4, 5]),
            "loss": ([1, 2, 3], [math.nan, math.inf, -math.inf]),
            "acc": ([0, 3], [0.5, 0.25]),
        },
    )


def test_sparse_rows_of_train_and_validation_keep_their_places(tmp_path: Path) -> None:
    text = "epoch,step,train_loss_step,val_loss\n" + "".join(
        f"{i // 10},{i},{1 / (i + 1)!r},\n" + (f"{i // 10},{i},,{2 / (i + 1)!r}\n" if i % 10 == 9 else "")
        for i in range(20_000)
    )
    run = read(tmp_path, text)
    same(points(run), by_hand(text))
    assert (run.format, run.trainer) == ("lightning-csv", "lightning")


def test_words_among_numbers_are_left_out(tmp_path: Path) -> None:
    text = "date,step,loss,host,done\n" + "".join(
        f"2026-01-01 10:00:{i:02d},{i},0.{i},node,true\n" for i in range(10, 40)
    )
    run = read(tmp_path, text)
    same(points(run), by_hand(text))
    assert list(run.columns) == ["step", "loss"]


def test_quoted_cells_may_hold_delimiters_and_line_ends(tmp_path: Path) -> None:
    text = 'step,note,loss\n1,"a, ""b""\nc",0.5\n2,"d",0.25\n3,e,0.125\n'
    assert points(read(tmp_path, text)) == SIMPLE


def test_a_header_in_the_middle_is_no_row_and_is_told(tmp_path: Path) -> None:
    run = read(tmp_path, "step,loss\n1,0.5\n2,0.25\nstep,loss\n1,0.5\n2,0.125\n")
    assert points(run) == {"step": ([0, 1, 2, 3], [1, 2, 1, 2]), "loss": ([0, 1, 2, 3], [0.5, 0.25, 0.5, 0.125])}
    assert render(run.notes[0]).startswith("the header is repeated in line 4")


def test_a_new_header_in_the_middle_names_the_rows_below_it(tmp_path: Path) -> None:
    run = read(tmp_path, "step,loss\n1,0.5\n2,0.25\n3,0.2\nstep,lr,loss\n4,0.1,0.125\n")
    assert points(run) == {
        "step": ([0, 1, 2, 3], [1, 2, 3, 4]),
        "loss": ([0, 1, 2, 3], [0.5, 0.25, 0.2, 0.125]),
        "lr": ([3], [0.1]),
    }


def test_a_table_without_header_says_so(tmp_path: Path) -> None:
    run = read(tmp_path, "1,0.5\n2,0.25\n3,nan\n")
    assert list(run.columns) == ["c0", "c1"]
    assert render(run.notes[0]) == "the table has no header; its columns are called c0 to c1"


def test_ragged_rows_are_read_and_counted(tmp_path: Path) -> None:
    run = read(tmp_path, "step,loss\n1,0.5\n2\n3,0.125,9\n4,0.1\n5,0.1\n")
    assert points(run) == {
        "step": ([0, 1, 2, 3, 4], [1, 2, 3, 4, 5]),
        "loss": ([0, 2, 3, 4], [0.5, 0.125, 0.1, 0.1]),
        "c2": ([2], [9]),
    }
    assert render(run.notes[0]) == "2 rows have more or fewer cells than the header, the first is line 3"


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    run = read(tmp_path, "step,loss,lr\n1,0.5,1\n2,0.25,1\n3,0.1")
    assert points(run)["loss"] == ([0, 1], [0.5, 0.25])
    assert "line 4" in render(run.notes[0])


def test_a_wandb_export_gives_one_run_per_run_without_the_bounds(tmp_path: Path) -> None:
    header = '"Step","big - run - loss","big - run - loss__MIN","big - run - loss__MAX","b - loss","b - loss__MIN","b - loss__MAX"\n'
    first, second = runs_of(
        tmp_path,
        header
        + '"1","0.5","0.4","0.6","","",""\n"2","","","","0.7","0.7","0.7"\n"3","0.2","0.2","0.2","0.6","0.6","0.6"\n',
    )
    assert points(first) == {"Step": ([0, 2], [1, 3]), "loss": ([0, 2], [0.5, 0.2])}
    assert points(second) == {"Step": ([1, 2], [2, 3]), "loss": ([1, 2], [0.7, 0.6])}
    assert first.format == second.format == "wandb-csv-export"
    assert first.path.endswith("#big - run")


@pytest.mark.parametrize(
    ("header", "format_", "trainer"),
    [
        ("epoch,accuracy,loss,lr,val_accuracy,val_loss", "keras-csv", "keras"),
        ("val_loss,val_accuracy,loss,accuracy", "keras-csv", "keras"),
        ("epoch,step,train_loss_step,train_loss_epoch", "lightning-csv", "lightning"),
        ("   epoch,  train/box_loss,  metrics/mAP50(B),  val/box_loss,  lr/pg0", "yolo-csv", "ultralytics"),
        ("episode_reward_mean,training_iteration,timesteps_total,info/learner/kl", "rllib-csv", "rllib"),
        ("rollout/ep_rew_mean,time/total_timesteps,train/approx_kl", "openai-logger-csv", "sb3"),
        ("eprewmean,eplenmean,loss/policy_loss", "openai-logger-csv", "baselines"),
        ("epoch,loss,acc", "csv", None),
    ],
)
def test_the_writer_shows_in_the_header(header: str, format_: str, trainer: str | None, tmp_path: Path) -> None:
    width = header.count(",") + 1
    run = read(tmp_path, header + "\n" + "".join(",".join([f"{i}.5"] * width) + "\n" for i in range(5)))
    assert (run.format, run.trainer) == (format_, trainer)
    assert list(run.columns) == [name.strip() for name in header.split(",")]


def test_settings_in_a_comment_become_configuration(tmp_path: Path) -> None:
    run = read(tmp_path, '#{"t_start": 1.5, "env_id": "CartPole-v1"}\nr,l,t\n1.0,10,0.5\n2.0,20,0.75\n')
    assert run.config == {"t_start": 1.5, "env_id": "CartPole-v1"}
    assert points(run)["r"] == ([0, 1], [1.0, 2.0])


def test_a_cell_may_hold_a_whole_histogram(tmp_path: Path) -> None:
    cell = '"[' + ", ".join(["0.5"] * 60_000) + ']"'
    run = read(tmp_path, "step,hist,loss\n1,[],0.5\n2,[],0.25\n" + f"3,{cell},0.125\n" * 2)
    assert points(run)["loss"] == ([0, 1, 2, 3], [0.5, 0.25, 0.125, 0.125])


def test_percentages_keep_their_number(tmp_path: Path) -> None:
    assert points(read(tmp_path, "step,acc\n1,50%\n2,62.5%\n"))["acc"] == ([0, 1], [50.0, 62.5])


CELLS = st.one_of(
    st.floats(width=32).map(repr),
    st.integers(-(10**6), 10**6).map(str),
    st.sampled_from(["", "", "nan", "inf", "1e-3", "+2", ".5", "1.", "007", "word", "true", "2026-01-01"]),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(st.integers(0, 10**6).map(str), CELLS, CELLS), min_size=3, max_size=30),
    delimiter=st.sampled_from(",;\t"),
)
def test_any_table_is_read_as_the_slow_obvious_way_reads_it(
    rows: list[tuple[str, ...]], delimiter: str, tmp_path: Path
) -> None:
    text = "".join(delimiter.join(row) + "\n" for row in [("step", "a", "b"), *rows])
    same(points(read(tmp_path, text)), by_hand(text, delimiter))


@pytest.mark.parametrize("seed", range(5))
def test_where_blocks_are_cut_does_not_matter(seed: int) -> None:
    draw = random.Random(seed)
    kinds = ["{i},{x},0.5\n", "{i},,{x}\n", "{i},nan,word\n", "step,a,b\n", "{i},{x}\n", '{i},"{x}",1\n']
    lines = [draw.choices(kinds, [80, 10, 5, 1, 2, 5])[0].format(i=i, x=draw.random()) for i in range(400)]
    found = layout("step,a,b\n1,2,3\n2,3,4\n")
    assert found is not None
    whole = Table(found)
    whole.add("".join(lines).encode())
    cut = Table(found)
    start = 0
    while start < len(lines):
        stop = start + draw.randint(1, 40)
        cut.add("".join(lines[start:stop]).encode())
        start = stop

    left, right = whole.finish(), cut.finish()

    assert whole.notes() == cut.notes()
    for name, column in left.items():
        np.testing.assert_array_equal(column.rows, right[name].rows)
        np.testing.assert_array_equal(column.values, right[name].values)


@pytest.mark.parametrize(
    "text",
    [
        "Hello, world\nhow, are you\n",
        "step,loss\n",
        "one line",
        "a,b\nc,d\n",
        "0.5\n",
        '{"a": 1}\n',
        "epoch\t1\tloss\t0.5\nepoch\t2\tloss\t0.4\n",
    ],
)
def test_what_is_no_table_of_numbers_is_refused_by_name(text: str, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(text)
    with pytest.raises(UnreadableError, match=r"log\.csv"):
        READER.read(path)
