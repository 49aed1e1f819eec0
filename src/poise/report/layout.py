"""Text in a terminal: how wide it is, how it breaks into lines, and its colours."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

_TOKENS = re.compile(r"\s+|\S+")
_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}


@dataclass(frozen=True, slots=True)
class Style:
    """Colours, or none.

    Args:
        coloured: whether to write ANSI codes.
        width: cells in a line.
        braille: whether the output can show braille dots; else plots are drawn with ASCII.
    """

    coloured: bool = False
    width: int = 100
    braille: bool = True

    def paint(self, text: str, *names: str) -> str:
        """The text in a colour or weight."""
        if not self.coloured or not names or not text:
            return text
        return f"\x1b[{';'.join(_CODES[n] for n in names)}m{text}\x1b[0m"

    @property
    def bullet(self) -> str:
        """Marks an item."""
        return "·" if self.braille else "-"

    @property
    def arrow(self) -> str:
        """Marks what to do."""
        return "→" if self.braille else ">"


def cells(text: str) -> int:
    """How many terminal cells a text takes: East Asian wide characters take two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(_cell(c) for c in text)


def shorten(text: str, width: int) -> str:
    """The text, cut in the middle with an ellipsis where it is too wide."""
    if cells(text) <= width:
        return text
    room = max(width - 1, 1)
    head, tail = _take(text, room // 3), _take(text[::-1], room - room // 3)[::-1]
    return f"{head}…{tail}"


def wrap(text: str, width: int, first: str = "", rest: str | None = None) -> list[str]:
    """Break a text into lines of at most `width` cells; Chinese breaks anywhere, other text at spaces.

    Args:
        first, rest: what the first and the further lines begin with.
    """
    rest = first if rest is None else rest
    lines: list[str] = []
    for paragraph in text.split("\n"):
        start = first if not lines else rest
        line, used = start, cells(start)
        for piece in _pieces(paragraph, max(width - max(cells(first), cells(rest)), 4)):
            size = cells(piece)
            if used + cells(piece.rstrip()) > width and line.strip() != start.strip():
                lines.append(line.rstrip())
                line, used = rest, cells(rest)
                piece = piece.lstrip()
                size = cells(piece)
            line, used = line + piece, used + size
        lines.append(line.rstrip())
    return lines


def _pieces(text: str, longest: int) -> Iterator[str]:
    """Parts between which a line may break, none longer than `longest` cells."""
    for token in _TOKENS.findall(text):
        if token.isspace():
            yield " "
            continue
        part = ""
        for char in token:
            wide = _cell(char) == 2 and char not in "，。；：、）」”！？"
            if part and (wide or cells(part) + _cell(char) > longest):
                yield part
                part = ""
            part += char
        yield part


def _take(text: str, width: int) -> str:
    used = 0
    for i, char in enumerate(text):
        used += _cell(char)
        if used > width:
            return text[:i]
    return text


def _cell(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Cf", "Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
