"""The numbers of one line, left to right, and what each is called by the text around it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from poise.readers.console import keys
from poise.readers.console.numbers import FACTORS, RATE, TOKEN, attached_unit
from poise.readers.steps import BATCH_RANK, EPOCH_RANK

_SKIP = re.compile(r",\s*(?:device|dtype|grad_fn|requires_grad|weak_type)=[^,)\n]{0,60}\)?", re.ASCII)
_GROUP = re.compile(r"(\w+)[\[{](?:[^\]\[{}]*)$", re.ASCII)
_COUNTER = re.compile(r"\s*\[\s*\d+/\d")
_AFTER_PAREN = re.compile(r"\s*%?\s*\)")


@dataclass(slots=True)
class Number:
    """One number of the line: where it stands and what it is called; no name means that it is passed over."""

    start: int
    end: int
    name: str = ""
    factor: float = 1.0
    strong: bool = False
    position: bool = False


@dataclass(slots=True)
class Layout:
    """What a line says.

    Args:
        numbers: the named ones, left to right.
        rank: where the writing rank stands in the line.
        bar: a line that is written again and again while a step lasts.
        known: whether a name is one that we know, so that one such line is enough to believe it.
        words: words that belong to no name: prose has many.
        total: a bar without numbers beside it: its count and its total are all there is.
    """

    numbers: list[Number] = field(default_factory=list)
    rank: tuple[int, int] | None = None
    bar: bool = False
    known: bool = False
    words: int = 0
    total: bool = False


class Scan:
    """A walk over the tokens of one line."""

    def __init__(self, text: str, start: int) -> None:
        self.text, self.end = text, start
        self.found: list[Number] = []
        self.last: Number | None = None
        self.scope = self.group = ""
        self.words = 0
        self.listed = 0
        self.aside = False

    def walk(self) -> None:
        skip = [m.span() for m in _SKIP.finditer(self.text)] if "=" in self.text else []
        for token in TOKEN.finditer(self.text, self.end):
            if any(a <= token.start() < b for a, b in skip):
                continue
            gap = self._gap(token.start(), skip)
            unit = attached_unit(self.text, token.end())
            if token["number"] and token["number"][-1].isalpha() and not self._expects(gap):
                continue
            if token["number"] is None or unit is None:
                self._junk(gap, token.end())
                continue
            self._number(gap, token.start(), token.end(), unit)
        self.words += keys.words_in(self.text[self.end :])

    def _gap(self, stop: int, skip: list[tuple[int, int]]) -> str:
        """The text since the last number, without parts that describe it (`device='cuda:0'`)."""
        parts, at = [], self.end
        for a, b in skip:
            if at <= a and b <= stop:
                parts.append(self.text[at:a])
                at = b
        return "".join([*parts, self.text[at:stop]])

    def _expects(self, gap: str) -> bool:
        """Whether a number must follow, so that `nan` is one and no word."""
        inner, _ = keys.unwrapped(gap)
        return gap.strip() in ("/", "(", ",") or keys.strong_key(inner) is not None or keys.weak_key(inner) is not None

    def _junk(self, gap: str, end: int) -> None:
        self.words += keys.words_in(gap) if keys.strong_key(gap) is None else 0
        self._open(gap)
        self.last, self.end = None, end

    def _number(self, gap: str, start: int, end: int, unit: str) -> None:
        number = Number(start, end)
        stop = end + len(unit)
        bare = gap.strip()
        if self.last is not None and bare in ("/", "of") and (self.last.name or (not self.found and not self.aside)):
            self._total(number)
        elif self.last is not None and bare == "(" and _AFTER_PAREN.match(self.text, stop):
            number.name = (
                f"{self.last.name} (average)" if self.last.name and not self.last.position and not unit else ""
            )
            number.factor = self.last.factor
            if unit == "%" and self.last.name.endswith(" (2)"):
                number.name = self.last.name.removesuffix(" (2)")
                self.found[-2].name, number.factor = f"{number.name} count", FACTORS["%"]
            self._keep(number, stop, "")
            self.last = None
            return
        else:
            self._name(number, gap, unit)
        self._keep(number, stop, unit)

    def _total(self, number: Number) -> None:
        last = self.last
        assert last is not None
        if not last.name:
            last.name = self._counter()
            last.position = keys.position_rank(last.name) is not None
            self.found.append(last)
        if last.position or last.strong:
            number.name = f"{last.name} total" if last.position else f"{last.name} (2)"

    def _name(self, number: Number, gap: str, unit: str) -> None:
        inner, wrap = keys.unwrapped(gap)
        inner = self._after_unit(inner)
        self.aside = wrap.startswith("(")
        strong = keys.strong_key(inner)
        found = strong or keys.weak_key(inner)
        if (
            self.last is not None
            and self.last.name
            and inner.strip() in (",", "")
            and not wrap.startswith("(")
            and self._in_list()
        ):
            self.listed += 1
            number.name = f"{self.found[-1].name.partition('/#')[0]}/#{self.listed}"
            number.strong = True
            return
        self.listed = 0
        self._open(gap)
        if found is not None and found[0] and "[" in wrap and keys.is_scope(found[0]):
            self._bare(number, found[0], wrap, unit)
        elif found is not None and not self.found and keys.is_scope(found[0]) and _COUNTER.match(self.text, number.end):
            self._scope(found[0])
            number.name = "epoch"
        elif found is not None and found[0]:
            self._scope(found[1])
            self.words += keys.words_in(found[1]) if strong is None else 0
            number.name = self._qualified(found[0])
            number.strong = strong is not None
        elif not keys.words_in(keys.cut(inner)[1]):
            self._bare(number, inner, wrap, unit)
        else:
            self._scope(inner)
            self.words += keys.words_in(inner)

    def _bare(self, number: Number, inner: str, wrap: str, unit: str) -> None:
        """A number without a name before it: a counter in brackets or at the head of the line, or named by its unit."""
        self._scope(inner)
        after = self.text[number.end :].lstrip()
        rate = RATE.match(self.text, number.end)
        headed = not any(n.name for n in self.found)
        follows = any(n.position for n in self.found)
        counted = after.startswith("/") and re.match(r"/\s*\d", after) is not None
        if (
            ("[" in wrap and "]" in inner and "," not in inner and follows)
            or (
                counted
                and not wrap.startswith("(")
                and not any((keys.position_rank(n.name) or 0) <= BATCH_RANK and n.position for n in self.found)
            )
            or (headed and self.last is None and "[" in wrap and after[:1] in ",]")
        ):
            number.name = self._counter()
        elif headed and self.last is None and not wrap and after.startswith(":") and not inner.strip():
            number.name = "step"
        elif (
            self.last is not None
            and inner.strip() == ","
            and len(self.found) == 1
            and self.found[0].position
            and after.startswith("]")
        ):
            number.name = self._counter()
        elif rate is not None and len(self.found) > 0:
            number.name = rate[1].strip("% ") or ""
        number.position = keys.position_rank(number.name) is not None if number.name else False

    def _counter(self) -> str:
        """The name of a bare counter; a counter before it was of epochs then."""
        for number in self.found:
            if number.name in ("step", "step total"):
                number.name = number.name.replace("step", "epoch")
        return self._qualified("step")

    def _after_unit(self, gap: str) -> str:
        """The gap without the unit of the number before it."""
        match = re.match(
            r"\s?(?:[A-Za-z]*/[A-Za-z]+|ms|sec(?:onds?)?|s|[KMG]i?B|batches|steps|iters|frames|samples|images|tokens)(?=[\s,|;)-]|$)",
            gap,
        )
        return gap[match.end() :] if match and self.last is not None else gap

    def _in_list(self) -> bool:
        before = self.text[: self.end]
        return bool(self.found) and before.rfind("[") > before.rfind("]") and not self.found[-1].position

    def _open(self, gap: str) -> None:
        match = _GROUP.search(gap)
        if match:
            self.group = match[1]
        elif "]" in gap or "}" in gap:
            self.group = ""

    def _scope(self, text: str) -> None:
        self.scope = keys.scope_of(text) or self.scope

    def _qualified(self, key: str) -> str:
        key = keys.in_unicode(key)
        if self.group and not key.startswith(self.group):
            key = self.group if self.group.endswith(key) else f"{self.group}/{key}"
        if self.scope in ("val", "test") and not keys.scope_of(key) and keys.position_rank(key) != EPOCH_RANK:
            key = f"{self.scope} {key}"
        return key

    def _keep(self, number: Number, stop: int, unit: str) -> None:
        if number.name:
            if unit in FACTORS and (unit == "%" or not number.position):
                number.factor = FACTORS[unit]
            elif unit:
                number.name = f"{number.name} ({unit})" if unit != number.name else unit
            number.position = not number.name.endswith(" total") and keys.position_rank(number.name) is not None
            self.found.append(number)
        self.last, self.end = number, stop
