"""Append a run's rows and events. At most one write per step; nothing here may stop a training."""

from __future__ import annotations

import json
import os
import threading
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.runlog.frames import MAGIC, VERSION, Group, row_frame, schema_frame
from poise.runlog.seal import seal

SEAL_ROWS = 10_000
RETRY_SECONDS = 5.0
PENDING_BYTES = 8 << 20  # what is kept in memory while the disk refuses; the oldest rows go first, and are counted


@dataclass(slots=True)
class RunWriter:
    """Writes one rank's part of a run folder.

    A row is acknowledged when `flush` returned True. While the disk refuses (full, read-only, folder gone) rows are kept up to
    8 MB, one warning is given, and writing is tried again every 5 seconds.

    Args:
        folder: the run's folder; made if missing. Segments of an earlier start are kept: numbering goes on after them.
        rank: this writer's rank.
        seal_rows: rows after which a tail is closed and sealed into Arrow on a background thread.
    """

    folder: Path
    rank: int = 0
    seal_rows: int = SEAL_ROWS
    groups: dict[str, Group] = field(default_factory=dict)
    branch: int = 0
    lost_bytes: int = 0
    _file: int = -1
    _segment: int = -1
    _steps: int = 0
    _last_step: int | None = None
    _buffer: bytearray = field(default_factory=bytearray)
    _written: int = 0
    _refused: float = -1.0
    _sealer: threading.Thread | None = None

    def header(self, facts: Mapping[str, Any]) -> bool:
        """Write `run.json` (temp, fsync, rename). Facts must be JSON-able."""
        text = json.dumps({"poise": VERSION, **facts}, indent=1, default=str)
        return self._guard(lambda: _replace(self.folder / "run.json", text.encode()))

    def group(
        self, name: str, columns: tuple[str, ...], widths: tuple[int, ...] = (), shapes: tuple[str, ...] = ()
    ) -> Group:
        """Agree on a column group; the same name with other columns is a new group."""
        known = self.groups.get(name)
        widths, shapes = widths or (1,) * len(columns), shapes or ("scalar",) * len(columns)
        if known is not None and (known.columns, known.widths, known.shapes) == (columns, widths, shapes):
            return known
        made = Group(
            0 if known is None and not self.groups else 1 + max(g.number for g in self.groups.values()),
            name,
            columns,
            widths,
            shapes,
        )
        self.groups[name] = made
        self._buffer += schema_frame(made)
        return made

    def row(self, group: Group, step: int, values: NDArray[np.float32]) -> None:
        """Add a row to this step's write. `values` holds group.size float32 numbers; absent ones are rows not written, NaN is NaN."""
        if values.shape != (group.size,) or values.dtype != np.float32:
            raise ValueError(
                f"group {group.name} takes {group.size} float32 values per row, not {values.dtype}{values.shape}"
            )
        self._buffer += row_frame(group.number, self.branch, step, values)
        if step != self._last_step:
            self._steps, self._last_step = self._steps + 1, step

    def flush(self) -> bool:
        """Hand the step's rows to the operating system with one write; False while the disk refuses. Cost: one system call."""
        if self._refused >= 0 and time.monotonic() - self._refused < RETRY_SECONDS:
            self._trim()
            return False
        if not self._guard(self._append):
            self._trim()
            return False
        if self._steps >= self.seal_rows:
            self.rotate()
        return True

    def event(self, record: Mapping[str, Any]) -> bool:
        """Append one event as a line of JSON."""
        line = json.dumps(record, default=str, allow_nan=False).encode() + b"\n"
        return self._guard(lambda: _append_line(self.folder / f"events-{self.rank}.jsonl", line))

    def rotate(self) -> None:
        """Close the present tail, open the next, and seal the closed one on a background thread."""
        if self._file < 0:
            return
        os.close(self._file)
        self._file, self._steps = -1, 0
        closed = self._tail(self._segment)
        before = self._sealer
        self._sealer = threading.Thread(target=_seal_after, args=(before, closed), name="poise-seal", daemon=True)
        self._sealer.start()

    def close(self, seal_rest: bool = False) -> None:
        """Write what is left; wait for the sealer."""
        self._refused = -1.0
        self.flush()
        if seal_rest:
            self.rotate()
        elif self._file >= 0:
            os.close(self._file)
            self._file = -1
        if self._sealer is not None:
            self._sealer.join()

    def _append(self) -> None:
        if self._file < 0:
            self._open()
        while self._written < len(self._buffer):
            self._written += os.write(self._file, memoryview(self._buffer)[self._written :])
        self._buffer.clear()
        self._written = 0

    def _open(self) -> None:
        """Open the next tail and repeat all schemas in it, so that each segment can be read alone."""
        self.folder.mkdir(parents=True, exist_ok=True)
        used = [int(p.stem.split(".")[0].split("-")[2]) for p in self.folder.glob(f"rows-{self.rank}-*.*")]
        self._segment = max([*used, -1]) + 1
        self._file = os.open(self._tail(self._segment), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        os.write(self._file, MAGIC + b"".join(schema_frame(g) for g in self.groups.values()))

    def _tail(self, segment: int) -> Path:
        return self.folder / f"rows-{self.rank}-{segment:06d}.tail"

    def _guard(self, work: Any) -> bool:
        """Do some file work; what the file system throws becomes one warning and a later retry."""
        try:
            if self._file >= 0 and self._refused >= 0 and not self.folder.exists():
                os.close(self._file)
                self._file = -1
            work()
        except OSError as error:
            if self._refused < 0:
                warnings.warn(
                    f"Poise cannot write to {self.folder} ({error.strerror}); training goes on, recording resumes when it can",
                    stacklevel=3,
                )
            self._refused = time.monotonic()
            return False
        self._refused = -1.0
        return True

    def _trim(self) -> None:
        """Forget the oldest rows while the disk refuses, so that memory stays flat."""
        if len(self._buffer) > PENDING_BYTES and self._written == 0:
            self.lost_bytes += len(self._buffer)
            self._buffer.clear()
            for group in self.groups.values():
                self._buffer += schema_frame(group)


def _replace(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with open(temporary, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def _append_line(path: Path, line: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(file, line)
    finally:
        os.close(file)


def _seal_after(before: threading.Thread | None, tail: Path) -> None:
    if before is not None:
        before.join()
    seal(tail)
