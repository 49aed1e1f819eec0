"""Whatever a log is packed and encoded in, its lines come out the same."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from poise.messages import render
from poise.readers import source
from poise.readers.base import UnreadableError
from poise.records import Message

TEXT = "".join(f"step {i} loss {i / 7:.4f} é\r\n" for i in range(5000))
LINES = TEXT.replace("\r\n", "\n").encode()
PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "bz2": bz2.compress,
}
ENCODINGS = {
    "utf-8": TEXT.encode(),
    "utf-8 with mark": codecs.BOM_UTF8 + TEXT.encode(),
    "utf-16 with mark": TEXT.encode("utf-16"),
    "utf-16 little endian without mark": TEXT.encode("utf-16-le"),
    "utf-16 big endian without mark": TEXT.encode("utf-16-be"),
    "utf-32": TEXT.encode("utf-32"),
}


def file_of(folder: Path, data: bytes) -> Path:
    path = folder / "log"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("size", [1000, 1 << 20])
def test_every_packing_and_encoding_gives_the_same_lines(
    packing: str, encoding: str, size: int, tmp_path: Path
) -> None:
    path = file_of(tmp_path, PACKINGS[packing](ENCODINGS[encoding]))

    blocks = list(source.blocks(path, size))

    assert b"".join(blocks) == LINES
    assert all(block.endswith(b"\n") for block in blocks)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_crlf_and_lone_cr_become_lf_wherever_a_block_is_cut(size: int, tmp_path: Path) -> None:
    path = file_of(tmp_path, b"a\r\nb\rc\n\r\nd\r\r\ne\r")
    assert b"".join(source.blocks(path, size)) == b"a\nb\nc\n\nd\n\ne\n"


def test_the_last_block_may_lack_its_line_end(tmp_path: Path) -> None:
    path = file_of(tmp_path, b"step 1\nstep 2")
    assert list(source.blocks(path)) == [b"step 1\n", b"step 2"]


def test_head_is_unpacked_decoded_and_cut(tmp_path: Path) -> None:
    path = file_of(tmp_path, gzip.compress(TEXT.encode("utf-16")))
    assert source.head(path, 1000) == TEXT.encode()[:1000]


def test_binary_content_is_not_taken_for_utf_16(tmp_path: Path) -> None:
    record = b"\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22\x09\0\0\x80\xdd\xa1\x1b\xda\x41" * 50
    path = file_of(tmp_path, record)
    assert source.head(path) == record
    assert b"".join(source.raw(path)) == record


@pytest.mark.parametrize("packing", ["gzip", "xz", "bz2"])
def test_a_torn_archive_gives_its_beginning_and_a_note(packing: str, tmp_path: Path) -> None:
    packed = PACKINGS[packing](LINES * 30)
    path = file_of(tmp_path, packed[: len(packed) * 3 // 4])
    notes: list[Message] = []

    try:
        found = b"".join(source.blocks(path, notes=notes))
    except UnreadableError as error:
        assert packing == "bz2"  # its blocks of 900 kB are all or nothing
        assert "bz2" in str(error)  # noqa: PT017
        return

    assert (LINES * 30).startswith(found.rstrip(b"\n"))
    assert len(found) > 10_000
    assert "breaks off" in render(notes[0])


def test_a_file_without_line_ends_is_cut_with_a_note(tmp_path: Path) -> None:
    path = file_of(tmp_path, b"x" * 10_000_000)
    notes: list[Message] = []

    blocks = list(source.blocks(path, notes=notes))

    assert max(map(len, blocks)) < source.LONGEST_LINE + (1 << 21)
    assert sum(block.count(b"x") for block in blocks) == 10_000_000
    assert [note.id for note in notes] == ["reading.long-line"]


@pytest.mark.parametrize(
    ("data", "says"),
    [(b"", "empty"), (gzip.compress(b""), "empty"), (b"\x1f\x8bxx", "broken gzip"), (b"\xfd7zXZ\0yy", "broken lzma")],
)
def test_a_file_with_nothing_to_read_is_refused_by_name(data: bytes, says: str, tmp_path: Path) -> None:
    path = file_of(tmp_path, data)
    with pytest.raises(UnreadableError, match=says) as refusal:
        source.head(path)
    assert str(path) in str(refusal.value)


def test_a_missing_file_and_a_folder_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="does not exist"):
        source.head(tmp_path / "absent")
    with pytest.raises(UnreadableError, match="is a folder"):
        source.head(tmp_path)
