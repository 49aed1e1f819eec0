"""Which reader gets a file, and what is said of files that none can read."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import event_files as ef
import pytest

from poise.readers import identify, read
from poise.readers.base import UnreadableError

ROWS = range(1, 30)
LOGS = {
    "tfevents": ef.version() + b"".join(ef.event(s, ef.scalar("loss", 9 / s)) for s in ROWS),
    "wandb-binary": ef.wandb_log(ef.history(s, loss=9 / s) for s in ROWS),
    "hf-trainer-state": b'{"log_history": [%s]}'
    % b",".join(b'{"epoch": 0.1, "loss": %f, "step": %d}' % (9 / s, s) for s in ROWS),
    "wandb-history": b"".join(b'{"loss": %f, "_step": %d, "_runtime": %d}\n' % (9 / s, s, s) for s in ROWS),
    "csv": b"step,loss\n" + b"".join(b"%d,%f\n" % (s, 9 / s) for s in ROWS),
    "jsonl": b"".join(b'{"step": %d, "loss": %f}\n' % (s, 9 / s) for s in ROWS),
    "console": b"starting\n" + b"".join(b"step %d: loss %f\n" % (s, 9 / s) for s in ROWS),
}


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress], ids=["plain", "gzip", "xz"])
@pytest.mark.parametrize("name", LOGS)
def test_content_decides_and_not_the_name(tmp_path: Path, name: str, pack: type[bytes]) -> None:
    path = tmp_path / "whatever.dat"
    path.write_bytes(pack(LOGS[name]))

    assert identify(path).name == name
    [run] = read(path)
    assert len(run.columns["loss"].values) == len(ROWS)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "is empty"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "is an image"),
        (b"PK\x03\x04" + bytes(100), "zip archive"),
        (b"\x80\x02}q\x00(X\x05\x00\x00\x00modelq\x01", "is a pickle"),
        ((120).to_bytes(8, "little") + b'{"w": {"dtype": "F32", "shape": [2]}}' + bytes(80), "safetensors"),
        (bytes(range(256)) * 20, "binary data"),
        (b"Dear diary, nothing happened today.\n", "no training log"),
    ],
)
def test_what_is_no_log_is_called_by_its_name(tmp_path: Path, content: bytes, what: str) -> None:
    path = tmp_path / "thing"
    path.write_bytes(content)

    with pytest.raises(UnreadableError, match=what) as caught:
        read(path)
    assert str(path) in str(caught.value)


def test_an_unknown_text_names_the_readers_tried_and_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear diary,\n")

    with pytest.raises(UnreadableError, match=r"tried: .*tfevents.*console.*poise formats.*--map"):
        identify(path)


def test_a_pickle_is_never_loaded(tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    path = tmp_path / "model.pt"
    path.write_bytes(b"cos\nsystem\n(S'touch %s'\ntR." % str(trap).encode())

    with pytest.raises(UnreadableError):
        read(path)
    assert not trap.exists()


def test_a_missing_file_is_named() -> None:
    with pytest.raises(UnreadableError, match=r"nowhere\.log does not exist"):
        read(Path("nowhere.log"))


def test_a_folder_with_event_files_is_one_run(tmp_path: Path) -> None:
    for i in range(2):
        rows = b"".join(ef.event(s + 50 * i, ef.scalar("loss", 1), wall=100.0 * i) for s in range(50))
        (tmp_path / f"events.{i}").write_bytes(rows)

    [run] = read(tmp_path)
    assert len(run.columns["loss"].values) == 100


def test_an_empty_folder_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="holds no training log"):
        read(tmp_path)
