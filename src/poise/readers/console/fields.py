"""One line of text read closely: which of its numbers are signals, and what they are called.

This is slow (about 50 microseconds) and done once per shape of line; `shapes.py` reads all lines of that shape alike.
"""

from __future__ import annotations

import re

from poise.readers.console import keys
from poise.readers.console.numbers import TOKEN
from poise.readers.console.scan import Layout, Number, Scan

_CODE = re.compile(
    r"^\s*(?:(?:def|class|import|from|return|assert|raise|elif|with|print|async)\b[^|]*(?:[(:;,]|$)|@\w+|//|/\*|\"\"\""
    r"|File \")|^\s*(?:if|for|while|else|try|except)\b.*:\s*(?:#.*)?$"
    r"|\bself\.|\blambda\b|add_argument|\bf[\"'][^\"']*\{|print\(|\.(?:append|format|item|backward|step)\(|[+*/-]="
    r"|\w ?== ?[\w\"']|[!<>]=\s|^\s*\$ |^\s*\++ "
    r"|(?<![|\w])#\s*[A-Za-z].*\b(?:the|is|to|of)\b|^\s*#define|;\s*$|^\s*<[/a-zA-Z]",
    re.ASCII,
)
_NO_DATA = re.compile(
    r"overflow|Attempted loss scale|loss scaler|Warning:|Deprecat|Traceback|\w(?:Error|Exception)\b|out of memory|\bkilled\b"
    r"|CANCELLED|exitcode|\bSIG[A-Z]{3,4}\b|^\s*--\w|\b(?:best|lowest)\b.*\bso far\b",
    re.IGNORECASE,
)
_TQDM = re.compile(
    r"(?P<bar>\d{1,3}%\|[^|\n]*\|\s*|(?<![\w.]))(?P<n>\d+)/(?P<total>\d+)\s+\[(?P<in>[^\n]*)|(?<![\w.])(?P<it>\d+)it \[(?P<in2>[^\n]*)",
    re.ASCII,
)
_BAR = re.compile(r"\d{1,3}%\|[^|\n]*\|", re.ASCII)
_RATE_IN_BAR = re.compile(r"(?:\d+:)+\d+(?:<[^,\]]*)?(?:,\s*(?:[\d.]+|\?)\s*(?:it|s|[A-Za-z]+)/\w+)?", re.ASCII)
_KERAS = re.compile(r"^\s*\d+/(?:\d+|Unknown)\s*(?:\[[=>.]*\]|[\u2501\x80-\xff]{2,}|\S{0,90}(?=\s*-\s))", re.ASCII)
_PAIR = re.compile(r"^\s*\|\s*([^|]+?)\s*\|\s*$")
LONGEST = 16384
SAMPLES = 5  # the rank of counters of samples and tokens among positions


def read_line(text: str, start: int) -> Layout | None:
    """Find the numbers of a line that have names.

    Args:
        text: the line, decoded as latin-1 so that places are places in the bytes.
        start: where the message begins, behind logger prefixes.

    Returns:
        None where the line is no record: prose, source code, a heading, too long.
    """
    if len(text) > LONGEST or _NO_DATA.search(text, start) or _CODE.search(text[start:]):
        return None
    bar = _TQDM.search(text, start)
    if bar is None and _BAR.search(text, start):
        return None
    if bar is not None and (bar["bar"] or bar["it"] or _RATE_IN_BAR.match(bar["in"])):
        return _progress(text, start, bar)
    pair = _pair(text, start)
    if pair is not None:
        return pair
    scan = Scan(text, start)
    scan.walk()
    layout = Layout(_unique(scan.found), bar=_KERAS.match(text, start) is not None, words=scan.words)
    return layout if _believable(layout, text[start:]) else None


def _progress(text: str, start: int, bar: re.Match[str]) -> Layout:
    """A tqdm bar: what it is called, its count, and what is written inside the brackets."""
    head = Scan(text[: bar.start()], start)
    head.walk()
    count = Number(*bar.span("n" if bar["n"] else "it"), "step", position=True)
    numbers = [n for n in head.found if n.position]
    numbers.append(count)
    if bar["total"]:
        numbers.append(Number(*bar.span("total"), "step total"))
    at = bar.start("in") if bar["n"] else bar.start("in2")
    rate = _RATE_IN_BAR.match(text, at)
    tail = Scan(text, rate.end() if rate else at)
    tail.walk()
    metrics = [n for n in (*head.found, *tail.found) if n.strong and not n.position]
    scope = keys.scope_of(text[start : bar.start()])
    if scope in ("val", "test"):
        for number in numbers[-2:]:
            number.name = f"{scope} {number.name}"
            number.position = False
    layout = Layout(sorted(_unique([*numbers, *metrics]), key=lambda n: n.start) if metrics else [], bar=True)
    layout.known = any(keys.known(n.name) for n in metrics)
    if not metrics and bar["n"] and scope not in ("val", "test"):
        layout.total = True
        layout.numbers = [Number(*bar.span("n"), "bar"), Number(*bar.span("total"), "bar total")]
    return layout


def _pair(text: str, start: int) -> Layout | None:
    """A row `| name | number |` of the two-column tables of RL trainers."""
    bar = text.rfind("|", start, len(text.rstrip()) - 1)
    match = _PAIR.match(text[start : bar + 1]) if bar > start else None
    number = TOKEN.search(text, bar + 1) if match else None
    if (
        match is None
        or number is None
        or number["number"] is None
        or text[number.end() :].strip(" |")
        or text[bar + 1 : number.start()].strip()
    ):
        return None
    name = keys.in_unicode(match[1])
    if TOKEN.search(name) or not keys.strong_key(name + ":"):
        return None
    found = Number(*number.span("number"), name, strong=True, position=keys.position_rank(name) is not None)
    return Layout([found], known=keys.known(name))


def _unique(numbers: list[Number]) -> list[Number]:
    """A name that comes twice in a line counts once: the first."""
    seen: set[str] = set()
    kept = []
    for number in numbers:
        number.name = number.name.replace("/#", "/")
        if number.name not in seen:
            seen.add(number.name)
            kept.append(number)
    return kept


def _believable(layout: Layout, text: str) -> bool:
    """Whether named numbers make a record: enough names, not too many words beside them."""
    numbers = layout.numbers
    metrics = [n for n in numbers if not n.position and not n.name.endswith(" total")]
    strong = sum(n.strong for n in metrics)
    layout.known = any(keys.signal_of(n.name) not in ("", "other") for n in metrics)
    if not metrics:
        layout.known = bool(numbers)
        return layout.words <= 2 and any(keys.position_rank(n.name) != SAMPLES for n in numbers if n.position)
    if strong:
        return layout.words <= 6 + 3 * len(numbers)
    delimited = sum(text.count(mark) for mark in "|,\t;") >= len(numbers) - 1 > 0
    many = len(numbers) >= 2
    return layout.known and (many or delimited) and layout.words <= (3 + len(numbers) if many else 1)
