"""A live run's way into its run log."""

from __future__ import annotations

import platform
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from poise.live.found import Found
from poise.records import Frame, Record
from poise.runlog.writer import RunWriter
from poise.stats.state import dump

CADENCE = {
    "loss": "loss",
    "grad_norm": "norms",
    "step_seconds": "time",
    "tokens_per_second": "time",
    "host_memory": "memory",
}
"""Which column group a signal is written in: those that are measured together, so that a group's columns hardly ever change."""


@dataclass(slots=True)
class Journal:
    """Writes frames, events, findings and incidents of one run.

    Columns that are measured together are one group; a step writes one row per group and hands all of them over at once.
    """

    folder: Path
    writer: RunWriter = field(init=False)

    def __post_init__(self) -> None:
        self.writer = RunWriter(self.folder)

    def begin(self, model: torch.nn.Module, found: Found) -> None:
        """Write the header."""
        members = {m.id: {"role": m.role, "depth": m.depth, "parameters": list(m.parameters)} for m in found.members}
        optimizers = [
            {"name": type(o).__name__, "groups": [_plain(g) for g in o.param_groups]} for o in found.optimizers
        ]
        self.writer.header(
            {
                "started": time.time(), "model": type(model).__name__, "parameters": sum(p.numel() for p in found.parameters), "members": members,
                "optimizers": optimizers, "schedulers": [type(s).__name__ for s in found.schedulers], "command": sys.argv,
                "versions": {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__},
                "seed": torch.initial_seed(),
            }
        )  # fmt: skip

    def write(self, frame: Frame) -> None:
        """Append a one-step frame and its events."""
        parts: dict[str, list[str]] = {}
        for name in frame.columns:
            parts.setdefault(CADENCE.get(name.partition("/")[0], "step"), []).append(name)
        self.writer.branch = frame.branch
        for part, names in parts.items():
            group = self.writer.group(part, tuple(names))
            step = int(frame.columns[names[0]].steps[0])
            self.writer.row(group, step, np.array([frame.columns[n].values[0] for n in names], np.float32))
        self.writer.flush()
        for event in frame.events:
            self.record(event)

    def record(self, record: Record) -> None:
        """Append a record as one line of JSON."""
        self.writer.event({"record": type(record).__name__.lower(), **dump(record)})

    def close(self) -> None:
        """Write what is left."""
        self.writer.close()


def _plain(group: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in group.items() if k != "params" and isinstance(v, int | float | str | bool | tuple | None)}
