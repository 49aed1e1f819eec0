"""What every reader in `readers.READERS` owes on any bytes: an honest sniff, and a run or a clear error."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from poise.messages import render
from poise.readers import READERS
from poise.readers.base import RawRun, Reader, UnreadableError

EVERY = pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
PIECES = st.sampled_from(
    [
        b"\n", b"\r\n", b"\r", b"step,loss\n", b"1,2.5\n", b'{"loss": 2.5, "step": 1}\n', b"{", b"}", b"[", b"]", b'"', b",", b":", b"nan",
        b"Infinity", b"1e999", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\x1f\x8b\x08", b"\xfd7zXZ\x00", b"\x1b[31m", b"step 10: loss 2.5\n",
        b" iteration        1/     100 | lm loss: 1.0E+00 |\n", b'{"log_history": [{"loss": 1.0, "step": 5}]', b"|", b"=", b"loss", b"step",
        b"Traceback (most recent call last):\n", b"\x80", b"9" * 400, "损失".encode(),
    ]
)  # fmt: skip
ANY_BYTES = st.one_of(st.binary(max_size=200), st.lists(PIECES, max_size=20).map(b"".join))
NAMES = st.sampled_from(
    [
        "log",
        "log.csv",
        "log.jsonl",
        "trainer_state.json",
        "events.out.tfevents.1",
        "run.wandb",
        "out.log.gz",
        "日志.txt",
    ]
)


@EVERY
def test_a_reader_has_a_name_and_says_what_it_reads(reader: Reader) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", reader.name)
    assert len(reader.about.split()) >= 2, f"{reader.name} has no `about` text"


def test_reader_names_are_unique() -> None:
    assert len({reader.name for reader in READERS}) == len(READERS) >= 5


@EVERY
@settings(max_examples=60)
@given(data=ANY_BYTES, name=NAMES)
@example(data=b"", name="log")
def test_sniffing_any_bytes_gives_a_share(reader: Reader, data: bytes, name: str) -> None:
    assert 0 <= reader.sniff(data, Path(name)) <= 1


@EVERY
@settings(max_examples=60)
@given(data=ANY_BYTES, name=NAMES)
@example(data=b"", name="log")
@example(data=b"\xff" * 9, name="log")
def test_reading_any_bytes_gives_runs_or_a_clear_error(reader: Reader, data: bytes, name: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        try:
            runs = reader.read(path)
        except UnreadableError as error:
            runs, complaint = [], str(error)
        else:
            complaint = ""
    assert runs or name in complaint, f"neither a run nor an error that names the file: {complaint!r}"
    assert runs or complaint.endswith((".", "?")), complaint
    for run in runs:
        check(run)


def check(run: RawRun) -> None:
    """What a reader returns is whole."""
    assert run.format
    for name, column in run.columns.items():
        assert isinstance(name, str)
        assert len(column.rows) == len(column.values) and (
            column.steps is None or len(column.steps) == len(column.rows)
        )
        assert column.values.dtype.kind == "f"
    for note in run.notes:
        assert render(note) and render(note, "zh")


@EVERY
def test_a_file_that_is_not_there_is_named_in_the_error(reader: Reader, tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match=r"missing\.log"):
        reader.read(tmp_path / "missing.log")
