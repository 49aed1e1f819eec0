"""Rows of numbers under a header line: blank-aligned, piped, tabbed or with commas."""

from __future__ import annotations

import re

from poise.readers.console import keys
from poise.readers.console.numbers import FACTORS, TOKEN, attached_unit
from poise.readers.console.scan import Layout, Number

_ROW = re.compile(rb"^[\s|]*(?:[\w./-]*\s*[\s|,;]\s*)?[-+.\dnNiI][^\s|,;]*[\s]*[\s|,;][\s|]*[-+.\dnNiI]", re.ASCII)
_RULE = re.compile(r"^[\s|:=+-]*$")
_BAR = re.compile(r":?\s*\d{1,3}%\|")
_NO_NAME = re.compile(r"[:=\[\]{}<>'\"]")
_LOOK_BACK = 8
Cells = list[tuple[int, int]]


def cells(text: str, start: int, mark: str) -> Cells:
    """Where the cells of a line stand, their blanks left out."""
    if mark == " ":
        return [m.span() for m in re.finditer(r"\S+", text[start:])] if not start else _shifted(text, start)
    found, at = [], start
    body = text[start:].rstrip()
    if mark == "|":
        at += len(body) - len(body.lstrip("| "))
        body = body.strip("| ")
    for piece in body.split(mark) if mark != "  " else re.split(r"(\s{2,})", body):
        lead = len(piece) - len(piece.lstrip())
        if mark != "  " or piece.strip():
            found.append((at + lead, at + max(lead, len(piece.rstrip()))))
        at += len(piece) + (len(mark) if mark != "  " else 0)
    return found


def _shifted(text: str, start: int) -> Cells:
    return [(a + start, b + start) for a, b in (m.span() for m in re.finditer(r"\S+", text[start:]))]


class Tables:
    """The headers seen so far, by number of cells."""

    def __init__(self) -> None:
        self._headers: dict[tuple[str, int], list[str]] = {}
        self.mark = ""

    @staticmethod
    def may_be_row(line: bytes) -> bool:
        """Whether a line begins like a row of numbers."""
        return len(line) < 4096 and _ROW.search(line) is not None

    def row(self, text: str, start: int, lines: list[bytes], i: int) -> Layout | None:
        """Read a line as a row of the table whose header stands above it; None if it is none.

        Args:
            lines: the block, of which this is line `i`.
        """
        if not self.may_be_row(text[start:].encode("latin-1")):
            return None
        bar = _BAR.search(text, start)
        stop = bar.start() if bar else len(text)
        self._look_back(lines, i)
        for mark in ("|", "\t", ",", ";", "  ", " "):
            if mark not in text[start:stop].strip():
                continue
            found = cells(text[:stop], start, mark)
            names = self._headers.get((mark, len(found)))
            layout = _filled(text, found, names, bar is not None) if names else None
            if layout is not None:
                self.mark = mark
                return layout
        return None

    def _look_back(self, lines: list[bytes], i: int) -> None:
        for line in lines[max(0, i - _LOOK_BACK) : i]:
            if len(line) > 4096:
                continue
            text = line.decode("latin-1")
            bar = _BAR.search(text)
            text = text[: bar.start()] if bar else text
            if _RULE.match(text) or any(TOKEN.fullmatch(word) for word in re.split(r"[\s|,;]+", text)):
                continue
            for mark in ("|", "\t", ",", ";", "  ", " "):
                if mark in text.strip():
                    self._remember(text, mark)

    def _remember(self, text: str, mark: str) -> None:
        names = [keys.in_unicode(text[a:b].strip("*`\"' ")) for a, b in cells(text, 0, mark)]
        named = [n for n in names if any(c.isalpha() for c in n) and len(n) <= 40 and not _NO_NAME.search(n)]
        telling = [n for n in named if keys.position_rank(n) is not None or keys.signal_of(n) not in ("", "other")]
        if (
            len(names) >= 2
            and len(named) >= len(names) - 1
            and len(set(names)) == len(names)
            and len(telling) >= max(1, len(names) // 6)
            and not any(TOKEN.fullmatch(n) for n in names)
        ):
            self._headers[mark, len(names)] = names


def _filled(text: str, found: Cells, names: list[str], bar: bool) -> Layout | None:
    """The cells with numbers under their names; None if they are too few."""
    numbers: list[Number] = []
    for (start, stop), name in zip(found, names, strict=True):
        numbers += _cell(text, start, stop, name)
    filled = len({n.name.removesuffix(" total") for n in numbers})
    if filled < 2 or filled * 2 < len(found):
        return None
    known = any(keys.signal_of(n.name) not in ("", "other") for n in numbers)
    return Layout(numbers, bar=bar, known=known) if known else None


def _cell(text: str, start: int, stop: int, name: str) -> list[Number]:
    token = TOKEN.match(text, start, stop)
    if not name or token is None or token["number"] is None:
        return []
    unit = attached_unit(text[:stop], token.end())
    rest = text[token.end() + len(unit or "") : stop]
    position = keys.position_rank(name) is not None
    if unit is None:
        return []
    first = Number(start, token.end(), name, FACTORS.get(unit, 1.0), True, position)
    if rest.startswith("/") and (total := TOKEN.fullmatch(text, token.end() + 1, stop)) and total["number"]:
        return [first, Number(*total.span(), f"{name} total")]
    return [first] if not rest.strip(" :*%") else []
