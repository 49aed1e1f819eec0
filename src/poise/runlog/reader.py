"""Read a run folder, sealed or growing. Readers never write into it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from poise.records import Column, Floats, Ints
from poise.runlog.frames import Group
from poise.runlog.seal import read_tail


@dataclass(frozen=True, slots=True)
class Stretch:
    """Part of one series: steps and values (n,) or (n, width) of one segment and branch."""

    steps: Ints
    values: Floats
    shape: str


@dataclass(slots=True)
class RunReader:
    """A run's series by name.

    Args:
        folder: the run folder.
        rank: whose rows; ranks that do not record have none.
    """

    folder: Path
    rank: int = 0
    _tails: dict[Path, tuple[tuple[int, int], dict[tuple[Group, int], tuple[Ints, Floats]]]] = field(
        default_factory=dict
    )

    def header(self) -> dict[str, Any]:
        """The run's header; empty while it is not there."""
        path = self.folder / "run.json"
        return dict(json.loads(path.read_text())) if path.exists() else {}

    def names(self) -> list[str]:
        """All series, in the order in which their groups were agreed."""
        found: dict[str, None] = {}
        for segment in self._segments():
            if segment.suffix == ".arrow":
                found |= dict.fromkeys(_batch(segment)["name"].to_pylist())
            else:
                for group, _ in self._tail(segment):
                    found |= dict.fromkeys(group.columns)
        return list(found)

    def branches(self) -> list[int]:
        """The branches that have rows, in order."""
        found = set()
        for segment in self._segments():
            found |= {_branch(segment)} if segment.suffix == ".arrow" else {branch for _, branch in self._tail(segment)}
        return sorted(found)

    def read(self, name: str, branch: int = 0) -> Column:
        """One series of one branch, NaN and Inf as measured; empty where it was never measured.

        Cost: about 0.1 ms per sealed segment plus the copy; 1,000,000 steps in well under 50 ms from a warm cache.
        """
        return self.read_many([name], branch)[name]

    def read_many(
        self, names: list[str], branch: int = 0, start: float = -np.inf, stop: float = np.inf
    ) -> dict[str, Column]:
        """Several series with start <= step < stop; each segment is opened once, and those outside are not read."""
        found: dict[str, list[Stretch]] = {name: [] for name in names}
        for segment in self._segments():
            for name, stretch in self._stretches(segment, names, branch):
                first, last = (
                    np.searchsorted(stretch.steps, [start, stop])
                    if np.isfinite([start, stop]).any()
                    else (0, len(stretch.steps))
                )
                if last > first:
                    found[name].append(Stretch(stretch.steps[first:last], stretch.values[first:last], stretch.shape))
        return {name: _joined(stretches) for name, stretches in found.items()}

    def events(self) -> Iterator[dict[str, Any]]:
        """The run's events in order of writing; a torn last line is left out."""
        path = self.folder / f"events-{self.rank}.jsonl"
        if not path.exists():
            return
        with open(path, "rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    yield json.loads(line)

    def _segments(self) -> list[Path]:
        """Sealed files and tails, in order. A tail that is being sealed counts once: its sealed files appear all at once or not."""
        tails = {p.stem: p for p in self.folder.glob(f"rows-{self.rank}-*.tail")}
        sealed = [p for p in self.folder.glob(f"rows-{self.rank}-*.arrow") if p.name.partition(".")[0] not in tails]
        return sorted([*tails.values(), *sealed])

    def _stretches(self, segment: Path, names: list[str], branch: int) -> Iterator[tuple[str, Stretch]]:
        if segment.suffix == ".arrow":
            yield from _sealed(segment, names) if _branch(segment) == branch else ()
            return
        for (group, mine), (steps, values) in self._tail(segment).items():
            for name in names if mine == branch else ():
                if name in group.columns:
                    at = group.columns.index(name)
                    start, width = sum(group.widths[:at]), group.widths[at]
                    yield (
                        name,
                        Stretch(
                            steps,
                            values[:, start] if width == 1 else values[:, start : start + width],
                            group.shapes[at],
                        ),
                    )

    def _tail(self, segment: Path) -> dict[tuple[Group, int], tuple[Ints, Floats]]:
        """A tail's rows; read again only when the file has changed."""
        about = segment.stat()
        key = (about.st_size, about.st_mtime_ns)
        known = self._tails.get(segment)
        if known is None or known[0] != key:
            self._tails[segment] = known = (key, read_tail(segment.read_bytes()))
        return known[1]


def _batch(segment: Path) -> Any:
    import pyarrow as pa

    return pa.ipc.open_file(pa.memory_map(str(segment))).get_batch(0)


def _branch(segment: Path) -> int:
    return int(segment.name.split(".")[-2])


def _sealed(segment: Path, names: list[str]) -> Iterator[tuple[str, Stretch]]:
    """Series of a sealed segment, without touching the others."""
    import pyarrow.compute as pc

    batch = _batch(segment)
    rows = (
        {name: pc.index(batch["name"], name).as_py() for name in names}
        if len(names) < 8
        else {n: i for i, n in enumerate(batch["name"].to_pylist())}
    )
    wanted = [(name, row) for name in names if (row := rows.get(name, -1)) >= 0]
    if not wanted:
        return
    steps = batch["steps"][0].values.to_numpy()
    everything, ends = batch["values"].values.to_numpy(), batch["values"].offsets.to_numpy()
    widths, shapes = batch["width"].to_numpy(), batch["shape"]
    for name, row in wanted:
        values = everything[ends[row] : ends[row + 1]]
        yield name, Stretch(steps, values if widths[row] == 1 else values.reshape(-1, widths[row]), shapes[row].as_py())


def _joined(stretches: list[Stretch]) -> Column:
    if not stretches:
        return Column(np.empty(0, np.int64), np.empty(0))
    shape: Any = stretches[0].shape
    steps, values = (
        np.concatenate([s.steps for s in stretches]),
        np.concatenate([s.values for s in stretches]).astype(np.float64),
    )
    if np.any(steps[1:] < steps[:-1]):  # a group whose columns changed in mid-run
        order = np.argsort(steps, kind="stable")
        steps, values = steps[order], values[order]
    return Column(steps, values, shape=shape)
