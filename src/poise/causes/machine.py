"""The machine, the loader and the program rather than the training."""

from __future__ import annotations

import re

import numpy as np

from poise.causes.base import Case
from poise.causes.clues import LOSS_RISES, Weigh, concerns, exception, finite, loss_of, out_of_memory, series, told
from poise.records import Hypothesis

FAULTS = re.compile(
    r"ECC|Xid|uncorrectable|NVLink|hardware|device-side|illegal memory access|NCCL|unhandled cuda error|socket|connection",
    re.IGNORECASE,
)

OUT_OF_RANGE = re.compile(
    r"index out of range in self|indexSelect|srcIndex < srcSelectDimSize|out of bounds.*embedding|embedding.*out of (range|bounds)",
    re.IGNORECASE,
)


def hardware_fault(case: Case) -> Hypothesis | None:
    """The exception names the device or the network, one rank is slow, or nothing at all announced the break."""
    weigh = Weigh(case, "hardware-fault")
    if not concerns(case, *LOSS_RISES, "crash", "straggler", "throughput-drop", "rank-desync"):
        return None
    event = exception(case) if concerns(case, "crash") else None
    text = told(event) if event is not None and FAULTS.search(told(event)) else ""
    weigh.fact(text and out_of_memory(case) is None, 0.6, "exception-names-device", text=text[:120])
    slow = _slow_rank(case)
    weigh.fact(slow is not None, 0.5, "rank-slow", rank=slow[0] if slow else 0, ratio=slow[1] if slow else 0)
    return weigh.verdict("P1", "check-hardware", test="same-again", step=case.incident.onset_step)


def rank_desync(case: Case) -> Hypothesis | None:
    """One rank's values differ from the others', or only one rank is non-finite."""
    weigh = Weigh(case, "rank-desync")
    if not concerns(case, "rank-desync", "non-finite", "divergence"):
        return None
    for name, column in case.columns.items():
        if column.shape == "ranks" and column.values.ndim == 2:
            bad = ~np.isfinite(column.values)
            rows = np.flatnonzero(bad.any(axis=1) & ~bad.all(axis=1))
            if len(rows):
                which = np.flatnonzero(bad[rows[0]])
                weigh.fact(
                    True,
                    0.5,
                    "rank-non-finite",
                    signal=name,
                    ranks=", ".join(map(str, which)),
                    total=bad.shape[1],
                    step=int(column.steps[rows[0]]),
                )
    return weigh.verdict("P0", "check-rank-data", "reduce-finite", test="swap-ranks")


def input_stall(case: Case) -> Hypothesis | None:
    """The speed falls while loss and gradients go on as before: the loader or a neighbour takes the time."""
    if not concerns(case, "throughput-drop", "straggler"):
        return None
    weigh = Weigh(case, "input-stall")
    for signal, slower in (("tokens_per_second", -1), ("samples_per_second", -1), ("step_seconds", 1)):
        before, after = (
            finite(series(case, signal, stop=case.incident.onset_step)[1])[-64:],
            finite(series(case, signal, start=case.incident.onset_step)[1])[:64],
        )
        if len(before) >= 4 and len(after):
            ratio = (float(np.median(after)) / float(np.median(before))) ** slower
            weigh.fact(
                ratio > 1.2 and not weigh.evidence,
                0.35,
                "slower",
                signal=signal,
                ratio=ratio,
                step=case.incident.onset_step,
            )
    return weigh.verdict("P2", "loader-workers", "check-neighbours", test="synthetic-data")


def code_error(case: Case) -> Hypothesis | None:
    """The run ended with an exception that is neither memory nor device."""
    if not concerns(case, "crash") or out_of_memory(case) is not None:
        return None
    weigh = Weigh(case, "code-error")
    event = exception(case)
    if event is not None and event.kind == "exception" and not FAULTS.search(told(event)):
        weigh.fact(
            True, 0.6, "exception", type=str(event.data.get("type", "")), text=str(event.data.get("text", ""))[:160]
        )
    killed = event is not None and event.kind == "signal"
    weigh.fact(killed, 0.4, "killed", name=told(event).strip(": ") if event is not None else "")
    return weigh.verdict("P0", "read-traceback", "resume-from-checkpoint")


def token_id_out_of_range(case: Case) -> Hypothesis | None:
    """The run ended in an index error of an embedding or gather: an id beyond the table."""
    if not concerns(case, "crash"):
        return None
    weigh = Weigh(case, "token-id-out-of-range")
    event = exception(case)
    text = told(event) if event is not None else ""
    weigh.fact(OUT_OF_RANGE.search(text), 0.75, "exception", type="an index error", text=text[:160])
    return weigh.verdict("P0", "resize-embedding", "check-token-ids", test="largest-token-id")


def _slow_rank(case: Case) -> tuple[int, float] | None:
    column = case.columns.get("step_seconds")
    if column is None or column.values.ndim != 2 or column.values.shape[1] < 2:
        return None
    levels = np.nanmedian(column.values[-64:], axis=0)
    worst = int(np.argmax(levels))
    ratio = float(levels[worst] / np.median(levels))
    return (worst, ratio) if ratio > 1.3 else None


def library_fault(case: Case) -> Hypothesis | None:
    """An open rival where versions are known: a release may be at fault, and the report names them so that one can look."""
    if not concerns(case, "divergence", "non-finite") or not case.info.versions or loss_of(case) is None:
        return None
    weigh = Weigh(case, "library-fault")
    weigh.fact(True, 0.08, "versions", versions=", ".join(f"{k} {v}" for k, v in case.info.versions.items()))
    return weigh.verdict("P2", "match-versions", test="other-version")
