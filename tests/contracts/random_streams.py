"""Streams as ugly as logs get: NaN, Inf, gaps, spikes, steps, repeated steps, zeros, and signals with their own cadence."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st

from poise.records import Column, Event, Floats, Frame, Ints

Fault = Callable[[Floats, np.random.Generator], None]


def _where(values: Floats, rng: np.random.Generator) -> slice:
    """A random stretch of at least one row."""
    start = int(rng.integers(len(values)))
    return slice(start, start + int(rng.integers(1, max(2, len(values) // 4))))


def not_a_number(values: Floats, rng: np.random.Generator) -> None:
    """One NaN."""
    values[rng.integers(len(values))] = np.nan


def nan_stretch(values: Floats, rng: np.random.Generator) -> None:
    """NaN for a while."""
    values[_where(values, rng)] = np.nan


def nan_for_good(values: Floats, rng: np.random.Generator) -> None:
    """NaN from some row to the end."""
    values[rng.integers(len(values)) :] = np.nan


def infinities(values: Floats, rng: np.random.Generator) -> None:
    """A plus and a minus infinity."""
    values[rng.integers(len(values))] = np.inf
    values[rng.integers(len(values))] = -np.inf


def spikes(values: Floats, rng: np.random.Generator) -> None:
    """A few rows far above the rest."""
    values[rng.integers(len(values), size=3)] *= rng.uniform(1.5, 100)


def jump(values: Floats, rng: np.random.Generator) -> None:
    """A new level from some row on."""
    values[rng.integers(len(values)) :] *= rng.uniform(1.1, 10)


def rise(values: Floats, rng: np.random.Generator) -> None:
    """Exponential growth from some row on."""
    start = int(rng.integers(len(values)))
    values[start:] *= np.exp(np.arange(len(values) - start) * rng.uniform(0.001, 0.3))


def swing(values: Floats, rng: np.random.Generator) -> None:
    """A sine on top, for a while."""
    part = _where(values, rng)
    values[part] *= 1 + 0.5 * np.sin(np.arange(len(values[part])) / rng.uniform(0.5, 20))


def zeros(values: Floats, rng: np.random.Generator) -> None:
    """Exact zeros for a while."""
    values[_where(values, rng)] = 0.0


def frozen(values: Floats, rng: np.random.Generator) -> None:
    """The same number again and again."""
    part = _where(values, rng)
    values[part] = values[part.start]


def negative(values: Floats, rng: np.random.Generator) -> None:
    """Values below zero."""
    values[_where(values, rng)] *= -1


def huge(values: Floats, rng: np.random.Generator) -> None:
    """Numbers near the end of the float range."""
    values[rng.integers(len(values))] = 1e308


FAULTS: tuple[Fault, ...] = (
    not_a_number,
    nan_stretch,
    nan_for_good,
    infinities,
    spikes,
    jump,
    rise,
    swing,
    zeros,
    frozen,
    negative,
    huge,
)

LEVELS = {
    "loss": (8.0, 0.05),
    "loss/box": (2.0, 0.1),
    "eval_loss": (8.2, 0.02),
    "grad_norm": (0.7, 0.3),
    "learning_rate": (3e-4, 0.0),
    "loss_scale": (65536.0, 0.0),
    "reward": (1.0, 0.3),
    "entropy": (2.0, 0.1),
    "kl": (0.02, 0.3),
    "tokens_per_second": (1e5, 0.05),
    "memory_allocated": (3e10, 0.02),
    "accuracy": (0.5, 0.05),
    "policy_loss": (0.01, 0.5),
}
"""Signal -> start value and relative noise."""


def steps_of(rows: int, rng: np.random.Generator, every: int) -> Ints:
    """Rising steps with gaps, some of them holding two points."""
    strides = np.where(rng.random(rows) < 0.03, rng.integers(0, 40, rows), 1) * every
    return np.cumsum(strides).astype(np.int64)


def stream(seed: int, rows: int, signals: tuple[str, ...], faults: tuple[tuple[str, Fault], ...]) -> Frame:
    """A run of `rows` rows of these signals, each with its own cadence and its faults."""
    rng = np.random.default_rng(seed)
    columns = {}
    for name in signals:
        every = int(rng.choice([1, 1, 1, 10])) if name != "eval_loss" else 25
        count = max(1, rows // every)
        level, noise = LEVELS[name]
        values = level * (1 + np.arange(count) * every / 50) ** -0.3 * np.exp(noise * rng.standard_normal(count))
        with np.errstate(all="ignore"):
            for faulty, fault in faults:
                if faulty == name:
                    fault(values, rng)
        columns[name] = Column(steps_of(count, rng, every), values)
    last = max(int(c.steps[-1]) for c in columns.values())
    events = (Event("overflow", last // 2, {"loss_scale": 1024.0}), Event("run-end", None, {"complete": False}))
    return Frame(columns, events if rng.random() < 0.3 else ())


@st.composite
def streams(draw: st.DrawFn, most_rows: int = 400) -> Frame:
    """Random streams for property tests."""
    others = draw(st.lists(st.sampled_from([n for n in LEVELS if n != "loss"]), unique=True, max_size=4))
    signals = ("loss", *others) if draw(st.integers(0, 9)) else tuple(others) or ("grad_norm",)
    faults = draw(st.lists(st.tuples(st.sampled_from(signals), st.sampled_from(FAULTS)), max_size=4))
    return stream(draw(st.integers(0, 2**32 - 1)), draw(st.integers(1, most_rows)), signals, tuple(faults))


@st.composite
def cuts(draw: st.DrawFn, most: int = 12) -> tuple[float, ...]:
    """Shares of a run at which it is cut, in order."""
    return tuple(sorted(draw(st.lists(st.floats(0, 1), max_size=most))))


def cut_at(frame: Frame, shares: tuple[float, ...]) -> list[Frame]:
    """The stream in pieces; an event without a step belongs to the last one. Empty pieces are kept: live, they happen."""
    last = max((int(c.steps[-1]) for c in frame.columns.values() if len(c)), default=0)
    edges = [0.0, *(round(share * last) for share in shares), np.inf]
    pieces = []
    for low, high in zip(edges, edges[1:], strict=False):
        columns = {}
        for name, column in frame.columns.items():
            start, stop = np.searchsorted(column.steps, low), np.searchsorted(column.steps, high)
            if stop > start:
                columns[name] = column.slice(int(start), int(stop))
        events = tuple(
            e
            for e in frame.events
            if (e.step is None and high == np.inf) or (e.step is not None and low <= e.step < high)
        )
        pieces.append(Frame(columns, events, frame.branch))
    return pieces
