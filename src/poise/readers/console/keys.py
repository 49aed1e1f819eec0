"""What a name of a number looks like in front of it, and which names are known."""

from __future__ import annotations

import re
from functools import lru_cache

from poise.readers.naming import recognise
from poise.readers.steps import step_rank
from poise.readers.words import EVAL, TEST, TRAIN, split_name

LONGEST = 80
MOST_WORDS = 6
_CUT = re.compile(
    r"[|,;\t{}>\n]|(?<![\w.])--?(?=\s)|\s{2,}(?=\S)|[\])]+(?=[\s:,;-]|$)|\[|(?<![^\s(])\(|(?<=[\w\]) ])[:=](?=\s)|^\s*[:=](?=\s)|\*|#+(?=\s)",
    re.ASCII,
)
_WRAP = re.compile(
    r"(?:(?:\btensor|\b(?:np|numpy|torch|jnp)\.\w+|\barray|\bArray|\bDecimal)\(+)?[\[('\"$~\s]*$", re.ASCII
)
_STRONG = re.compile(r"\s*(?:[:=]|=>|->|:=)\s*$", re.ASCII)
_SHAPE = re.compile(r"[A-Za-z_%#\x80-\xff][^\"`?!\\]*", re.ASCII)
_LETTER = re.compile(r"[A-Za-z\x80-\xff]", re.ASCII)
_WORDS = re.compile(r"[A-Za-z\x80-\xff_][\w\x80-\xff'/.-]*", re.ASCII)
_IS = re.compile(r"\s(?:is|was)\s*$")
_STOP = frozenset(
    [
        "at",
        "At",
        "is",
        "of",
        "to",
        "the",
        "The",
        "a",
        "in",
        "on",
        "for",
        "with",
        "and",
        "was",
        "from",
        "by",
        "From",
        "as",
    ]
)
_UNIT = re.compile(r"\s*\([^()]{1,24}\)\s*$")
_HELD_OUT = re.compile(r"validat\w*|evaluat\w*", re.IGNORECASE)


@lru_cache(maxsize=4096)
def signal_of(name: str) -> str:
    """The signal that a name means: `other` for what is known and never judged, "" for what is not known."""
    meaning = recognise(name)
    return "" if meaning is None else meaning.signal


@lru_cache(maxsize=4096)
def position_rank(name: str) -> int | None:
    """How good a name is as a step (0 is best), None where it counts no steps (`val step`) or plans them (`num_epochs`)."""
    words = split_name(name).set
    planned = words & {"num", "max", "number", "n"} or ("total" in words and "timesteps" not in words)
    return None if planned else step_rank(name)


def is_scope(name: str) -> bool:
    """Whether a name is nothing but the part of the data: `Train`, `val`."""
    words = split_name(_HELD_OUT.sub("validation", name)).set
    return bool(words) and words <= TRAIN | EVAL


def in_unicode(name: str) -> str:
    """A name from text that was decoded as latin-1."""
    return name if name.isascii() else name.encode("latin-1", "replace").decode("utf-8", "replace")


def known(name: str) -> bool:
    """Whether a name says something to us."""
    return position_rank(name) is not None or signal_of(name) != ""


@lru_cache(maxsize=4096)
def scope_of(text: str) -> str:
    """`val`, `test` or `train` where words speak of a part of the data, else ""."""
    words = split_name(_HELD_OUT.sub("validation", text)).set
    if words & EVAL:
        return "test" if words & TEST else "val"
    return "train" if words & TRAIN else ""


def words_in(text: str) -> int:
    """Number of words of a text, units and single letters left out."""
    return sum(len(word) > 1 for word in _WORDS.findall(text))


def unwrapped(gap: str) -> tuple[str, str]:
    """A gap without what wraps the number that follows (`tensor(`, quotes, brackets), and the wrapping."""
    match = _WRAP.search(gap)
    return (gap[: match.start()], match.group().strip()) if match else (gap, "")


def strong_key(gap: str) -> tuple[str, str] | None:
    """The key before a colon or equals sign, and the text before the key; None if there is none."""
    match = _STRONG.search(gap)
    if match is None:
        return None
    before, key = cut(gap[: match.start()].rstrip(" '\""))
    return (key, before) if _is_key(key, MOST_WORDS) else ("", gap)


def weak_key(gap: str) -> tuple[str, str] | None:
    """A known name of up to three words that ends the gap, and the text before it; None if there is none."""
    before, tail = cut(_IS.sub("", gap))
    words = tail.split()
    for count in (3, 2, 1):
        if len(words) >= count and _STOP.isdisjoint(words[-count:]):
            key = _clean(" ".join(words[-count:]))
            if (
                len(key) > 1
                and _is_key(key, 3)
                and known(key)
                and (count == 1 or count == len(words) or _all_known(words[-count:]))
            ):
                return key, " ".join([before, *words[: len(words) - count]])
    return None


def _all_known(words: list[str]) -> bool:
    return scope_of(words[0]) != "" and known(words[-1])


def cut(text: str) -> tuple[str, str]:
    """Split a text after its last delimiter."""
    unit = _UNIT.search(text)
    end, stop = 0, unit.start() if unit and unit.start() else len(text)
    for match in _CUT.finditer(text, 0, stop):
        inside = text[end : match.end()]
        if inside[-1] != ")" or inside.count(")") > inside.count("("):
            end = match.end()
    tail = text[end:]
    if tail.count("(") != tail.count(")") and "(" in tail:
        end += tail.rfind("(") + 1
    return text[:end], _clean(text[end:])


def _clean(key: str) -> str:
    key = key.strip().strip("'\"*•`").lstrip("#>-=.~/ ").rstrip(" '\"")
    return key.strip("()[] ") if key.count("(") != key.count(")") or key.startswith("(") else key


def _is_key(key: str, most: int) -> bool:
    return (
        0 < len(key) <= LONGEST
        and _SHAPE.fullmatch(key) is not None
        and _LETTER.search(key) is not None
        and len(key.split()) <= most
        and "http" not in key
    )
