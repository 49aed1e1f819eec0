"""Memory: too large a batch, holes in the allocator, shapes that change, long sequences, tensors that are kept."""

from __future__ import annotations

import numpy as np

from poise.causes.base import Case
from poise.causes.clues import Weigh, concerns, exception, finite, out_of_memory, series, told
from poise.records import Hypothesis

SYMPTOMS = ("memory-swing", "memory-growth", "crash", "throughput-drop", "straggler")


def batch_size(case: Case) -> Hypothesis | None:
    """Out of memory, or memory that swings with the number of samples per step."""
    if not concerns(case, *SYMPTOMS):
        return None
    weigh = Weigh(case, "batch-size")
    step = out_of_memory(case)
    weigh.fact(step is not None, 0.6, "out-of-memory", step=step or 0)
    weigh.fact(_follows(case, "batch_size"), 0.4, "memory-follows", signal="batch_size")
    return weigh.verdict("P0" if step is not None else "P2", "smaller-batch", test="half-batch")


def sequence_length(case: Case) -> Hypothesis | None:
    """Memory or step time follows the number of tokens per step: sequences are not bounded."""
    if not concerns(case, *SYMPTOMS, "loss-spike"):
        return None
    weigh = Weigh(case, "sequence-length")
    for signal in ("batch_tokens", "completion_length"):
        weigh.fact(_follows(case, signal), 0.55, "memory-follows", signal=signal)
    step = out_of_memory(case)
    tokens = finite(series(case, "batch_tokens")[1])
    long = step is not None and len(tokens) >= 4 and tokens[-1] > 1.5 * np.median(tokens)
    weigh.fact(
        long,
        0.4,
        "last-batch-long",
        value=float(tokens[-1]) if len(tokens) else 0,
        usual=float(np.median(tokens)) if len(tokens) else 0,
    )
    if not weigh.evidence and concerns(case, "memory-swing") and not len(tokens):
        weigh.open("batch_tokens", 0.3)
    return weigh.verdict("P2" if step is None else "P0", "fix-shapes", "smaller-batch", test="fixed-shapes")


def memory_fragmentation(case: Case) -> Hypothesis | None:
    """The allocator holds far more than is in use."""
    if not concerns(case, *SYMPTOMS):
        return None
    weigh = Weigh(case, "memory-fragmentation")
    used, held = finite(series(case, "memory_allocated")[1])[-64:], finite(series(case, "memory_reserved")[1])[-64:]
    if len(used) and len(held):
        share = 1 - float(np.median(used)) / max(float(np.median(held)), 1.0)
        weigh.fact(
            share > 0.3,
            0.5,
            "held-unused",
            share=100 * share,
            used=float(np.median(used)) / 2**30,
            held=float(np.median(held)) / 2**30,
        )
    event = exception(case)
    weigh.fact(
        event is not None and "reserved but unallocated" in told(event) and out_of_memory(case) is not None,
        0.25,
        "allocator-says",
    )
    if not weigh.evidence and concerns(case, "memory-swing"):
        weigh.open("memory_reserved", 0.3)
    return weigh.verdict(
        "P2" if out_of_memory(case) is None else "P1", "expandable-segments", "fix-shapes", test="expandable-segments"
    )


def ragged_shapes(case: Case) -> Hypothesis | None:
    """Memory swings from step to step while the speed stays: inputs of changing shape."""
    if not concerns(case, "memory-swing", "throughput-drop", "straggler"):
        return None
    weigh = Weigh(case, "ragged-shapes")
    memory = finite(series(case, "memory_allocated" if case.has("memory_allocated") else "memory_reserved")[1])[-128:]
    speed = next(
        (
            finite(series(case, n)[1])[-128:]
            for n in ("tokens_per_second", "samples_per_second", "step_seconds")
            if case.has(n)
        ),
        np.empty(0),
    )
    swing, pace = _spread(memory), _spread(speed)
    weigh.fact(
        len(memory) >= 16 and swing > 0.1 and concerns(case, "memory-swing"), 0.4, "memory-swings", share=100 * swing
    )
    weigh.fact(weigh.evidence and len(speed) >= 16 and pace < 0.1, 0.15, "speed-steady", share=100 * pace)
    tokens = finite(series(case, "batch_tokens")[1])
    weigh.fact(
        weigh.evidence and len(tokens) >= 16 and _spread(tokens) > 0.2, 0.15, "tokens-vary", share=100 * _spread(tokens)
    )
    return weigh.verdict("P2", "fix-shapes", "expandable-segments", test="fixed-shapes")


def memory_leak(case: Case) -> Hypothesis | None:
    """Memory rises all the time: something is kept from step to step."""
    if not concerns(case, "memory-growth", "crash"):
        return None
    weigh = Weigh(case, "memory-leak")
    for signal in ("memory_allocated", "host_memory", "memory_reserved"):
        values = finite(series(case, signal)[1])
        if len(values) >= 16:
            up = float(np.mean(np.diff(values) >= 0))
            weigh.fact(
                up > 0.8 and values[-1] > 1.2 * values[0],
                0.6,
                "memory-climbs",
                signal=signal,
                first=float(values[0]) / 2**30,
                last=float(values[-1]) / 2**30,
            )
    return weigh.verdict("P1", "memory-snapshot", test="short-run-snapshot")


def _spread(values: np.ndarray) -> float:
    """Interquartile range over the median."""
    if len(values) < 8:
        return 0.0
    low, middle, high = np.percentile(values, [25, 50, 75])
    return float((high - low) / middle) if middle > 0 else 0.0


def _follows(case: Case, signal: str) -> bool:
    """Whether memory rises and falls with another signal (rank correlation above 0.6)."""
    name = next((n for n in ("memory_allocated", "memory_reserved") if case.has(n)), None)
    if name is None or not case.has(signal):
        return False
    steps, memory = series(case, name)
    own, values = series(case, signal)
    _, left, right = np.intersect1d(steps, own, return_indices=True)
    a, b = memory[left], values[right]
    keep = np.isfinite(a) & np.isfinite(b)
    if keep.sum() < 16 or np.ptp(b[keep]) == 0 or np.ptp(a[keep]) == 0:
        return False
    first, second = (np.argsort(np.argsort(x)).astype(np.float64) for x in (a[keep], b[keep]))
    return float(np.corrcoef(first, second)[0, 1]) > 0.6
