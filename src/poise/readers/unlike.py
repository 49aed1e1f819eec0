"""What a file is that is no training log, so that the error can say so. Nothing is ever unpickled or executed."""

from __future__ import annotations

_STARTS: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"GIF8", "an image"),
    (b"BM", "an image"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a zip archive, as checkpoints of PyTorch and .npz files are"),
    (b"\x80\x02", "a pickle, most likely a checkpoint"),
    (b"\x80\x03", "a pickle, most likely a checkpoint"),
    (b"\x80\x04", "a pickle, most likely a checkpoint"),
    (b"\x80\x05", "a pickle, most likely a checkpoint"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x89HDF", "an HDF5 file, as checkpoints of Keras are"),
    (b"GGUF", "a model in GGUF format"),
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow file"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\x7fELF", "a program"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"(\xb5/\xfd", "a zstd archive"),
    (b"RIFF", "a sound or video file"),
    (b"OggS", "a sound file"),
    (b"ID3", "a sound file"),
)
_TEXT_CONTROLS = bytes([*range(7, 14), 27])


def what_is(head: bytes) -> str | None:
    """A phrase such as "an image", None where the bytes might be a log's.

    Args:
        head: the first bytes, unpacked.
    """
    for start, what in _STARTS:
        if head.startswith(start) and not (start == b"BM" and not _is_binary(head)):
            return what
    if head[8:9] == b"{" and b'"dtype"' in head[:4096]:
        return "a checkpoint in safetensors format"
    if head[257:262] == b"ustar":
        return "a tar archive"
    return "binary data of an unknown kind" if _is_binary(head) else None


def _is_binary(head: bytes) -> bool:
    """Whether bytes are no text in any encoding that logs are written in."""
    sample = head[:8192]
    controls = sum(sample.count(byte) for byte in range(32) if byte not in _TEXT_CONTROLS)
    return controls > 0.02 * len(sample) + 1
