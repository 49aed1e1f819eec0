"""Bytes of a log file, whatever they are packed and encoded in.

`raw` unpacks (gzip, xz, bz2, told by their first bytes), `utf8` also turns UTF-16 and UTF-32 into UTF-8, `blocks` also turns
CRLF and lone CR into LF and cuts at line ends. All three stream: memory is bounded by the block size, whatever the file.
"""

from __future__ import annotations

import codecs
import stat
import zlib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import BinaryIO, cast

from poise.readers.base import UnreadableError
from poise.records import Message

LONGEST_LINE = 1 << 22
"""Bytes after which a line without an end is cut, so that a file without line ends cannot fill the memory."""

_ARCHIVES = ((b"\x1f\x8b", "gzip"), (b"\xfd7zXZ\x00", "lzma"), (b"BZh", "bz2"))
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def head(path: Path, size: int = 65536) -> bytes:
    """Return the first `size` unpacked bytes, as UTF-8 where they are text of a known encoding.

    Raises:
        UnreadableError: no such file, no permission, a folder, empty, or a broken archive.
    """
    start = b""
    for piece in utf8(path, size):
        start += piece
        if len(start) >= size:
            break
    return start[:size]


def decode(data: bytes) -> str:
    """Text of UTF-8 bytes; invalid ones become U+FFFD."""
    return data.decode("utf-8", "replace")


def raw(path: Path, size: int = 1 << 20, notes: list[Message] | None = None) -> Iterator[bytes]:
    """Yield the unpacked bytes in pieces of about `size`; a torn archive gives what can be read, and a note.

    Raises:
        UnreadableError: no such file, no permission, a folder, empty, or a broken archive.
    """
    name, stream = _open(path)
    pending: list[bytes] = []
    length = total = 0
    with stream:
        while True:
            try:
                data = stream.read1(size) if name else stream.read(size)  # type: ignore[attr-defined]
            except (OSError, EOFError, zlib.error, ValueError) as error:
                _fail_or_note(path, name, total + length, error, notes)
                data = b""
            except Exception as error:  # lzma's own error type, without importing lzma for every file
                if type(error).__name__ != "LZMAError":
                    raise
                _fail_or_note(path, name, total + length, error, notes)
                data = b""
            pending.append(data)
            length += len(data)
            if length and (not data or length >= size):
                yield pending[0] if len(pending) == 1 else b"".join(pending)
                total += length
                pending, length = [], 0
            if not data:
                break
    if not total:
        raise UnreadableError(f"{path} is empty. The run has written nothing yet, or its log went to another file.")


def utf8(path: Path, size: int = 1 << 20, notes: list[Message] | None = None) -> Iterator[bytes]:
    """Yield the unpacked bytes as UTF-8, without a byte order mark, cut anywhere. Line ends stay as they are.

    Binary content passes unchanged. Raises `UnreadableError` as `raw` does.
    """
    pieces = raw(path, size, notes)
    first = next(pieces)
    mark, encoding = _encoding(first)
    first = first[len(mark) :]
    if encoding == "utf-8":
        yield first
        yield from pieces
        return
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    yield decoder.decode(first).encode("utf-8", "replace")
    for piece in pieces:
        yield decoder.decode(piece).encode("utf-8", "replace")
    yield decoder.decode(b"", True).encode("utf-8", "replace")


def blocks(path: Path, size: int = 1 << 20, notes: list[Message] | None = None) -> Iterator[bytes]:
    r"""Yield UTF-8 text in blocks of about `size` bytes that end at a line end, all of which are `\n`.

    Only the last block may lack its line end. A line longer than `LONGEST_LINE` is cut there, with a note.
    Raises `UnreadableError` as `raw` does.
    """
    pending: list[bytes] = []
    length = 0
    cut_lines = 0
    for piece in _line_feeds(utf8(path, size, notes)):
        cut = piece.rfind(b"\n") + 1
        if cut:
            pending.append(piece[:cut] if cut < len(piece) else piece)
            yield pending[0] if len(pending) == 1 else b"".join(pending)
            pending, length = [], 0
        if cut < len(piece):
            pending.append(piece[cut:] if cut else piece)
            length += len(piece) - cut
        if length > LONGEST_LINE:
            cut_lines += 1
            yield b"".join([*pending, b"\n"])
            pending, length = [], 0
    if pending:
        yield b"".join(pending)
    if cut_lines and notes is not None:
        notes.append(Message("reading.long-line", {"count": cut_lines, "size": LONGEST_LINE}))


def _line_feeds(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """CRLF and CR as LF; a CR at the end of a piece waits for the next one."""
    held = b""
    for piece in pieces:
        if held:
            piece = held + piece
            held = b""
        if b"\r" in piece:
            if piece.endswith(b"\r"):
                piece, held = piece[:-1], b"\r"
            piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if piece:
            yield piece
    if held:
        yield b"\n"


def _encoding(start: bytes) -> tuple[bytes, str]:
    """Byte order mark and encoding of a file that begins like this; without a mark, UTF-16 shows in its NULs."""
    for mark, encoding in _MARKS:
        if start.startswith(mark):
            return mark, encoding
    sample = start[:4096]
    if len(sample) < 8 or b"\0" not in sample:
        return b"", "utf-8"
    even, odd = sample[::2], sample[1::2]
    if odd.count(0) > 0.6 * len(odd) and even.count(0) < 0.01 * len(even):
        return b"", "utf-16-le"
    if even.count(0) > 0.6 * len(even) and odd.count(0) < 0.01 * len(odd):
        return b"", "utf-16-be"
    return b"", "utf-8"


def _open(path: Path) -> tuple[str, BinaryIO]:
    """Open a file for reading; returns the archive format ("" for none) and the stream of unpacked bytes."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise UnreadableError(f"{path} is a folder, not a log. Name a file in it.")
        if not stat.S_ISREG(mode):
            raise UnreadableError(f"{path} is not a regular file. Save its content to a file and name that.")
        with path.open("rb") as plain:
            magic = plain.read(6)
        for mark, name in _ARCHIVES:
            if magic.startswith(mark):
                return name, cast(BinaryIO, import_module(name).open(path, "rb"))
        return "", path.open("rb", buffering=0)
    except UnreadableError:
        raise
    except FileNotFoundError:
        raise UnreadableError(f"{path} does not exist. Check the path.") from None
    except PermissionError:
        raise UnreadableError(f"{path} may not be read by this user. Change its permissions or copy it.") from None
    except (OSError, ImportError, ValueError) as error:
        raise UnreadableError(f"{path} cannot be opened ({error}). Copy it to a local disk and try again.") from None


def _fail_or_note(path: Path, name: str, read: int, error: Exception, notes: list[Message] | None) -> None:
    what = f"{name} archive" if name else "file"
    if not read:
        raise UnreadableError(f"{path} is a broken {what} ({error}). Fetch it again or unpack it by hand.") from None
    if notes is not None:
        notes.append(Message("reading.torn-archive", {"what": what, "bytes": read, "error": str(error)}))
