"""Diagnosing many files: on all cores, in the order in which they were named, and whatever happens to one of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from poise.cli import internal
from poise.offline import Diagnosis, diagnose_path
from poise.readers.base import UnreadableError
from poise.report.layout import Style

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

FEW = 4  # files below this are not worth a second process


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be made of each run.

    Args:
        line: one line a run instead of a report.
        json, page: whether the JSON object and the data of the HTML page are needed.
    """

    mapping: dict[str, str] = field(default_factory=dict)
    preset: str | None = None
    language: str = "en"
    style: Style = field(default_factory=Style)
    line: bool = False
    quiet: bool = False
    json: bool = False
    page: bool = False


@dataclass(frozen=True, slots=True)
class Told:
    """One run, ready to be written out."""

    level: str
    text: str
    json: dict[str, Any] | None
    page: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one file.

    Args:
        error: why it could not be read (exit code 2), or the internal error (exit code 3).
        code: the exit code that this file asks for.
    """

    path: str
    runs: tuple[Told, ...] = ()
    error: str = ""
    code: int = 0


def outcomes(paths: Sequence[Path], wanted: Wanted, jobs: int | None = None) -> Iterator[Outcome]:
    """Diagnose files, in parallel where there are many; yields in the order of `paths`."""
    jobs = min(jobs or _cores(), len(paths))
    if jobs < 2 or len(paths) <= FEW:
        for path in paths:
            yield diagnose_file(path, wanted)
        return
    yield from _parallel(paths, wanted, jobs, diagnose_file)


def diagnose_file(path: Path, wanted: Wanted) -> Outcome:
    """Diagnose one file; never raises but for Ctrl-C."""
    told: list[Told] = []
    code = 0
    try:
        for diagnosis in diagnose_path(path, wanted.mapping, wanted.preset):
            told.append(_tell(diagnosis, wanted))
            code = max(code, int(any(i.severity == "critical" for i in diagnosis.incidents)))
    except UnreadableError as error:
        return Outcome(str(path), tuple(told), str(error), 2)
    except MemoryError:
        return Outcome(
            str(path), tuple(told), f"{path} does not fit into memory. Diagnose it on a machine with more.", 2
        )
    except Exception as error:
        if os.environ.get("POISE_DEBUG"):
            raise
        return Outcome(str(path), tuple(told), f"{path}: {internal(error)}", 3)
    return Outcome(str(path), tuple(told), "", code)


def _tell(diagnosis: Diagnosis, wanted: Wanted) -> Told:
    from poise.report.verdict import verdict

    level = verdict(diagnosis).level
    text, made, page = "", None, None
    if wanted.json:
        from poise.report.as_json import run_object

        made = run_object(diagnosis)
    else:
        from poise.report.terminal import report, verdict_line

        text = (
            verdict_line(diagnosis, wanted.style, wanted.language)
            if wanted.line
            else report(diagnosis, wanted.style, wanted.language, wanted.quiet)
        )
    if wanted.page:
        from poise.report.html import run_page

        page = run_page(diagnosis, wanted.language)
    return Told(level, text, made, page)


def _parallel(
    paths: Sequence[Path], wanted: Wanted, jobs: int, work: Callable[[Path, Wanted], Outcome]
) -> Iterator[Outcome]:
    """A few files ahead of what was yielded; a worker that dies costs the files in flight a second try, each alone."""
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    position = 0
    while position < len(paths):
        pool = ProcessPoolExecutor(jobs)
        flying: list[Future[Outcome]] = []
        try:
            _fill(pool, flying, paths, position, jobs, wanted, work)
            while flying:
                outcome = flying[0].result()
                flying.pop(0)
                position += 1
                _fill(pool, flying, paths, position, jobs, wanted, work)
                yield outcome
        except BrokenProcessPool:
            suspects = paths[position : position + max(len(flying), 1)]
            for path in suspects:
                yield _alone(path, wanted, work)
            position += len(suspects)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _fill(
    pool: ProcessPoolExecutor, flying: list[Future[Outcome]], paths: Sequence[Path], position: int, jobs: int, wanted: Wanted,
    work: Callable[[Path, Wanted], Outcome],
) -> None:  # fmt: skip
    waiting = paths[position + len(flying) : position + 4 * jobs]
    flying.extend(pool.submit(work, path, wanted) for path in waiting)


def _alone(path: Path, wanted: Wanted, work: Callable[[Path, Wanted], Outcome]) -> Outcome:
    """One file in a process of its own, so that its death is known to be its own."""
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    with ProcessPoolExecutor(1) as pool:
        try:
            return pool.submit(work, path, wanted).result()
        except BrokenProcessPool:
            text = f"{path}: the process that read it died, most likely for lack of memory. Diagnose it alone, with --jobs 1."
            return Outcome(str(path), (), text, 3)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
