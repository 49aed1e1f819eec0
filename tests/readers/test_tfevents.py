"""Event files as PyTorch, Keras and TensorFlow write them, and as crashes and bad disks leave them."""

from __future__ import annotations

import struct
from pathlib import Path

import event_files as ef
import numpy as np
import pytest

from poise.messages import render
from poise.readers import tfevents, tfrecord
from poise.readers.base import RawRun, UnreadableError


def read(path: Path, *records: bytes) -> RawRun:
    path.write_bytes(ef.version() + b"".join(records))
    [run] = tfevents.read(path)
    return run


def values(run: RawRun, name: str) -> list[float]:
    return run.columns[name].values.tolist()


def steps(run: RawRun, name: str) -> list[int]:
    found = run.columns[name].steps
    assert found is not None
    return found.tolist()


def test_scalars_keep_steps_values_and_arrival_order(tmp_path: Path) -> None:
    order = [0, 1, 2, 300, 70000, 2, 3]  # a restart at 2
    run = read(tmp_path / "e", *(ef.event(s, ef.scalar("loss", i + 0.5)) for i, s in enumerate(order)))

    assert steps(run, "loss") == order
    assert values(run, "loss") == [i + 0.5 for i in range(7)]
    assert run.columns["loss"].rows.tolist() == list(range(7))


def test_events_of_one_step_share_a_record(tmp_path: Path) -> None:
    tags = ("train/loss", "train/grad_norm", "lr")
    run = read(tmp_path / "e", *(ef.event(s, ef.scalar(tag, s)) for s in range(9) for tag in tags))

    assert list(run.columns) == [*tags, "wall_time"]
    assert all(column.rows.tolist() == list(range(9)) for column in run.columns.values())


def test_several_values_in_one_event_are_all_read(tmp_path: Path) -> None:
    run = read(tmp_path / "e", *(ef.event(s, ef.scalar("a", s), ef.scalar("b", -s)) for s in range(1, 9)))

    assert values(run, "a") == [-v for v in values(run, "b")] == list(range(1, 9))


def test_nan_and_infinity_are_kept(tmp_path: Path) -> None:
    run = read(tmp_path / "e", *(ef.event(i, ef.scalar("loss", v)) for i, v in enumerate([1, np.nan, np.inf, -np.inf])))

    np.testing.assert_array_equal(values(run, "loss"), [1, np.nan, np.inf, -np.inf])


@pytest.mark.parametrize(
    ("dtype", "content"),
    [
        (1, ef.sub(4, struct.pack("<f", 2.5))),
        (1, ef.sub(5, struct.pack("<f", 2.5))),
        (2, ef.sub(4, struct.pack("<d", 2.5))),
        (2, ef.sub(6, struct.pack("<d", 2.5))),
        (14, ef.sub(4, struct.pack("<f", 2.5)[2:])),
        (14, ef.sub(13, ef.varint(0x4020))),
        (19, ef.sub(4, struct.pack("<e", 2.5))),
        (19, ef.sub(13, ef.varint(0x4100))),
    ],
)
@pytest.mark.parametrize("count", [1, 9])
def test_a_number_in_any_tensor_form_is_read(tmp_path: Path, dtype: int, content: bytes, count: int) -> None:
    run = read(tmp_path / "e", *(ef.event(s, ef.tensor("epoch_loss", dtype, content)) for s in range(count)))

    assert values(run, "epoch_loss") == [2.5] * count


@pytest.mark.parametrize("value", [0, 7, -3])
def test_integer_tensors_are_read(tmp_path: Path, value: int) -> None:
    run = read(
        tmp_path / "e",
        *(ef.event(s, ef.tensor("long", 9, ef.sub(10, ef.varint(value)))) for s in range(5)),
        *(ef.event(s, ef.tensor("wide", 9, ef.sub(4, struct.pack("<q", value)))) for s in range(5)),
    )

    assert values(run, "long") == values(run, "wide") == [value] * 5


def test_what_is_no_scalar_is_skipped(tmp_path: Path) -> None:
    shape = ef.sub(2, ef.sub(2, b"\x08\x03"))
    vector = ef.sub(1, ef.sub(1, b"vector") + ef.sub(8, b"\x08\x01" + shape + ef.sub(4, bytes(12))))
    picture = ef.sub(1, ef.sub(1, b"image") + ef.sub(4, b"x" * 5000))
    text = ef.tensor("note/text_summary", 7, ef.sub(8, b"hello"), "text")
    run = read(
        tmp_path / "e", ef.event(0, vector), ef.event(0, picture), ef.event(0, text), ef.event(1, ef.scalar("loss", 1))
    )

    assert list(run.columns) == ["loss", "wall_time"]


def test_arguments_logged_as_text_are_the_configuration(tmp_path: Path) -> None:
    text = ef.tensor("args/text_summary", 7, ef.sub(8, b'{"learning_rate": 0.1, "output_dir": "x"}'), "text")
    run = read(tmp_path / "e", ef.event(0, text), ef.event(1, ef.scalar("loss", 1)))

    assert run.config == {"learning_rate": 0.1, "output_dir": "x"}


def test_a_torn_tail_gives_the_good_part_and_says_where(tmp_path: Path) -> None:
    whole = [ef.event(s, ef.scalar("loss", s)) for s in range(20)]
    run = read(tmp_path / "e", *whole[:-1], whole[-1][:-5])

    assert steps(run, "loss") == list(range(19))
    assert str(len(ef.version()) + sum(map(len, whole[:-1]))) in render(run.notes[-1])


def test_any_flipped_byte_costs_at_most_its_record(tmp_path: Path) -> None:
    whole = [ef.event(s, ef.scalar("loss", s)) for s in range(12)]
    good = ef.version() + b"".join(whole)
    start = len(ef.version()) + sum(map(len, whole[:5]))
    for place in range(start, start + len(whole[5])):
        damaged = bytearray(good)
        damaged[place] ^= 0x41
        (tmp_path / "e").write_bytes(damaged)
        [run] = tfevents.read(tmp_path / "e")
        assert [s for s in range(12) if s not in steps(run, "loss")] == [5], f"byte {place - start} of the record"
        assert "damaged" in render(run.notes[-1])


def test_a_file_of_damage_ends_and_is_called_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(ef.version() + np.random.default_rng(0).bytes(1 << 21) + bytes(1 << 21))

    with pytest.raises(UnreadableError, match="holds no scalars"):
        tfevents.read(path)


def test_a_record_larger_than_any_number_is_skipped_unseen(tmp_path: Path) -> None:
    picture = b"\x2a" + ef.varint(tfrecord.LARGEST) + bytes(tfrecord.LARGEST)
    length = struct.pack("<Q", len(picture))
    huge = length + struct.pack("<I", ef.crc(length)) + picture + bytes(4)
    run = read(tmp_path / "e", ef.event(1, ef.scalar("loss", 1)), huge, ef.event(2, ef.scalar("loss", 2)))

    assert steps(run, "loss") == [1, 2]
    assert run.notes == []


def test_files_of_one_run_are_joined_by_wall_time(tmp_path: Path) -> None:
    late, early = tmp_path / "a", tmp_path / "b"
    late.write_bytes(b"".join(ef.event(s, ef.scalar("loss", 2), wall=200.0) for s in (5, 6)))
    early.write_bytes(b"".join(ef.event(s, ef.scalar("loss", 1), wall=100.0) for s in (4, 5)))
    [run] = tfevents.join([late, early])

    assert steps(run, "loss") == [4, 5, 5, 6]
    assert values(run, "loss") == [1, 1, 2, 2]


def test_files_of_different_folders_are_told_apart(tmp_path: Path) -> None:
    for part in ("train", "validation"):
        (tmp_path / part).mkdir()
        (tmp_path / part / "e").write_bytes(b"".join(ef.event(s, ef.scalar("epoch_loss", s)) for s in range(5)))
    [run] = tfevents.join([tmp_path / "train" / "e", tmp_path / "validation" / "e"])

    assert set(run.columns) == {"train/epoch_loss", "validation/epoch_loss", "wall_time"}


def test_events_without_a_step_are_counted(tmp_path: Path) -> None:
    run = read(tmp_path / "e", *(ef.event(0, ef.scalar("loss", i)) for i in range(6)))

    assert run.columns["loss"].steps is None
    assert run.columns["loss"].rows.tolist() == list(range(6))


def test_tensorboard_reads_the_same(tmp_path: Path) -> None:
    loader = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader")
    rng = np.random.default_rng(3)
    path = tmp_path / "events.out.tfevents.1"
    tags = [f"layer{i}/norm" for i in range(40)] + ["loss", "lr"]
    records = [ef.event(s * 37, ef.scalar(tag, rng.normal())) for s in range(30) for tag in tags]
    run = read(path, *records, ef.event(5, ef.tensor("acc", 1, ef.sub(4, struct.pack("<f", 0.25)))))

    expected: dict[str, list[tuple[int, float]]] = {}
    for event in loader.LegacyEventFileLoader(str(path)).Load():
        for value in event.summary.value:
            number = value.simple_value or struct.unpack("<f", value.tensor.tensor_content or bytes(4))[0]
            expected.setdefault(value.tag, []).append((event.step, number))
    del run.columns["wall_time"]
    assert {name: list(zip(steps(run, name), values(run, name), strict=True)) for name in run.columns} == expected
