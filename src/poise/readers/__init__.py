"""Readers of foreign logs: one file per format, told apart by content.

`identify` finds the reader of a file, `read` reads it, `discover` finds the runs in a folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from poise.readers import console, csv, hf_state, jsonl, source, tfevents, unlike, wandb_binary, wandb_json
from poise.readers.base import RawRun, Reader, UnreadableError
from poise.readers.discover import Candidate, Discovery, discover, read_candidate, read_folder

READERS: tuple[Reader, ...] = (
    tfevents.READER,
    wandb_binary.READER,
    hf_state.READER,
    wandb_json.READER,
    csv.READER,
    jsonl.READER,
    console.READER,
)
"""Every format. The order decides between readers that are equally sure."""

LEAST = 0.1
"""How sure a reader must be, at least, to be tried."""

_CERTAIN = 0.95
_SURER_THAN_TEXT = 0.65


def identify(path: Path) -> Reader:
    """Return the reader that is surest of a file, by its content.

    Raises:
        UnreadableError: the file cannot be opened, or no reader knows it.
    """
    return _ranked(path)[0][1]


def read(path: Path | Candidate) -> list[RawRun]:
    """Read the runs in a file, in the event files of a folder, or in a candidate of `discover`.

    Raises:
        UnreadableError: as `identify`, or the content is damaged beyond use.
    """
    if isinstance(path, Candidate):
        return read_candidate(path)
    if path.is_dir():
        return read_folder(path)
    first: UnreadableError | None = None
    for _, reader in _ranked(path):
        try:
            return reader.read(path)
        except UnreadableError as error:
            first = first or error
        except RecursionError:
            first = first or UnreadableError(f"{path} is nested too deeply for a {reader.name} log.")
    assert first is not None
    raise first


def sureness(path: Path) -> Iterator[tuple[float, Reader]]:
    """Yield how sure each reader is of a file, in the order of `READERS`; stops where one is certain.

    Console text comes last and is never surer than 0.6: it is not asked, nor loaded, where another reader is surer.
    """
    head = source.head(path)
    best = 0.0
    for reader in READERS:
        if best >= (_SURER_THAN_TEXT if reader is console.READER else _CERTAIN):
            return
        sure = reader.sniff(head, path)
        best = max(best, sure)
        yield sure, reader


def _ranked(path: Path) -> list[tuple[float, Reader]]:
    """The readers worth a try, surest first."""
    every = list(sureness(path))
    ranked = sorted((pair for pair in every if pair[0] > LEAST), key=lambda pair: -pair[0])
    if not ranked:
        raise UnreadableError(_unknown(path))
    return ranked


def _unknown(path: Path) -> str:
    what = unlike.what_is(source.head(path))
    if what is not None:
        return f"{path} is {what}, not a training log. Name the log that was written beside it."
    tried = ", ".join(reader.name for reader in READERS)
    return (
        f"{path} is no training log that can be recognised (tried: {tried}). `poise formats` lists what can be read; "
        "name a signal with --map loss=NAME if the log calls it something unusual."
    )


__all__ = [
    "READERS",
    "Candidate",
    "Discovery",
    "RawRun",
    "Reader",
    "UnreadableError",
    "discover",
    "identify",
    "read",
    "sureness",
]
