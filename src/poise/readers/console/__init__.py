"""Any console text of a training: HF dicts, Megatron, DeepSpeed, nanoGPT, bars of Lightning and Keras, tables, `key: value`."""

from __future__ import annotations

from pathlib import Path

from poise.readers.base import RawRun, Reader, UnreadableError
from poise.readers.console.clean import plain
from poise.readers.console.collect import Collector
from poise.readers.console.failures import Failures
from poise.readers.console.finish import finish
from poise.readers.console.settings import Settings, Trainers
from poise.readers.console.sniff import sniff
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
        collector.feed(block, line)
        text = plain(block) if b"\x1b" in block else block
        failures.feed(text, line)
        settings.feed(text, before)
        line += block.count(b"\n")
    failures.finish()
    raw.config, raw.versions, raw.trainer = settings.config, settings.versions, trainers.best()
    finish(path, collector, failures, raw)
    if not raw.columns and not any(event.kind != "overflow" for event in raw.events):
        raise UnreadableError(
            f"{path} holds no numbers of a training: no line with a name such as loss and a number repeats in its {line} lines. "
            "If it is a log, show its lines to us; a name that is not known can be given with --map loss=NAME."
        )
    return [raw]


READER = Reader(NAME, sniff, read, "any console text: dicts, key-value lines, bars, tables, tracebacks")
