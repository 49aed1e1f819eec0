"""What is a number in a line of text, and what is none: clocks, dates, versions, addresses and parts of words."""

from __future__ import annotations

import re

NUMBER = r"[-+]?(?:\d{1,3}(?:,\d{3})+(?![\d,])(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
TOKEN = re.compile(
    r"(?P<junk>(?<![\w.])(?:\d+(?::\d+)+(?:[.,]\d+)?|\d{2,4}[-/]\d{1,2}[-/]\d{1,4}|\d+(?:\.\d+){2,}[\w.+-]*|0x[0-9a-fA-F]+"
    r"|\d+[-+][A-Za-z_][\w-]*|\d+-\d+[A-Za-z]?\w*))"
    r"|(?P<number>(?:(?<![\w.@\x80-\xff-])(?<![A-Za-z_][+/])|(?<=epoch)|(?<=Epoch)|(?<=EPOCH)|(?<=step)|(?<=Step)|(?<=iter)|(?<=Iter)"
    rf"|(?<=[\s=:(\[|][-+]))(?:{NUMBER}|[-+]?(?:nan|NaN|NAN|inf|Inf|INF|infinity|Infinity)(?![\w.-])))",
    re.ASCII,
)
"""Tokens of a line, left to right: `number`, or `junk` whose digits mean nothing."""

_UNITS = frozenset(
    [
        "%",
        "ms",
        "us",
        "ns",
        "s",
        "sec",
        "secs",
        "second",
        "seconds",
        "min",
        "mins",
        "minute",
        "minutes",
        "h",
        "hr",
        "hrs",
        "hour",
        "hours",
        "m",
        "d",
        "days",
        "K",
        "k",
        "M",
        "G",
        "B",
        "T",
        "KB",
        "MB",
        "GB",
        "TB",
        "KiB",
        "MiB",
        "GiB",
        "TiB",
        "kB",
        "Mb",
        "Gb",
        "W",
        "C",
        "it",
        "its",
        "px",
        "bit",
        "bits",
        "iter",
        "iters",
        "tok",
        "toks",
    ]
)
_UNIT = re.compile(r"[A-Za-z%\xb5][A-Za-z]*(?:/[A-Za-z]+)*", re.ASCII)
FACTORS = {"%": 0.01, "k": 1e3, "K": 1e3, "M": 1e6}
"""Units that cannot be mistaken: the number is written out in full instead."""


def attached_unit(text: str, at: int) -> str | None:
    """The unit that begins right at `at`: "" where there is none, None where it is no unit but the rest of a word."""
    match = _UNIT.match(text, at)
    if match is None:
        return "" if not text[at : at + 1].isalnum() and text[at : at + 1] != "_" else None
    unit = match.group()
    if text[match.end() : match.end() + 1].isalnum():
        return None
    return unit if unit in _UNITS or "/" in unit else None


RATE = re.compile(
    r"[ ]?((?:[A-Za-z]+/(?:s|sec|second|it|iter|step|batch|gpu|GPU)(?:/\w+)?|ms|GiB|GB|MiB|MB|(?:% ?)?(?:\w+ )?MFU|TFLOPS?|TFLOP/s(?:/GPU)?))(?![\w/])"
)
"""A unit that can stand for the name of its number: `12 ms`, `330220 tok/s`, `29% bf16 MFU`."""
