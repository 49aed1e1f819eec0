"""Builds cases by hand: a synthetic log as columns, and one incident on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from poise.causes.base import Case
from poise.records import Column, Event, Finding, Hypothesis, Incident, Message, RunInfo

SAID = Message("detectors.none")


def column(values: Any, steps: Any = None) -> Column:
    """A column with steps 0, 1, 2, ... unless they are given."""
    array = np.asarray(values, np.float64)
    return Column(np.arange(len(array)) if steps is None else np.asarray(steps, np.int64), array)


def incident(
    kind: str, onset: int, signal: str = "loss", end: int | None = None, number: int = 1, **facts: Any
) -> Incident:
    """An incident with one finding of its kind."""
    finding = Finding(kind, signal, onset, onset, "critical", SAID, facts=facts)
    return Incident(number, kind, "critical", onset, onset, end, "open", signal, (), (finding,))


def case(
    kind: str,
    onset: int,
    columns: Mapping[str, Any],
    *,
    trainer: str | None = None,
    config: Mapping[str, Any] | None = None,
    events: Sequence[Event] = (),
    others: Sequence[Incident] = (),
    versions: Mapping[str, str] | None = None,
    end: int | None = None,
    **facts: Any,
) -> Case:
    """A case on columns given as arrays or Columns; `signal` is the first column."""
    made = {n: v if isinstance(v, Column) else column(v) for n, v in columns.items()}
    info = RunInfo("run.csv", "csv", trainer, config or {}, versions=versions or {})
    return Case(incident(kind, onset, next(iter(made)), end, **facts), info, made, tuple(events), tuple(others))


def names(hypotheses: Sequence[Hypothesis]) -> list[str]:
    """Causes in their order."""
    return [h.cause for h in hypotheses]


def calm_loss(rows: int = 1000, start: float = 4.0, end: float = 2.0, noise: float = 0.02, seed: int = 0) -> np.ndarray:
    """A loss that falls as training losses do, with noise."""
    random = np.random.default_rng(seed)
    falling = end + (start - end) * (1 + np.arange(rows) / (rows / 50)) ** -0.7
    return falling * (1 + noise * random.standard_normal(rows))


def warmup_cosine(rows: int = 1000, peak: float = 3e-4, warmup: int = 30) -> np.ndarray:
    """Linear warmup, then cosine to a tenth."""
    step = np.arange(rows)
    decay = 0.1 + 0.45 * (1 + np.cos(np.pi * np.clip((step - warmup) / (rows - warmup), 0, 1)))
    return peak * np.minimum(np.minimum((step + 1) / max(warmup, 1), 1.0), decay)


def gradient(rows: int = 1000, level: float = 0.5, seed: int = 1) -> np.ndarray:
    """A healthy log-normal gradient norm."""
    return level * np.exp(0.15 * np.random.default_rng(seed).standard_normal(rows))


def with_spike(values: np.ndarray, at: int, ratio: float = 2.0, rows: int = 6) -> np.ndarray:
    """A spike that decays over some rows."""
    out = values.copy()
    out[at : at + rows] *= 1 + (ratio - 1) * np.exp(-np.arange(rows) / (rows / 3))
    return out
