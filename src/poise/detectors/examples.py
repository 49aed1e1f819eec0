"""Streams for the examples in detector files: small, deterministic, drawn by `poise explain`."""

from __future__ import annotations

import numpy as np

from poise.records import Column, Floats, Frame, Ints


def steps(rows: int, every: int = 1) -> Ints:
    """Step numbers 0, every, 2 every, ..."""
    return np.arange(rows, dtype=np.int64) * every


def falling_loss(rows: int, seed: int, start: float = 10.0, end: float = 3.0, noise: float = 0.01) -> Floats:
    """A healthy training loss: a power-law fall with relative noise."""
    t = np.arange(rows) / max(1, rows - 1)
    clean = end + (start - end) * (1 + 30 * t) ** -1.0
    return clean * np.exp(noise * np.random.default_rng(seed).standard_normal(rows))


def calm_norm(rows: int, seed: int, level: float = 0.5, noise: float = 0.2) -> Floats:
    """A healthy gradient norm: log-normal around a gently falling level."""
    rng = np.random.default_rng(seed)
    return level * (1 + 5 * np.arange(rows) / rows) ** -0.3 * np.exp(noise * rng.standard_normal(rows))


def frame(step: Ints, **signals: Floats) -> Frame:
    """A frame from arrays; `grad_norm__layer` names the member `grad_norm/layer`."""
    return Frame({name.replace("__", "/"): Column(step[: len(values)], values) for name, values in signals.items()})
