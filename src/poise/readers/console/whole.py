"""Read a whole console text, block by block."""

from __future__ import annotations

from pathlib import Path

from poise.readers.base import RawRun, UnreadableError
from poise.readers.console.collect import Collector
from poise.readers.console.failures import Failures
from poise.readers.console.finish import finish
from poise.readers.console.settings import Settings, Trainers
from poise.readers.source import blocks

NAME = "console"


def read(path: Path) -> list[RawRun]:
    """Read a console text as one run; restarts stay in it, row after row.

    Raises:
        UnreadableError: there are neither numbers of a training nor a failure in it.
    """
    raw = RawRun(str(path), NAME)
    collector, failures, settings, trainers = Collector(), Failures(), Settings(), Trainers()
    line = 1
    for block in blocks(path, notes=raw.notes):
        trainers.feed(block)
        before = collector.first_loss is None
        failures.feed(block, line, collector.feed(block, line))
        settings.feed(_until(block, collector.first_loss_line, line) if before else block, before)
        line += block.count(b"\n")
    failures.finish()
    raw.config, raw.versions, raw.trainer = settings.config, settings.versions, trainers.best()
    finish(collector, failures, settings.loose, raw)
    if not raw.columns and not any(event.kind != "overflow" for event in raw.events):
        raise UnreadableError(
            f"{path} holds no numbers of a training: no line with a name such as loss and a number repeats in its {line} lines. "
            "If it is a log, show its lines to us; a name that is not known can be given with --map loss=NAME."
        )
    return [raw]


def _until(block: bytes, stop: int | None, line: int) -> bytes:
    """The part of a block before line `stop`, where `line` is its first."""
    return block if stop is None else b"\n".join(block.split(b"\n", max(0, stop - line))[:-1])
