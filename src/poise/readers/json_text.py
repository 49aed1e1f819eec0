"""JSON as training logs have it: with bare NaN and Infinity, torn, glued together, larger than memory.

All functions decode in pieces with orjson; what orjson refuses is decoded by ever more tolerant means, piece by piece.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Generator, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import orjson

from poise.readers import source
from poise.records import Message

PIECE = 1 << 18
"""Bytes decoded at once: the objects of a piece fit a processor's cache."""

LARGEST = 1 << 28
"""Bytes of one value that are held while its end is looked for."""

_BARE = re.compile(rb"(?<=[:,\[\s])([+-]?(?:NaN|nan|Infinity|inf))(?=\s*[,}\]])")
_GAP = re.compile(r"[\s,\x1e\x00]*")
_MOST_FAULTS = 1000
_BATCH = 4096
_TOLERANT = json.JSONDecoder(strict=False)


def loads(data: bytes) -> Any:
    """Decode one JSON value; bare NaN and Infinity become texts. Raises `ValueError`."""
    try:
        return orjson.loads(data)
    except ValueError:
        pass
    try:
        return _loads_bare(data)
    except ValueError:
        pass
    try:
        return json.loads(source.decode(data), strict=False)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _loads_bare(data: bytes) -> Any:
    """Decode with bare NaN and Infinity put in quotes: those that are an object's values at once, else one by one."""
    quick = data
    for word in (b"NaN", b"Infinity", b"-Infinity"):
        if word in data:
            for before in (b": ", b":"):
                quick = quick.replace(before + word, before + b'"' + word + b'"')
    try:
        return orjson.loads(quick)
    except ValueError:
        return orjson.loads(_BARE.sub(rb'"\1"', data))


def first_objects(head: bytes, count: int = 8) -> list[dict[str, Any]]:
    """The first complete objects of a file: its lines, the items of its array, or the object that it is."""
    text = source.decode(head)
    found: list[dict[str, Any]] = []
    at = len(text) - len(text.lstrip().removeprefix("["))
    while len(found) < count:
        at = _GAP.match(text, at).end()  # type: ignore[union-attr]
        if not text.startswith("{", at):
            break
        try:
            value, at = _TOLERANT.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        found.append(value)
    return found


class Faults:
    """Counts what could not be read, and says it in a note."""

    def __init__(self) -> None:
        self.count = 0
        self.first = 0
        self.torn: str | None = None

    def line(self, number: int) -> None:
        """Count a line, by its number from 1."""
        self.count += 1
        self.first = self.first or number

    def notes(self) -> list[Message]:
        """What to tell the user."""
        said = []
        if self.count:
            said.append(Message("reading.bad-lines", {"count": self.count, "line": self.first}))
        if self.torn is not None:
            said.append(Message("reading.torn-end", {"place": self.torn}))
        return said


def batches(path: Path, faults: Faults, notes: list[Message]) -> Iterator[list[Any]]:
    """Yield a file's values in batches, whichever way they are laid out: an array, one a line, or one behind the other."""
    head = source.head(path).lstrip()
    if is_array(head):
        yield from _array(path, faults, notes)
    elif _one_per_line(head):
        yield from lines(path, faults, notes)
    else:
        values = documents(source.utf8(path, PIECE, notes), faults)
        while batch := list(islice(values, _BATCH)):
            yield batch


def is_array(head: bytes) -> bool:
    """Whether a file begins with an array of objects or arrays, not with a time in brackets."""
    return head[:1] == b"[" and head[1:].lstrip()[:1] in (b"{", b"[", b"]", b"")


def _one_per_line(head: bytes) -> bool:
    """Whether an object takes a line; the first lines may hold other text."""
    first, *rest = head.split(b"\n")[:50]
    if _is_json(first):
        return True
    if first.rstrip()[-1:] in (b"{", b"[", b","):
        return False
    return any(_line_values(line) for line in (first, *rest) if line.rstrip().endswith(b"}"))


def _is_json(line: bytes) -> bool:
    try:
        loads(line)
    except ValueError:
        return False
    return True


def _array(path: Path, faults: Faults, notes: list[Message]) -> Iterator[list[Any]]:
    """The items of a file that is one array; rows that are lists become objects with the keys c0, c1, ..."""
    pieces = source.utf8(path, PIECE, notes)
    start = b""
    while not start:
        start = next(pieces).lstrip()
    tail: list[Any] = []
    for batch in array_items(chain([start[1:]], pieces), b"[", tail, faults):
        yield _named(batch)
    for last in tail:
        yield _named(last)


def _named(items: list[Any]) -> list[Any]:
    if not items or type(items[0]) is not list:
        return items
    return [{f"c{k}": cell for k, cell in enumerate(item)} if type(item) is list else item for item in items]


def lines(path: Path, faults: Faults, notes: list[Message]) -> Iterator[list[Any]]:
    """Yield the values of a file that has one in each line, in batches."""
    before = 0
    for block in source.blocks(path, PIECE, notes):
        try:
            batch = orjson.loads(b"[" + (block[:-1] if block[-1] == 10 else block).replace(b"\n", b",") + b"]")
        except ValueError:
            batch = _rough_lines(block, before, faults)
        before += block.count(b"\n")
        yield batch


def _rough_lines(block: bytes, before: int, faults: Faults) -> list[Any]:
    """The values of a block that has blank lines, bare NaN or rubbish in it."""
    rows = block.split(b"\n")
    full = [row for row in rows if row and not row.isspace()]
    joined = b"[" + b",".join(full) + b"]"
    try:
        values: list[Any] = _loads_bare(joined)
        return values
    except ValueError:
        pass
    values = []
    for i, row in enumerate(rows):
        if not row or row.isspace():
            continue
        found = _line_values(row)
        values += found
        if found:
            continue
        if i == len(rows) - 1:
            faults.torn = f"line {before + i + 1}"
        else:
            faults.line(before + i + 1)
    return values


def _line_values(line: bytes) -> list[Any]:
    """The values of one line: one, several glued together, or one behind a text; none if it is rubbish."""
    try:
        return [loads(line)]
    except ValueError:
        pass
    text = source.decode(line)
    found: list[Any] = []
    at = text.find("{")
    while at >= 0:
        try:
            value, at = _TOLERANT.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        found.append(value)
        at = text.find("{", at)
    return found


def array_items(pieces: Iterable[bytes], opening: bytes, tail: list[Any], faults: Faults) -> Iterator[list[Any]]:
    """Yield the items of an array in batches, for an array of any size.

    Args:
        pieces: the file from just behind the array's `[`.
        opening: what makes the rest of the file a complete document again: `[`, or `{"log_history":[`.
        tail: receives that last document if the file is whole, its array holding the last items.
        faults: is told where a torn file ends.
    """
    pieces = iter(pieces)
    buffer, items, wanted = b"", 0, 0
    for piece in pieces:
        buffer += piece
        if len(buffer) < wanted:
            continue
        batch, buffer, ended = _whole_items(buffer)
        items += len(batch)
        yield batch
        wanted = 0 if batch else 2 * len(buffer)
        if ended or len(buffer) > LARGEST:
            break
    else:
        ended = False
    if ended:
        tail += _document(opening + b"]" + buffer + b"".join(pieces))
        return
    last = _document(opening + buffer)
    if last:
        tail += last
        return
    batch, at, ended = _walk_items(text := source.decode(buffer))
    yield batch
    if ended:
        tail += _document(opening + b"]" + text[at:].encode("utf-8", "replace"))
    else:
        faults.torn = f"item {items + len(batch) + 1}"


def _whole_items(buffer: bytes) -> tuple[list[Any], bytes, bool]:
    """The complete items that a piece of an array begins with, the bytes behind them, and whether the array has ended."""
    cut = _between_objects(buffer)
    if cut < 0:
        return [], buffer, False
    try:
        return loads(b"[" + buffer[:cut] + b"]"), buffer[cut + 1 :], False
    except ValueError:  # the cut lies inside an item, or behind the array's end
        pass
    whole = buffer.rfind(b"}") + 1
    text = source.decode(buffer[:whole])
    batch, at, ended = _walk_items(text)
    rest = text[at:].encode("utf-8", "replace") + buffer[whole:]
    return batch, rest if ended else rest.lstrip(b", \r\n\t"), ended


def _document(data: bytes) -> list[Any]:
    """The one document in a list, or nothing if it is broken."""
    try:
        return [loads(data)]
    except ValueError:
        return []


def _between_objects(buffer: bytes) -> int:
    """Place of the comma between the last two neighbours `}, {`, or -1. A guess: it may lie inside an item."""
    at = len(buffer)
    for _ in range(64):
        at = buffer.rfind(b"{", 0, at)
        if at < 2:
            return -1
        before = buffer[max(0, at - 64) : at].rstrip()
        if before.endswith(b",") and before[:-1].rstrip().endswith(b"}"):
            return max(0, at - 64) + len(before) - 1
    return -1


def _walk_items(text: str) -> tuple[list[Any], int, bool]:
    """The complete items of an array, where the text behind them begins, and whether the array's end came before it."""
    found: list[Any] = []
    at = 0
    while True:
        at = _GAP.match(text, at).end()  # type: ignore[union-attr]
        if text.startswith("]", at):
            return found, at + 1, True
        try:
            value, at = _TOLERANT.raw_decode(text, at)
        except (ValueError, RecursionError):
            return found, at, False
        found.append(value)


def documents(pieces: Iterable[bytes], faults: Faults) -> Iterator[Any]:
    """Yield the values of a file that has one behind the other, with or without line ends between and inside them."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text, at, wanted = "", 0, 0
    for piece in pieces:
        text = text[at:] + decoder.decode(piece)
        at = 0
        if len(text) < wanted:
            continue
        at = yield from _complete(text, faults, last=False)
        wanted = 2 * (len(text) - at)
        if len(text) - at > LARGEST:
            break
    yield from _complete(text[at:], faults, last=True)


def _complete(text: str, faults: Faults, last: bool) -> Generator[Any, None, int]:
    """Yield the complete values of a text; returns where the rest begins. Skips rubbish if nothing follows."""
    at = 0
    while (at := _GAP.match(text, at).end()) < len(text):  # type: ignore[union-attr]
        try:
            value, at = _TOLERANT.raw_decode(text, at)
            yield value
        except (ValueError, RecursionError):
            if not last:
                return at
            faults.torn = f"character {at + 1} of the last {len(text)}"
            faults.count += 1
            at = text.find("{", at + 1)
            if at < 0 or faults.count > _MOST_FAULTS:
                break
    return len(text)
