"""Finds the runs under some paths: which files there are logs, and which of them belong to one run.

A folder with event files is one run. Of a Hugging Face output folder, whose checkpoints each hold the run up to then,
the longest history is taken. Of a W&B run folder it is the binary log, and the summary only for want of better.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from poise.readers import families, loglike, source
from poise.readers.base import RawRun, Reader, UnreadableError
from poise.readers.families import Candidate

Seen = Callable[[int], None]
_LATER = 1 << 20


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that is called like a log and is none, or that another file of its run makes superfluous."""

    path: Path
    why: str


@dataclass(slots=True)
class Discovery:
    """What was found; iterates over the candidates.

    Args:
        skipped: files one might have expected, with the reason.
        others: how many files are something else.
    """

    candidates: list[Candidate] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    others: int = 0

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self.candidates)

    def __len__(self) -> int:
        return len(self.candidates)


def discover(paths: Iterable[Path | str], seen: Seen | None = None) -> Discovery:
    """Find the runs under paths: files are taken as they are, folders are searched.

    Args:
        paths: files and folders; the order is kept, inside a folder runs are sorted by path.
        seen: told how many files were looked at so far, for a progress bar.

    Raises:
        UnreadableError: a path does not exist.
    """
    found = Discovery()
    known: set[Path] = set()
    for given in map(Path, paths):
        if given.is_dir():
            _search(given, found, known, seen)
        elif not given.exists():
            raise UnreadableError(f"{given} does not exist. Check the path.")
        else:
            found.candidates.append(Candidate(given, (given,), None))
    return found


def read_candidate(candidate: Candidate) -> list[RawRun]:
    """Read a run from its files; what the others of its run add (exceptions in the output) is merged in.

    Raises:
        UnreadableError: as the reader does.
    """
    from poise.readers import identify, read

    reader = candidate.reader or identify(candidate.files[0])
    if len(candidate.files) > 1 and reader.join is not None:
        runs = reader.join(candidate.files)
    else:
        runs = reader.read(candidate.files[0]) if candidate.reader else read(candidate.files[0])
    for output in candidate.output:
        families.add_failures(runs, output, read)
    return runs


def read_folder(folder: Path) -> list[RawRun]:
    """Read the run that lies directly in a folder, else every run below it.

    Raises:
        UnreadableError: there is none, or one cannot be read.
    """
    found = discover([folder])
    own = [c for c in found if c.path == folder]
    if not len(found):
        raise UnreadableError(f"{folder} holds no training log that can be recognised. Name the log file itself.")
    return [run for candidate in own or found for run in read_candidate(candidate)]


def _search(folder: Path, found: Discovery, known: set[Path], seen: Seen | None) -> None:
    """Add the runs below a folder."""
    logs: list[tuple[Path, Reader]] = []
    runs: list[Candidate] = []
    looked = 0
    for place, files in _walk(folder):
        if (tracked := families.wandb_run(place, files)) is not None:
            runs += _tracked(tracked, found)
            continue
        for path in files:
            looked += 1
            reader = _recognise(path, found)
            if reader is None:
                continue
            real = path.resolve()
            if real not in known:
                known.add(real)
                logs.append((path, reader))
        if seen is not None:
            seen(looked)
    grouped, superfluous = families.group(logs)
    found.skipped += [Skipped(path, f"its run goes on in {better}") for path, better in superfluous]
    found.candidates += sorted([*runs, *grouped], key=lambda c: (str(c.path), str(c.files[0])))


def _walk(folder: Path) -> Iterator[tuple[Path, list[Path]]]:
    """Yield folders with their files, sorted; links to folders are not followed, so there are no loops."""
    for place, inner, names in os.walk(folder):
        here = Path(place)
        if families.is_wandb_run(here, names):
            inner.clear()
        inner[:] = sorted(name for name in inner if loglike.is_worth_entering(here / name))
        yield here, [here / name for name in sorted(names)]


def _recognise(path: Path, found: Discovery) -> Reader | None:
    """The reader of a file in a tree, None where it is no log."""
    from poise.readers import identify, sureness

    if not loglike.is_worth_opening(path):
        found.others += 1
        return None
    try:
        reader = identify(path)
        sure = max(s for s, r in sureness(path) if r is reader)
        if loglike.is_log(reader.name, sure, source.head(path)):
            return reader
        if reader.name == "console" and loglike.looks_like_log(path) and reader.sniff(_later(path), path) > sure:
            return reader
        why = "no records of a training are in it"
    except UnreadableError as error:
        why = str(error)
    if loglike.looks_like_log(path):
        found.skipped.append(Skipped(path, why))
    else:
        found.others += 1
    return None


def _later(path: Path) -> bytes:
    """Bytes further on in a file: some trainers print their settings for longer than a head is."""
    return source.head(path, _LATER)[-_LATER // 16 :]


def _tracked(options: Sequence[Candidate], found: Discovery) -> list[Candidate]:
    """The first of a W&B run's files that can be used, with the reader that it needs."""
    from poise.readers import identify

    for candidate in options:
        try:
            reader = identify(candidate.files[0])
            if families.is_empty(candidate.files[0], reader):
                raise UnreadableError(f"{candidate.files[0]} holds no history")
        except UnreadableError as error:
            found.skipped.append(Skipped(candidate.path, str(error)))
            continue
        return [replace(candidate, reader=reader)]
    return []


__all__ = ["Candidate", "Discovery", "Skipped", "discover", "read_candidate", "read_folder"]
