from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from poise.readers import console
from poise.readers.base import RawRun, UnreadableError

sys.path.insert(0, str(Path(__file__).parent))
from texts import FORMATS, lines

_PIECES = [
    b"",
    b"\r",
    b"\n",
    b"\x1b[31m",
    b"\xff",
    b"nan",
    b"|",
    b"[",
    b"(",
    b"{'",
    b"%|",
    b": ",
    b"=",
    b"\x00",
    b"1e999",
    b"-",
    b".",
    b"\t",
    b"tensor(",
    b"12:30",
]


@settings(
    max_examples=300, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    name=st.sampled_from(sorted(FORMATS)),
    cuts=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 30), st.sampled_from(_PIECES)), max_size=12),
)
def test_mutated_text_gives_a_run_or_a_clear_error(
    name: str, cuts: list[tuple[float, int, bytes]], tmp_path: Path
) -> None:
    text = lines(12, FORMATS[name][0]).encode()
    for place, gone, piece in cuts:
        at = int(place * len(text))
        text = text[:at] + piece + text[at + gone :]
    path = tmp_path / "x.log"
    path.write_bytes(text or b" ")
    assert 0.0 <= console.sniff(text, path) <= 1.0
    try:
        runs = console.read(path)
    except UnreadableError:
        return
    for run in runs:
        assert isinstance(run, RawRun)
        for column in run.columns.values():
            assert len(column.rows) == len(column.values)
            assert (column.rows[1:] > column.rows[:-1]).all()


@pytest.mark.parametrize(
    "text",
    [
        b"loss: 1.0 " * 100_000,
        b"[" * 200_000,
        b"1" * 1_000_000,
        b"\x1b[" * 200_000,
        b"loss" + b" " * 100_000 + b"1",
        b"[INFO] " * 2_000 + b"loss: 1",
        b"loss[loss=" * 1_500,
    ],
)
def test_a_strange_line_takes_no_long_time(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(text + b"\n" + text)
    start = time.process_time()
    with pytest.raises(UnreadableError):
        console.read(path)
    assert time.process_time() - start < 3.0


@pytest.mark.parametrize(
    "text",
    [
        "import torch\n\ndef train(lr=0.1):\n    loss = model(x) / 3\n    return loss\n" * 30,
        "# A title\n\nThis reaches a loss of 2.3 after 100 steps on 8 devices.\n\n```\npip install x\n```\n",
        "step,loss,lr\n" + "".join(f"{i},{3 - i / 50},0.1\n" for i in range(50)),
        "".join(f'{{"step": {i}, "loss": {3 - i / 50}}}\n' for i in range(50)),
    ],
    ids=["code", "prose", "csv", "jsonl"],
)
def test_what_other_readers_know_better_is_left_to_them(text: str, tmp_path: Path) -> None:
    assert console.sniff(text.encode(), tmp_path / "x") <= 0.3
