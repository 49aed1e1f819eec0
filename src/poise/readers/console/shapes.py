"""Lines of one shape, read all at once.

The shape of a line is what is left of it without digits, points and signs. All lines of a shape have their numbers in the
same places, so the first one is read closely (`fields.py`) and the others by deleting its words from them, or, where that
is not safe, by one regular expression.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from poise.readers.console.rows import Line
from poise.readers.console.scan import Layout
from poise.records import Bools, Floats

DIGITS = b"0123456789.+-"
_RUN = re.compile(rb"[0-9.+-]+")
_KEPT = frozenset(DIGITS)
_LOOSE = rb"[0-9.+-]*+"
_FEW = 24
"""Below so many lines the regular expression is quicker than deleting words."""


def shapes(block: bytes) -> list[bytes]:
    """The shape of each line."""
    return block.translate(None, DIGITS).split(b"\n")


@dataclass(slots=True)
class Shape:
    """How to read the lines of one shape.

    Args:
        names: of the numbers, left to right; the rank of the writer, if any, comes first and has no name here.
        ranked: whether the first captured number is a rank.
    """

    layout: Layout
    names: tuple[str, ...]
    ranked: bool
    factors: Floats
    regex: re.Pattern[bytes]
    commas: bool
    words: tuple[bytes, ...] | None
    keep: bytes
    width: int
    position: int = -1
    epoch: int = -1
    mask: int = 0
    line: Line = field(default_factory=lambda: Line(0, False, 0))
    signature: tuple[str, ...] = ()

    def numbers(self, text: bytes, count: int) -> tuple[Floats, Bools | None]:
        """Read `count` lines.

        Returns:
            (count, width) the captured numbers, and where none could be read (None: all could).
        """
        if self.words is not None and count >= _FEW:
            found = self._by_deletion(text, count)
            if found is not None:
                return found, None
        return self._by_regex(text, count)

    def _by_deletion(self, text: bytes, count: int) -> Floats | None:
        assert self.words is not None
        for word in self.words:
            text = text.replace(word, b" ")
        values = parse(text.translate(self.keep))
        return values.reshape(count, self.width) if values is not None and len(values) == count * self.width else None

    def _by_regex(self, text: bytes, count: int) -> tuple[Floats, Bools | None]:
        found = self.regex.findall(text)
        flat = found if self.width == 1 else list(chain.from_iterable(found))
        if self.commas:
            flat = [cell.replace(b",", b"") for cell in flat]
        values = parse(b" ".join(flat)) if b"" not in flat else None
        if values is not None and len(values) == count * self.width:
            return values.reshape(count, self.width), None
        cells = [_number(cell) for cell in flat]
        if len(cells) != count * self.width:
            cells = [None] * (count * self.width)
        values = np.array([0.0 if cell is None else cell for cell in cells]).reshape(count, self.width)
        return values, np.array([cell is None for cell in cells]).reshape(count, self.width)

    def reads(self, line: bytes) -> bool:
        """Whether the expression finds the numbers where they were found by reading closely."""
        match = self.regex.fullmatch(line)
        rank = [self.layout.rank] if self.layout.rank is not None else []
        places = [*rank, *((n.start, n.end) for n in self.layout.numbers)]
        return match is not None and [match.span(i + 1) for i in range(self.width)] == places


def parse(text: bytes) -> Floats | None:
    """Numbers between blanks, None if something else is among them."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return np.fromstring(text, np.float64, sep=" ")
        except (DeprecationWarning, ValueError):
            return None


def _number(cell: bytes) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def compile_shape(line: bytes, layout: Layout) -> Shape:
    """Make the reader for all lines of the shape of `line`."""
    spans = [(n.start, n.end) for n in layout.numbers]
    if layout.rank is not None:
        spans.insert(0, layout.rank)
    pattern, at = [b"^"], 0
    for start, stop in spans:
        pattern += [_loosened(line[at:start]), b"(", _loosened(line[start:stop]), b")"]
        at = stop
    pattern += [_loosened(line[at:]), b"$"]
    words, keep = _deletable(line, spans)
    factors = np.array([1.0] * (layout.rank is not None) + [n.factor for n in layout.numbers])
    return Shape(
        layout,
        tuple(n.name for n in layout.numbers),
        layout.rank is not None,
        factors,
        re.compile(b"".join(pattern), re.MULTILINE),
        any(b"," in line[a:b] for a, b in spans),
        words,
        keep,
        len(spans),
    )


def _loosened(text: bytes) -> bytes:
    """A pattern for texts that differ in digits, points and signs only; it has one way to match, so it never backtracks."""
    parts, at = [], 0
    for match in _RUN.finditer(text):
        parts += [re.escape(text[at : match.start()]), _LOOSE]
        at = match.end()
    parts.append(re.escape(text[at:]))
    return b"".join(parts) if parts[-1] or len(parts) > 1 else b""


def _deletable(line: bytes, spans: list[tuple[int, int]]) -> tuple[tuple[bytes, ...] | None, bytes]:
    """The words that must be deleted before all but number characters can be blanked; None where digits stand outside numbers."""
    kept = set(_KEPT)
    for a, b in spans:
        if b"," in line[a:b]:
            return None, b""
        kept |= set(line[a:b])
    words, at = set(), 0
    for start, stop in [*spans, (len(line), len(line))]:
        word = line[at:start]
        if at and not word and start < len(line):
            return None, b""
        if any(48 <= c <= 57 for c in word):
            return None, b""
        if not kept.isdisjoint(word):
            words.add(word)
        at = stop
    if any(len(w.strip()) < 2 for w in words):
        return None, b""
    table = bytes(c if c in kept else 32 for c in range(256))
    return tuple(sorted(words, key=len, reverse=True)), table
