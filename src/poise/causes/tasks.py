"""Sub-tasks and experts that get too much or too little."""

from __future__ import annotations

import numpy as np

from poise.causes.base import Case
from poise.causes.clues import LOSS_RISES, Weigh, concerns, finite, series
from poise.records import Hypothesis


def task_imbalance(case: Case) -> Hypothesis | None:
    """One part of the loss stands still or rises while the others fall, or one part is nearly the whole loss."""
    if not concerns(case, *LOSS_RISES, "task-starvation", "plateau", "not-learning"):
        return None
    weigh = Weigh(case, "task-imbalance")
    trends = {
        n: t for n in case.columns if n.startswith("loss/") if (t := _trend(finite(series(case, n)[1]))) is not None
    }
    if len(trends) >= 2:
        worst, best = max(trends, key=lambda n: trends[n][0]), min(trends, key=lambda n: trends[n][0])
        weigh.fact(
            trends[worst][0] > 0.97 and trends[best][0] < 0.8,
            0.5,
            "part-left-behind",
            part=worst,
            ratio=trends[worst][0],
            best=best,
            fell=100 * (1 - trends[best][0]),
        )
        total = sum(abs(level) for _, level in trends.values())
        heavy = max(trends, key=lambda n: abs(trends[n][1]))
        share = abs(trends[heavy][1]) / total if total else 0.0
        weigh.fact(share > 0.9, 0.25, "part-dominates", part=heavy, share=100 * share)
    return weigh.verdict("P1", "task-weights", "sample-tasks", test="one-task")


def router(case: Case) -> Hypothesis | None:
    """A router that sends nearly all tokens to one expert, or a balancing loss below what is possible."""
    weigh = Weigh(case, "router")
    if not concerns(case, *LOSS_RISES, "router-imbalance", "suspicious-loss", "plateau"):
        return None
    load, steps = finite(series(case, "expert_load_max")[1]), series(case, "expert_load_max")[0]
    if len(load) >= 4:
        weigh.fact(
            load[-1] > 0.5 and load[-1] > 1.5 * load[0],
            0.55,
            "load-concentrates",
            first=float(load[0]),
            last=float(load[-1]),
            step=int(steps[-1]),
        )
    aux_steps, aux = series(case, "aux_loss")
    start = finite(aux)[:8]
    below = np.flatnonzero(aux < 0.99)
    possible = len(start) and 0.99 <= float(np.median(start)) < 4  # normalised so that perfect balance is 1
    weigh.fact(
        possible and len(below) >= 2,
        0.4,
        "aux-below-one",
        step=int(aux_steps[below[0]]) if len(below) else 0,
        value=float(np.nanmin(aux)) if len(aux) else 0,
    )
    return weigh.verdict("P1", "router-normaliser", "router-balance", test="router-load")


def _trend(values: np.ndarray) -> tuple[float, float] | None:
    """Last over first level, and the last level."""
    if len(values) < 12:
        return None
    edge = max(3, len(values) // 8)
    first, last = float(np.median(values[:edge])), float(np.median(values[-edge:]))
    return (last / first, last) if first > 0 else None
