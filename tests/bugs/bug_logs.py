"""Writes logs as real trainers write them, and reads diagnoses."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Run = dict[str, Any]
Incident = dict[str, Any]
Row = Mapping[str, Any]


def trainer_state(folder: Path, rows: Iterable[Row], **state: Any) -> Path:
    """HF's trainer_state.json, with bare NaN as it writes them."""
    history = [dict(row) for row in rows]
    path = folder / "trainer_state.json"
    last = history[-1].get("step", 0) if history else 0
    path.write_text(
        json.dumps(
            {"best_metric": None, "global_step": last, "log_history": history, "max_steps": last, **state}, indent=2
        )
    )
    return path


def jsonl(folder: Path, rows: Iterable[Row], name: str = "metrics.jsonl") -> Path:
    """One JSON object a line."""
    path = folder / name
    path.write_text("".join(json.dumps(dict(row)) + "\n" for row in rows))
    return path


def csv_file(folder: Path, columns: Mapping[str, Sequence[Any]], name: str = "metrics.csv") -> Path:
    """A CSV with a header."""
    path = folder / name
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def console(folder: Path, text: str, name: str = "train.log") -> Path:
    """Console output as it was."""
    path = folder / name
    path.write_bytes(text.encode())
    return path


def noisy(values: Any, noise: float = 0.01, seed: int = 0) -> np.ndarray:
    """Values with relative noise."""
    array = np.asarray(values, np.float64)
    return array * (1 + noise * np.random.default_rng(seed).standard_normal(len(array)))


def falling(rows: int, start: float = 4.0, end: float = 2.0) -> np.ndarray:
    """A loss curve without noise."""
    return end + (start - end) * (1 + np.arange(rows) / (rows / 50)) ** -0.7


def alarms(run: Run) -> list[Incident]:
    """Incidents that are warnings or worse."""
    return [i for i in run["incidents"] if i["severity"] != "info"]


def kinds(run: Run) -> set[str]:
    """Kinds of the alarms."""
    return {i["kind"] for i in alarms(run)}


def incident(run: Run, *names: str) -> Incident:
    """The first incident of one of these kinds, in any severity."""
    found = [i for i in run["incidents"] if i["kind"] in names]
    assert found, f"none of {names}, only {[(i['kind'], i['severity'], i['onset_step']) for i in run['incidents']]}"
    return found[0]


def causes(of: Incident) -> list[str]:
    """Names of the causes, best first."""
    return [c["name"] for c in of["causes"]]


def all_causes(run: Run) -> set[str]:
    """Names of the causes of all incidents."""
    return {name for i in run["incidents"] for name in causes(i)}


def with_cause(run: Run, name: str) -> Incident:
    """The first incident that has this cause."""
    found = [i for i in run["incidents"] if name in causes(i)]
    assert found, f"{name} nowhere, only {[(i['kind'], i['severity'], causes(i)) for i in run['incidents']]}"
    return found[0]


def evidence(of: Incident, name: str) -> str:
    """All evidence of one cause in one string."""
    return " | ".join(e for c in of["causes"] if c["name"] == name for e in c["evidence"])


def said(of: Incident) -> str:
    """All that the timeline says."""
    return " | ".join(m["what"] for m in of["timeline"])
