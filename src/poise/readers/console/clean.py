"""Console bytes made plain: no escape codes, one record a line, prefixes of loggers and launchers told apart."""

from __future__ import annotations

import re

_ESCAPES = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?|[@-Z\\^_])|[\x00\x08\x07]")
_GLUED = re.compile(
    rb"(?<=[\]}])[ ]*(?=\{['\"])|(?<=[}])[ ]+(?=\d{1,3}%\|)|(?<=\])[ ]*(?=(?:Epoch[^|\n]{0,40}:[ ]+)?\d{1,3}%\|)"
)
_WIDE = ((b"\xef\xbc\x9a", b": "), (b"\xef\xbc\x8c", b", "), (b"\xc2\xa0", b" "), (b"\xe2\x80\x89", b" "))


def plain(block: bytes, split: bool = True) -> bytes:
    """Strip escape codes and, if `split`, give each dict and each progress bar a line of its own."""
    if b"\x1b" in block or b"\x00" in block or b"\x08" in block:
        block = _ESCAPES.sub(b"", block)
    if not block.isascii():
        for wide, narrow in _WIDE:
            block = block.replace(wide, narrow)
    return _GLUED.sub(b"\n", block) if split and (b"{" in block or b"|" in block) else block


_CLOCK = r"\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?"
_DATE = r"(?:\d{4}[-/.]\d{2}[-/.]\d{2}|\d{2}[-/]\d{2}(?:[-/]\d{2,4})?|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +\d{1,2})"
_LEVEL = r"(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|TRACE|SUCCESS|NOTICE)"
_STAMP = rf"(?:{_DATE}(?:[T ,_]+{_CLOCK})?(?:Z|[-+]\d\d:?\d\d)?|{_CLOCK})"
_RANK = (
    r"\[(?:rank ?|Rank ?|RANK ?|default|local_rank)[:= ]?(?P<rank>\d+)\][: ]*",
    r"\((?:[\w.\[\]-]+ )?pid=(?P<pid>\d+)[^)\n]{0,60}\)",
)
_PIECES = (
    *_RANK,
    rf"\[[^\][\n]{{0,40}}(?:{_STAMP}|{_LEVEL}|\.py\b)[^\][\n]{{0,60}}\]",
    r"\([^()\n]{0,60}\.py\b[^()\n]{0,30}\)",
    r"\([\w./]{1,60}:\d+\)",
    rf"[IWEF]\d{{4}} {_CLOCK} +\d+ [\w./-]+:\d+\]",
    rf"{_STAMP}(?= |\t|\||,|:|-|$|\])(?: ?- ?[\w.]+(?= ?- ?{_LEVEL}))?",
    rf"{_LEVEL}(?=[\s:|\]-])(?::[\w.]+(?=:))?(?: +[\w./-]+(?=:\d+ *[\]>]))?",
    r"[\w.]+:[\w.<>]+:\d+ +(?=- |\| |\[|>)",
    r"[\w./-]+\.py:\d+(?::\w+)?[:\]]?",
    r"\[[a-z]{4,16}\](?= )",
    r"[\w.]+(?= - (?:" + _LEVEL + r"|\[))",
)  # fmt: skip
_NEXT = re.compile(r"[ \t]*(?:" + "|".join(_PIECES) + r")[ \t:|>\]-]*", re.ASCII)
_LABEL = re.compile(r"[ \t]*(?P<rank>\d{1,5}): ", re.ASCII)


def prefix(text: str, labelled: bool = False) -> tuple[int, tuple[int, int] | None]:
    """Return where the message of a line starts, and where in the prefix a rank stands, if one does.

    Args:
        labelled: the file's lines begin with `3: `, as `srun -l` writes.
    """
    at, rank = 0, None
    if labelled and (match := _LABEL.match(text)):
        at, rank = match.end(), match.span("rank")
    for _ in range(8):
        match = _NEXT.match(text, at)
        if match is None or match.end() == at:
            break
        if match["rank"] is not None:
            rank = match.span("rank")
        at = match.end()
    return at, rank


def is_labelled(lines: list[bytes]) -> bool:
    """Whether lines carry `srun -l` labels: nearly all begin with a number and a colon, and these do not just count up."""
    sample = [line for line in lines[:400] if line.strip()]
    found = [int(m["rank"]) for line in sample if (m := _LABEL.match(line[:16].decode("latin-1")))]
    rises = sum(b > a for a, b in zip(found, found[1:], strict=False))
    return (
        len(found) >= 4
        and len(found) > 0.8 * len(sample)
        and len(set(found)) < 0.5 * len(found)
        and rises < 0.9 * len(found)
    )
