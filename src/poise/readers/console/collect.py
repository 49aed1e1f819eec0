"""A console text, block by block, becomes columns: shapes are learnt as they appear, and believed once they repeat."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from poise.readers.columns import Columns
from poise.readers.console import keys
from poise.readers.console.clean import is_labelled, plain, prefix
from poise.readers.console.failures import MARKS
from poise.readers.console.fields import read_line
from poise.readers.console.meter import Meter, Sighting
from poise.readers.console.rows import Line, Rows, kind_of
from poise.readers.console.shapes import Shape, compile_shape, shapes
from poise.readers.console.tables import Tables
from poise.readers.steps import EPOCH_RANK
from poise.records import Bools, Floats, Ints

REJECTED, HEADINGS = -1, {-2: "val", -3: "test", -4: ""}
_SECTIONS = {"val": -2, "test": -3, "train": -4}
_HEADING = re.compile(
    r"^[^\w(]*(?:(?:start|begin|starting|running|run|now)\s+)?(?P<what>validat\w+|evaluat\w+|eval|test|testing|train|training)\b"
    r"(?:\s+(?:performance|phase|results?|set|epoch|loop|metrics|step))?\s*(?:\([^)]*\))?[^\w(]*$",
    re.IGNORECASE,
)
_DIGIT = re.compile(rb"\d")
_PROMISING = re.compile(
    rb"[\w\x80-\xff)\]'\"%][ ]*[:=|>][ \t]*[\w\[('\"+.-]?|(?i:loss|step|iter|epoch|acc|ppl|lr)[ \t:=]", re.ASCII
)
_MOST_SHAPES = 50_000
_MOST_TRIED = 4_000
_MOST_PENDING = 5_000
Points = tuple[str, Ints, Floats]


@dataclass(slots=True)
class _Group:
    """Lines of one shape within a block, and their numbers."""

    shape: Shape
    where: Ints
    values: Floats
    absent: Bools | None
    rows: Ints = field(default_factory=lambda: np.empty(0, np.int64))


class Collector:
    """The state of reading one file."""

    def __init__(self) -> None:
        self.columns = Columns()
        self.rows = Rows()
        self.meter = Meter()
        self.tables = Tables()
        self.shapes: list[Shape] = []
        self.counts: dict[tuple[str, ...], int] = {}
        self.pending: dict[tuple[str, ...], list[Points]] = {}
        self.labelled: bool | None = None
        self.first_loss: int | None = None
        self.ranks: set[int] = set()
        self.first_loss_line: int | None = None
        self.delimited = 0
        self._line, self._lines = 1, 0
        self.unread: list[int] = []
        self.last_data_line = -1
        self.steps_by_line: list[tuple[Ints, Floats, Ints]] = []  # lines, what they state, their records
        self._known: dict[bytes, int] = {}
        self._bits: dict[str, int] = {}
        self._tried = self._kept = 0
        self._section = ""
        self._two_sided = False

    def feed(self, block: bytes, line: int) -> bytes:
        """Read a block of whole lines, the first of which has number `line`.

        Returns:
            the shapes of the lines that hold no numbers, each once: where to look for words of failure.
        """
        self._line = line
        self._lines += block.count(b"\n")
        text = plain(block)
        if text.endswith(b"\n"):
            text = text[:-1]
        if self.labelled is None:
            self.labelled = is_labelled(text.split(b"\n", 401)[:400])
        forms = shapes(text)
        distinct = set(forms)
        lines: list[bytes] = []
        if any(form not in self._known for form in distinct):
            lines = text.split(b"\n")
            self._learn(forms, lines)
        if len(distinct) == 1:
            known = self._known.get(forms[0], REJECTED)
            groups = [self._group(known, np.arange(len(forms)), text)] if known >= 0 else []
            ids = np.full(len(forms), known)
        else:
            ids = np.fromiter(map(self._known.get, forms), np.int64, len(forms))
            groups = list(self._groups(ids, lines or text.split(b"\n"))) if np.any(ids >= 0) else []
        self._emit(groups, ids, line)
        if len(self._known) > _MOST_SHAPES:
            self._known = {form: known for form, known in self._known.items() if known != REJECTED}
        return b"\n".join([form for form in distinct if self._known.get(form, REJECTED) < 0])

    def _learn(self, forms: list[bytes], lines: list[bytes]) -> None:
        """Read the first line of each new shape closely."""
        known = self._known
        for i, form in enumerate(forms):
            if form not in known:
                known[form] = self._judge(lines[i], lines, i)

    def _judge(self, line: bytes, lines: list[bytes], i: int) -> int:
        if not _DIGIT.search(line) and b"nan" not in line and b"inf" not in line:
            return self._heading(line)
        promising = _PROMISING.search(line[:2048]) is not None
        if (not promising and not self.tables.may_be_row(line)) or MARKS.search(line[:2048]):
            return REJECTED
        self._tried += 1
        if self._tried > _MOST_TRIED and self._kept * 20 < self._tried:
            return REJECTED
        if len(self.shapes) > _MOST_TRIED and self._lines < 4 * len(self.shapes):
            self.unread.append(self._line + i)
            return REJECTED
        text = line.decode("latin-1")
        start, rank = prefix(text, bool(self.labelled))
        layout = read_line(text, start) if promising else None
        if layout is None or layout.total:
            row = self.tables.row(text, start, lines, i)
            self.delimited += row is not None and self.tables.mark in (",", ";", "\t")
            layout = row or layout
        if layout is None or not layout.numbers:
            return self._heading(line)
        layout.rank = rank
        shape = compile_shape(line, layout)
        if not shape.reads(line):
            return REJECTED
        self._kept += 1
        self._number_columns(shape)
        self.shapes.append(shape)
        return len(self.shapes) - 1

    def _heading(self, line: bytes) -> int:
        match = _HEADING.match(line[:120].decode("latin-1")) if len(line) < 120 else None
        if match is None:
            return REJECTED
        what = keys.scope_of(match["what"])
        self._two_sided |= what == "train"
        return _SECTIONS.get(what, REJECTED)

    def _number_columns(self, shape: Shape) -> None:
        """Give a shape its position and a bit for each other column."""
        best = None
        for i, number in enumerate(shape.layout.numbers):
            if number.position:
                rank = keys.position_rank(number.name)
                shape.epoch = i + shape.ranked if rank == EPOCH_RANK else shape.epoch
                if rank is not None and (best is None or rank < best):
                    best, shape.position = rank, i + shape.ranked
            elif not number.name.endswith(" total"):
                shape.mask |= 1 << self._bits.setdefault(number.name, len(self._bits) % 4096)
        shape.signature = shape.names
        shape.epoch = -1 if shape.epoch == shape.position else shape.epoch
        shape.line = Line(shape.mask, shape.layout.bar, kind_of(best))

    def _groups(self, ids: Ints, lines: list[bytes]) -> Iterator[_Group]:
        """The lines of each shape."""
        order = np.argsort(ids, kind="stable")
        sorted_ids = ids[order]
        edges = np.flatnonzero(np.diff(sorted_ids)) + 1
        for piece in np.split(order, edges):
            known = int(ids[piece[0]])
            if known >= 0:
                yield self._group(known, piece, b"\n".join([lines[i] for i in piece.tolist()]))

    def _group(self, known: int, where: Ints, text: bytes) -> _Group:
        shape = self.shapes[known]
        values, absent = shape.numbers(text, len(where))
        return _Group(shape, where, values, absent)

    def _emit(self, groups: list[_Group], ids: Ints, line: int) -> None:
        """Give lines their records and hand their numbers to the columns."""
        meters = [g for g in groups if g.shape.layout.total]
        groups = [g for g in groups if not g.shape.layout.total]
        if groups:
            self._assign(groups)
            sections = self._sections(ids, groups)
            self._store(groups, sections)
            self._note_lines(groups, line)
        if meters or groups:
            self._read_meters(meters, groups)

    def _assign(self, groups: list[_Group]) -> None:
        """Record numbers for the lines of all groups, in file order."""
        steps = [_column(g, g.shape.position) for g in groups]
        epochs = [_column(g, g.shape.epoch) for g in groups] if any(g.shape.epoch >= 0 for g in groups) else []
        ranked = any(g.shape.ranked for g in groups)
        ranks = [g.values[:, 0] if g.shape.ranked else np.full(len(g.where), -1.0) for g in groups] if ranked else []
        if len(groups) == 1:
            groups[0].rows = self.rows.assign(
                steps[0], epochs[0] if epochs else None, [groups[0].shape.line], ranks[0] if ranked else None
            )
            return
        where = np.concatenate([g.where for g in groups])
        order = np.argsort(where, kind="stable")
        which = np.repeat(np.arange(len(groups)), [len(g.where) for g in groups])[order].tolist()
        lines = [g.shape.line for g in groups]
        found = self.rows.assign(
            np.concatenate(steps)[order],
            np.concatenate(epochs)[order] if epochs else None,
            [lines[i] for i in which],
            np.concatenate(ranks)[order] if ranked else None,
        )
        rows = np.empty(len(found), np.int64)
        rows[order] = found
        for group, piece in zip(groups, np.split(rows, np.cumsum([len(g.where) for g in groups])[:-1]), strict=True):
            group.rows = piece

    def _sections(self, ids: Ints, groups: list[_Group]) -> list[str] | None:
        """The section that each line of the block stands in, None where there are no headings."""
        headings = np.flatnonzero(ids < REJECTED)
        if not len(headings) and not self._section:
            return None
        changes = [(int(i), HEADINGS[int(ids[i])]) for i in headings]
        if not self._two_sided:
            for g in groups:
                if g.shape.position >= 0:
                    changes += [(int(i), "") for i in g.where]
        names, now, at = [], self._section, 0
        for i, section in sorted(changes):
            names += [now] * (i - at)
            now, at = section, i
        self._section = now
        return names + [now] * (len(ids) - at)

    def _store(self, groups: list[_Group], sections: list[str] | None) -> None:
        ready: dict[str, list[tuple[Ints, Floats]]] = {}
        for group in groups:
            for part, section in self._by_section(group, sections):
                for who, rank in self._by_rank(part):
                    self._sort(who, section, rank, ready)
        for name, pieces in ready.items():
            rows = np.concatenate([r for r, _ in pieces]) if len(pieces) > 1 else pieces[0][0]
            values = np.concatenate([v for _, v in pieces]) if len(pieces) > 1 else pieces[0][1]
            rows, values = last_of_each(rows, values)
            self._append(name, rows, values)

    def _append(self, name: str, rows: Ints, values: Floats) -> None:
        first = int(rows[0])
        dense = len(rows) == int(rows[-1]) - first + 1
        self.columns.extend(name, values, first, None if dense else rows - first)

    @staticmethod
    def _by_section(group: _Group, sections: list[str] | None) -> Iterator[tuple[_Group, str]]:
        if sections is None:
            yield group, ""
            return
        named = np.array([sections[i] for i in group.where.tolist()])
        for section in np.unique(named).tolist():
            yield _select(group, np.flatnonzero(named == section)), section

    def _by_rank(self, group: _Group) -> Iterator[tuple[_Group, int | None]]:
        if not group.shape.ranked:
            yield group, None
            return
        ranks = group.values[:, 0]
        for rank in np.unique(ranks[np.isfinite(ranks)]).tolist():
            self.ranks.add(int(rank))
            yield _select(group, np.flatnonzero(ranks == rank)), int(rank)

    def _sort(self, group: _Group, section: str, rank: int | None, ready: dict[str, list[tuple[Ints, Floats]]]) -> None:
        """Put a group's columns with those to append, or aside while its shape was seen too rarely."""
        signature = group.shape.signature
        before = self.counts.get(signature, 0)
        self.counts[signature] = count = before + len(group.where)
        live = count >= (2 if group.shape.layout.known else 3)
        if live and signature in self.pending:
            for name, rows, values in self.pending.pop(signature):
                ready.setdefault(name, []).append((rows, values))
        for name, rows, values in self._points(group, section, rank):
            if live:
                ready.setdefault(name, []).append((rows, values))
                if self.first_loss is None and keys.signal_of(name.partition("@")[0]) in ("loss", "eval_loss"):
                    self.first_loss, self.first_loss_line = int(rows[0]), self._line + int(group.where[0])
            elif len(self.pending) < _MOST_PENDING:
                self.pending.setdefault(signature, []).append((name, rows, values))

    @staticmethod
    def _points(group: _Group, section: str, rank: int | None) -> Iterator[Points]:
        shape = group.shape
        for i, name in enumerate(shape.names):
            j = i + shape.ranked
            values, rows = group.values[:, j], group.rows
            if group.absent is not None and group.absent[:, j].any():
                present = ~group.absent[:, j]
                values, rows = values[present], rows[present]
            if not len(values):
                continue
            if shape.factors[j] != 1.0:
                values = values * shape.factors[j]
            if section and not keys.scope_of(name) and keys.position_rank(name.removesuffix(" total")) != EPOCH_RANK:
                name = f"{section} {name}"
            yield name if rank is None else f"{name}@rank{rank}", rows, values

    def _note_lines(self, groups: list[_Group], line: int) -> None:
        """Remember where numbers stand in the file, for events between them."""
        data = [g for g in groups if g.shape.mask]
        if data:
            self.last_data_line = max(self.last_data_line, line + max(int(g.where[-1]) for g in data))
        for group in groups:
            if group.shape.position >= 0:
                thin = max(1, len(group.where) // 1024)
                lines = group.where[::-thin] + line
                self.steps_by_line.append(
                    (lines, group.values[::-thin, group.shape.position].copy(), group.rows[::-thin].copy())
                )

    def _read_meters(self, meters: list[_Group], groups: list[_Group]) -> None:
        """Pair records without a step with the bars around them."""
        events: list[Sighting] = []
        for m in meters:
            events += [
                (i, -1, (float(v[0]), float(v[1]))) for i, v in zip(m.where.tolist(), m.values[:, -2:], strict=True)
            ]
        for g in groups:
            finest = (
                keys.position_rank(g.shape.names[g.shape.position - g.shape.ranked])
                if g.shape.position >= 0
                else EPOCH_RANK
            )
            if finest == EPOCH_RANK and g.shape.mask and (meters or self.meter.last[1] > 0):
                weight = float(g.shape.position >= 0)
                events += [(i, row, (weight, 0.0)) for i, row in zip(g.where.tolist(), g.rows.tolist(), strict=True)]
        self.meter.follow(events)


def _column(group: _Group, i: int) -> Floats:
    return group.values[:, i] if i >= 0 else np.full(len(group.where), np.nan)


def _select(group: _Group, where: Ints) -> _Group:
    if len(where) == len(group.where):
        return group
    absent = None if group.absent is None else group.absent[where]
    return _Group(group.shape, group.where[where], group.values[where], absent, group.rows[where])


def last_of_each(rows: Ints, values: Floats) -> tuple[Ints, Floats]:
    """Points in row order; of several in one row the last."""
    if len(rows) < 2:
        return rows, values
    steps = np.diff(rows)
    if np.all(steps > 0):
        return rows, values
    if np.any(steps < 0):
        order = np.argsort(rows, kind="stable")
        rows, values = rows[order], values[order]
    keep = np.append(rows[1:] != rows[:-1], True)
    return rows[keep], values[keep]
