"""How sure one can be that a text is the console output of a training."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from poise.readers.console import keys
from poise.readers.console.collect import Collector
from poise.readers.console.failures import Failures

LOG, MAYBE, TEXT = 0.6, 0.3, 0.15
_JSON_LINE = re.compile(rb"[\[\]{}]+,?$|\{\s*[\"}]|\[\s*[\[{\"]|\"[^\"\n]{1,200}\"\s*[:,]|-?\d[\d.eE+-]*,?$")
_MARKDOWN = re.compile(rb"^(?:#{1,6} \w|```|\[!\[|- \[)", re.MULTILINE)


def sniff(head: bytes, path: Path) -> float:
    """Return 0.6 for a text that holds records of a training, 0.3 where another format is likelier, 0.15 for other text."""
    if not _is_text(head):
        return 0.0
    head = head.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    collector, failures = Collector(), Failures()
    head = head if head.endswith(b"\n") else head[: head.rfind(b"\n") + 1] or head
    failures.feed(head, 1, collector.feed(head, 1))
    if 2 * collector.delimited > len(collector.shapes):  # a table of its own, for readers of tables
        return MAYBE
    if _is_json(head):
        return MAYBE if _holds_records(collector) else TEXT / 2
    if not _holds_records(collector):
        return MAYBE if failures.found else TEXT
    return MAYBE if path.suffix.lower() in (".md", ".rst", ".html", ".py") and _MARKDOWN.search(head) else LOG


def _is_text(head: bytes) -> bool:
    if not head.strip():
        return False
    sample = head[:16384]
    odd = len(sample) - len(sample.translate(None, bytes([*range(8), *range(14, 27), *range(28, 32)])))
    return odd <= 0.01 * len(sample) + 2


def _is_json(head: bytes) -> bool:
    """Whether the text is JSON or JSON lines throughout, not lines of a console that hold some."""
    start = head.lstrip(b"\xef\xbb\xbf \t\n")[:1]
    if start not in (b"{", b"["):
        return False
    lines = [line.strip() for line in head.split(b"\n")[:60] if line.strip()]
    return sum(_JSON_LINE.match(line) is not None for line in lines) > 0.8 * len(lines)


def _holds_records(collector: Collector) -> bool:
    """At least two records with a number that is named like a loss, and that moves or is not finite; or with many signals."""
    columns = collector.columns.finish()
    for name, column in columns.items():
        telling = keys.signal_of(name.partition("@")[0]) not in ("", "other", "epoch", "time")
        moving = len(column.values) > 1 and (
            len(np.unique(column.values)) > 1 or not np.all(np.isfinite(column.values))
        )
        if telling and moving:
            return True
    return False
