"""A finished log, from file to diagnosis: read, normalise, watch, explain. The same steps that a live run goes through."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from poise import presets
from poise.readers import read
from poise.readers.base import UnreadableError
from poise.readers.normalise import Run, normalise
from poise.records import SEVERITIES, Column, Frame, Incident, Message, RunInfo
from poise.watch import Watch

PRESETS = ("pretrain", "finetune", "rl", "field-rules")
PIECE_ROWS = 1 << 16  # rows judged at a time: bounds the memory of a long log
LEAST_POINTS = 3  # with fewer points there is nothing to judge


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a log says of its run.

    Args:
        frames: one per branch, with every signal; the last one is where the run stands.
        incidents: with their causes; most serious first, then the most urgent by priority, then the earliest.
        grade: A to E, or None where nothing could be judged.
        not_checked: (what, why) for each thing that this log cannot show.
        points: rows of the main series over all branches.
        main: the column judged as the main series.
        not_named: the log's names that say nothing to Poise.
    """

    info: RunInfo
    frames: tuple[Frame, ...]
    incidents: tuple[Incident, ...]
    grade: str | None
    grade_basis: str
    not_checked: tuple[tuple[Message, Message], ...]
    points: int
    main: str | None
    not_named: tuple[str, ...] = ()

    @property
    def steps(self) -> tuple[int, int] | None:
        """First and last step of the main series, of all series where there is none."""
        columns = [c for f in self.frames for n, c in f.columns.items() if len(c) and (self.main in (None, n))]
        if not columns:
            return None
        return min(int(c.steps[0]) for c in columns), max(int(c.steps[-1]) for c in columns)

    @property
    def signals(self) -> tuple[str, ...]:
        """Names of all columns, in the log's order."""
        return tuple(dict.fromkeys(name for f in self.frames for name in f.columns))

    @property
    def judged(self) -> bool:
        """Whether there was enough to say anything about the run's health."""
        return self.grade is not None

    def columns(self, branch: int) -> Mapping[str, Column]:
        """The columns of a branch."""
        return next((f.columns for f in self.frames if f.branch == branch), {})


def diagnose_path(
    path: Path, mapping: Mapping[str, str] | None = None, preset: str | None = None
) -> Iterator[Diagnosis]:
    """Diagnose each run in a file.

    Args:
        path: a log in any format that `poise.readers` knows.
        mapping: signal -> the log's name for it, where the user says so.
        preset: a name of `PRESETS`; None lets the log decide.

    Raises:
        UnreadableError: not a log, or a log without one number.
    """
    for raw in read(path):
        run = normalise(raw, mapping)
        if not run.frames:
            raise UnreadableError(
                f"{raw.path} ({raw.format}) holds no numbers over steps. Name the file that the trainer writes its loss to."
            )
        yield diagnose_run(run, preset)


def diagnose_run(run: Run, preset: str | None = None) -> Diagnosis:
    """Judge a run from its first row to its last."""
    watch = watch_for(run, preset)
    for frame in run.frames:
        for piece in frame.cut(PIECE_ROWS):
            watch.update(piece)
    return conclude(run, watch)


def conclude(run: Run, watch: Watch) -> Diagnosis:
    """What a watch that has seen a run makes of it."""
    incidents = with_causes(watch.incidents, run.info, run.frames)
    grade: str | None
    grade, basis = watch.grade()
    if not incidents and (run.main is None or run.points < LEAST_POINTS):
        grade, basis = None, "none"
    ranked = tuple(sorted(incidents, key=urgency))
    return Diagnosis(
        run.info, run.frames, ranked, grade, basis, _not_checked(watch, run), run.points, run.main, run.not_named
    )


def with_causes(incidents: Iterable[Incident], info: RunInfo, frames: Iterable[Frame]) -> tuple[Incident, ...]:
    """The incidents, each with the causes that its branch, and what came before it, speak for."""
    everything, seen = tuple(incidents), tuple(frames)
    if not everything:
        return ()
    from poise.diagnose import case_of, diagnose  # loaded for sick logs only: a third of what would be imported

    return tuple(replace(i, causes=diagnose(case_of(i, info, seen, everything))) for i in everything)


def urgency(incident: Incident) -> tuple[int, str, int, int, int]:
    """Sort key: the most serious first, P0 before P1, then the earliest."""
    priority = incident.causes[0].priority if incident.causes else "P3"
    return -SEVERITIES.index(incident.severity), priority, incident.branch, incident.onset_step, incident.id


def watch_for(run: Run, preset: str | None) -> Watch:
    """A fresh watch for a run: the named preset, or the one that fits what the log holds."""
    name = preset or "pretrain"
    watch: Watch = getattr(presets, name.replace("-", "_"))(run.info)
    return watch


def _not_checked(watch: Watch, run: Run) -> tuple[tuple[Message, Message], ...]:
    return ()
