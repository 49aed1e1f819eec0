"""What a reader is given and what it returns. A reader parses; it does not interpret (see `normalise.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from poise.records import Event, Floats, Ints, Message


class UnreadableError(ValueError):
    """A file that cannot be read as a training log. The message names file, place and remedy, in one or two sentences."""


@dataclass(frozen=True, slots=True)
class RawColumn:
    """One named series as the file has it.

    Args:
        rows: (n,) the file's record number of each point, counted from 0 over all records; ties columns of one record.
        values: (n,) float64; NaN and Inf as written. A missing cell is an absent point, not NaN.
        steps: (n,) only for formats that state a step for each point (event files); else None.
    """

    rows: Ints
    values: Floats
    steps: Ints | None = None


@dataclass(slots=True)
class RawRun:
    """One run as a reader found it: the file's own names, nothing guessed, nothing dropped.

    Args:
        path: the file.
        format: the reader's name, kebab-case, shown to users.
        trainer: `hf`, `lightning`, `keras`, `megatron`, `deepspeed`, `nanogpt`, ... or None.
        columns: the file's name -> points. Everything numeric, also times and counters.
        events: exceptions, overflows, signals, end of run; `step` None means at the end.
        config: hyper-parameters that the file states, flat, the file's own names.
        notes: what the user should know of the reading itself.
        versions: library versions that the file states.
    """

    path: str
    format: str
    trainer: str | None = None
    columns: dict[str, RawColumn] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)
    notes: list[Message] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reader:
    """A log format: how to know it and how to read it.

    Args:
        name: kebab-case, shown as `format`.
        sniff: how sure (0 to 1) that a file with these first bytes is of this format. The bytes are the first 64 KiB after
            decompression; text readers may decode them with `source.decode`. Content decides, the name only breaks ties.
        read: parse one file. Raises `UnreadableError` with a clear message; never anything else on bad input.
        join: parse several files of one run, for formats that spread a run over files; else None.
    """

    name: str
    sniff: Callable[[bytes, Path], float]
    read: Callable[[Path], list[RawRun]]
    about: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    join: Callable[[Sequence[Path]], list[RawRun]] | None = None
