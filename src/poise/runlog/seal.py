"""Turn a closed tail into Arrow files, one per column group and branch, series by series.

A sealed file has one record batch whose rows are series: `name`, `shape`, `width`, and `values` (list of float32, steps in order, vectors
one after another). The steps are the `steps` list of the first row; the other rows leave it empty, since all share it.
So one series is one stretch of the file: reading it touches nothing else.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from poise.records import Floats, Ints
from poise.runlog.frames import MAGIC, ROW, Group, payloads, read_schema


def seal(tail: Path) -> bool:
    """Seal one tail and remove it; without pyarrow, or on any trouble, the tail stays and is read as it is."""
    try:
        import pyarrow as pa
    except ImportError:
        return False
    try:
        parts = read_tail(tail.read_bytes())
        written = []
        for (group, branch), (steps, values) in parts.items():
            path = tail.with_name(f"{tail.stem}.{group.name}.{group.number}.{branch}.arrow")
            _write(pa, path.with_suffix(".part"), group, branch, steps, values)
            written.append(path)
        for path in written:
            os.replace(path.with_suffix(".part"), path)
        tail.unlink()
    except OSError:
        return False
    return True


def read_tail(data: bytes) -> dict[tuple[Group, int], tuple[Ints, Floats]]:
    """All whole rows of a tail: (group, branch) -> steps (n,) and values (n, size) float32."""
    groups: dict[int, Group] = {}
    offsets: dict[tuple[int, int], list[int]] = {}
    view = memoryview(data)
    if bytes(view[: len(MAGIC)]) != MAGIC:
        return {}
    for end, payload in payloads(view):
        if payload[0] == ord("S"):
            group = read_schema(payload)
            groups[group.number] = group
        elif payload[0] == ord("R"):
            _, number, branch, _ = ROW.unpack_from(payload)
            offsets.setdefault((number, branch), []).append(end - len(payload))
    return {
        (groups[n], b): _gather(view, np.array(at), groups[n].size) for (n, b), at in offsets.items() if n in groups
    }


def _gather(view: memoryview, at: Ints, size: int) -> tuple[Ints, Floats]:
    """Copy equally long rows out of the bytes at once."""
    data = np.frombuffer(view, np.uint8)
    body = np.lib.stride_tricks.sliding_window_view(data, 8 + 4 * size)[at + ROW.size - 8]
    steps = np.ascontiguousarray(body[:, :8]).view("<i8")[:, 0]
    return steps.astype(np.int64), np.ascontiguousarray(body[:, 8:]).view("<f4")


def _write(pa: Any, path: Path, group: Group, branch: int, steps: Ints, values: Floats) -> None:
    n, series = len(steps), []
    start = 0
    for width in group.widths:
        series.append(np.ascontiguousarray(values[:, start : start + width]).ravel())
        start += width
    ends = np.cumsum([0, *(len(s) for s in series)])
    batch = pa.record_batch(
        {
            "name": pa.array(group.columns),
            "shape": pa.array(group.shapes),
            "width": pa.array(group.widths, pa.int32()),
            "steps": pa.ListArray.from_arrays(pa.array([0, *[n] * len(series)], pa.int32()), pa.array(steps)),
            "values": pa.ListArray.from_arrays(
                pa.array(ends, pa.int32()), pa.array(np.concatenate(series) if series else np.empty(0, np.float32))
            ),
        }
    )
    batch = batch.replace_schema_metadata({"poise": "1", "group": group.name, "branch": str(branch), "rows": str(n)})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    with open(path, "rb") as file:
        os.fsync(file.fileno())
