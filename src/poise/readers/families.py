"""Files that belong to one run: event files of a folder, states in a trainer's checkpoints, what W&B keeps of a run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from poise.readers import leveldb_log, source
from poise.readers.base import RawRun, Reader, UnreadableError
from poise.readers.protobuf import MalformedError, fields
from poise.readers.tfrecord import Damage

Logs = Sequence[tuple[Path, Reader]]
_EVENTS, _STATE, _BINARY = "tfevents", "hf-trainer-state", "wandb-binary"
_CHECKPOINT = re.compile(r"(?:checkpoint|ckpt|step|epoch|global_step)[-_]?\d+", re.IGNORECASE)
_PARTS = re.compile(r"(?:train|training|val|valid|validation|eval|evaluation|test|dev)(?:_\w+)?", re.IGNORECASE)
_HISTORY = b'"log_history"'
_COMPARED = 2048  # bytes of two histories that must agree for one to be a prefix of the other
_EMPTY_EVENTS = 200  # bytes of an event file that holds no more than its version


@dataclass(frozen=True, slots=True)
class Candidate:
    """One run that can be read; `os.fspath` and `Path` give what `readers.read` takes for it.

    Args:
        path: its file, or its folder where several files make up the run.
        files: what to read.
        reader: how, None to let the content decide.
        output: console output of the same run, in which only exceptions are of interest.
    """

    path: Path
    files: tuple[Path, ...]
    reader: Reader | None
    output: tuple[Path, ...] = ()

    def __fspath__(self) -> str:
        return str(self.path)


def group(logs: Logs) -> tuple[list[Candidate], list[tuple[Path, Path]]]:
    """Gather files into runs; also returns (superfluous file, the file that holds its run)."""
    events = [(path, reader) for path, reader in logs if reader.name == _EVENTS]
    states = [(path, reader) for path, reader in logs if reader.name == _STATE]
    others = [(path, reader) for path, reader in logs if reader.name not in (_EVENTS, _STATE)]
    runs, superfluous = _longest_states(states)
    runs += _event_runs(events)
    runs += [Candidate(path, (path,), reader) for path, reader in others]
    return runs, superfluous


def _event_runs(events: Logs) -> Iterator[Candidate]:
    """One run per folder; `train/` and `validation/` beside each other are one run."""
    folders: dict[Path, list[Path]] = {}
    for path, _ in events:
        folders.setdefault(path.parent, []).append(path)
    whole: dict[Path, list[Path]] = {}
    for folder, files in folders.items():
        parts = [f for f in folders if f.parent == folder.parent and _PARTS.fullmatch(f.name)]
        together = _PARTS.fullmatch(folder.name) and (len(parts) > 1 or folder.parent in folders)
        whole.setdefault(folder.parent if together else folder, []).extend(files)
    for folder, files in whole.items():
        useful = [path for path in files if path.stat().st_size > _EMPTY_EVENTS] or files[:1]
        yield Candidate(folder if len(useful) > 1 else useful[0], tuple(sorted(useful)), events[0][1])


def _longest_states(states: Logs) -> tuple[list[Candidate], list[tuple[Path, Path]]]:
    """Of the histories in a folder and its checkpoints that begin alike, the longest."""
    places: dict[Path, list[tuple[Path, Reader]]] = {}
    for path, reader in states:
        folder = path.parent.parent if _CHECKPOINT.fullmatch(path.parent.name) else path.parent
        places.setdefault(folder, []).append((path, reader))
    runs: list[Candidate] = []
    superfluous: list[tuple[Path, Path]] = []
    for files in places.values():
        longest: list[tuple[Path, bytes]] = []
        for path, reader in sorted(files, key=lambda item: (-item[0].stat().st_size, len(item[0].parts), str(item[0]))):
            start = _start_of_history(path)
            better = next((other for other, begun in longest if _begins_alike(begun, start)), None)
            if better is not None:
                superfluous.append((path, better))
                continue
            longest.append((path, start))
            runs.append(Candidate(path, (path,), reader))
    return runs, superfluous


def _start_of_history(path: Path) -> bytes:
    head = source.head(path)
    return b"".join(head[head.find(_HISTORY) + 1 :][:_COMPARED].split())


def _begins_alike(long: bytes, short: bytes) -> bool:
    end = short.find(b"]")
    short = short[:end] if end > 0 else short
    return long[: len(short)] == short[: len(long)]


def is_wandb_run(folder: Path, names: Iterable[str]) -> bool:
    """Whether a folder is what W&B keeps of one run."""
    names = set(names)
    if folder.name == "files" and names & {"wandb-summary.json", "wandb-metadata.json"}:
        return True
    return any(name.endswith(".wandb") for name in names)


def wandb_run(folder: Path, files: Sequence[Path]) -> list[Candidate] | None:
    """What to read of a W&B run folder, best first; None where a folder is none."""
    if not is_wandb_run(folder, (path.name for path in files)):
        return None
    inner = folder if folder.name == "files" else folder / "files"
    output = tuple(path for path in [inner / "output.log"] if path.is_file())
    better = [Candidate(path, (path,), None, output) for path in files if path.suffix == ".wandb"]
    rest = [inner / "wandb-history.jsonl", *output, inner / "wandb-summary.json"]
    spare = [Candidate(path, (path,), None) for path in rest if path.is_file()]
    return [*better, *(replace(c, output=output) if c.path.suffix == ".jsonl" else c for c in spare)]


def is_empty(path: Path, reader: Reader) -> bool:
    """Whether a W&B log holds no history; looks no further than its first history."""
    if reader.name != _BINARY:
        return False
    for payload in leveldb_log.payloads(path, Damage(), []):
        try:
            if any(number == 2 for number, _, _, _ in fields(payload)):
                return False
        except MalformedError:
            continue
    return True


def add_failures(runs: Sequence[RawRun], output: Path, read: Callable[[Path], list[RawRun]]) -> None:
    """Add the exceptions that the console output ends with to the last run, unless it has some or ended well."""
    if not runs or any(e.kind in ("exception", "signal") or e.data.get("complete") for e in runs[-1].events):
        return
    try:
        printed = read(output)
    except UnreadableError:
        return
    for run in printed:
        ends = [e for e in run.events if e.kind in ("exception", "signal") and not e.data.get("survived")]
        runs[-1].events += [replace(event, step=None) for event in ends]
