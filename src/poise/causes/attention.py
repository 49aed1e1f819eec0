"""Attention that grows without bound, and rows of a mask that may attend to nothing."""

from __future__ import annotations

import re

import numpy as np

from poise.causes.base import Case
from poise.causes.clues import LOSS_RISES, Weigh, concerns, facts, finite, first_bad, half_precision, series
from poise.causes.rate import rate
from poise.records import Hypothesis

GROWTH = 1.5
MUCH = 1e4
"""All runs above this logit diverged in arXiv 2309.14322."""
QUERY_KEY = re.compile(r"(^|[._/])(q|k|query|key|qkv|q_proj|k_proj|wq|wk)($|[._/])")
VALUE = re.compile(r"(^|[._/])(v|value|v_proj|wv)($|[._/])")


def attention_logits(case: Case) -> Hypothesis | None:
    """Query and key weights (or the logits themselves) grow and grow while the value weights do not."""
    if not concerns(case, *LOSS_RISES, "attention-logit-growth", "weight-growth", "attention-collapse"):
        return None
    weigh = Weigh(case, "attention-logits")
    grown = sorted(
        ((_growth(case, n), n) for n in case.columns if n.startswith("param_norm/") and QUERY_KEY.search(n)),
        reverse=True,
    )
    values = [_growth(case, n) for n in case.columns if n.startswith("param_norm/") and VALUE.search(n)]
    if grown and grown[0][0] >= GROWTH:
        weigh.fact(
            True,
            0.55,
            "query-key-grow",
            member=grown[0][1].partition("/")[2],
            ratio=grown[0][0],
            count=sum(g >= GROWTH for g, _ in grown),
        )
        weigh.fact(values and min(values) < 0.7 * grown[0][0], 0.2, "value-does-not", ratio=min(values, default=0.0))
    logits = [finite(series(case, n)[1]) for n in case.columns if n.partition("/")[0] == "attention_logit_max"]
    top = max((float(v.max()) for v in logits if len(v)), default=0.0)
    weigh.fact(top >= MUCH, 0.6, "logits-huge", value=top) or weigh.fact(
        top > 100 and max((_ratio(v) for v in logits), default=1.0) > 3, 0.4, "logits-grow", value=top
    )
    return weigh.verdict("P0", "qk-norm", "clip-logits", "decay-query-key", test="qk-norm")


def stray_mask(case: Case) -> Hypothesis | None:
    """NaN from the first rows on, before any step could have done harm: a mask may leave rows with nothing to attend to."""
    if not concerns(case, "non-finite", "gradient-zeros", "not-learning"):
        return None
    weigh = Weigh(case, "stray-mask")
    level = finite(series(case, "loss")[1])[-16:]
    untrained = "untrained" in facts(case, "why") and len(level)
    weigh.fact(untrained, 0.28, "ignores-input", value=float(np.median(level)) if len(level) else 0)
    loss, gradient = first_bad(case, "loss"), first_bad(case, "grad_norm")
    firsts = [b[0] for b in (loss, gradient) if b]
    rows = case.columns["loss"].steps if case.has("loss") else np.empty(0)
    at_once = bool(firsts) and len(rows) > 0 and min(firsts) <= max(rows[0], min(rows[min(1, len(rows) - 1)], 2))
    weigh.fact(at_once and not half_precision(case), 0.3, "non-finite-at-once", step=min(firsts, default=0))
    schedule = rate(case)
    still = (
        schedule is not None
        and firsts
        and float(schedule.values[: np.searchsorted(schedule.steps, min(firsts), side="right")].max(initial=0.0)) == 0.0
    )
    weigh.fact(still, 0.25, "no-step-taken", step=min(firsts, default=0))
    zero = finite(series(case, "grad_norm")[1])
    weigh.fact(
        concerns(case, "gradient-zeros") and len(zero) and float(np.mean(zero == 0)) > 0.3,
        0.4,
        "gradient-exactly-zero",
        share=100 * float(np.mean(zero == 0)) if len(zero) else 0,
    )
    return weigh.verdict("P0", "check-masks", "swap-attention", test="without-padding")


def _growth(case: Case, name: str) -> float:
    """Last over first level of a column."""
    return _ratio(finite(series(case, name)[1]))


def _ratio(values: np.ndarray) -> float:
    if len(values) < 2:
        return 1.0
    edge = max(1, min(4, len(values) // 4))
    first = float(np.median(values[:edge]))
    return float(np.median(values[-edge:])) / first if first > 0 else 1.0
