"""Samples that are broken, wrongly labelled, or whose labels are all masked."""

from __future__ import annotations

import math

import numpy as np

from poise.causes.base import Case
from poise.causes.clues import Weigh, concerns, facts, finite, first_bad, isolated, series, setting
from poise.records import Hypothesis

RUN_OF_LEARNING = ("reward", "policy_loss", "reward_margin", "generator_loss")
"""Where one of these is logged the loss carries no level: an exact zero is no sign of masked labels."""

MASKED = (
    "non-finite", "suspicious-loss", "not-learning", "plateau", "loss-cliff", "level-shift", "gradient-zeros", "gradient-vanishing",
    "overfitting", "loss-spike", "oscillation", "divergence",
)  # fmt: skip


def corrupt_samples(case: Case) -> Hypothesis | None:
    """One part of the loss turns non-finite while the others are fine, or single non-finite losses come and go."""
    if not concerns(case, "non-finite"):
        return None
    weigh = Weigh(case, "corrupt-samples")
    part = first_bad_part(case)
    if part is not None:
        name, step, value, fine = part
        weigh.fact(True, 0.75, "part-non-finite", part=name, step=step, value=value, others=", ".join(fine))
    else:
        _isolated(weigh)
    step = part[1] if part else case.incident.onset_step
    previous = _row_before(case, step)
    return weigh.verdict(
        "P0",
        ("inspect-batches", {"first": previous, "last": step}),
        "guard-labels",
        "skip-non-finite",
        test="skip-batches",
        first=previous,
        last=step,
    )


def label_error(case: Case) -> Hypothesis | None:
    """Wrong labels: the first loss lies above what guessing costs, or the part of the loss that reads annotations breaks."""
    weigh = Weigh(case, "label-error")
    part = first_bad_part(case) if concerns(case, "non-finite") else None
    if part is not None:
        weigh.fact(True, 0.55, "part-non-finite", part=part[0], step=part[1], value=part[2], others=", ".join(part[3]))
    if concerns(case, "bad-start"):
        first = _first_loss(case)
        classes = setting(case, "vocab_size", "padded_vocab_size", "num_classes", "num_labels", "nc")
        chance = math.log(classes) if isinstance(classes, int) and classes > 1 else None
        if first is not None and chance is not None:
            weigh.fact(first > 1.2 * chance, 0.5, "above-chance", value=first, chance=chance, classes=classes)
        elif first is not None:
            weigh.fact(first > 1.2 * math.log(262_144), 0.4, "above-any-chance", value=first, chance=math.log(262_144))
    _ignores_input(weigh)
    if concerns(case, "not-learning") and not weigh.evidence:
        weigh.open("label statistics", 0.12)
    return weigh.verdict("P0", "check-label-decoding", "check-labels", test="overfit-one-batch")


def label_masking(case: Case) -> Hypothesis | None:
    """A loss of exactly 0 with a gradient of 0, or a NaN loss with a gradient that is 0 or finite: no label was active."""
    if any(case.has(name) for name in RUN_OF_LEARNING) or not concerns(case, *MASKED):
        return None
    weigh = Weigh(case, "label-masking")
    steps, values = series(case, "loss")
    zeros = values == 0.0
    gradient = _aligned(case, "grad_norm", steps)
    if zeros.sum() >= 2 or (len(values) and zeros.mean() > 0.5):
        blank = zeros & (gradient == 0.0)
        quiet = zeros & (np.isfinite(gradient) | np.isnan(gradient) & (not case.has("grad_norm")))
        at = int(steps[np.argmax(zeros)])
        weigh.fact(blank.any(), 0.9, "zero-loss-zero-gradient", count=int(blank.sum()), step=at) or weigh.fact(
            quiet.sum() == zeros.sum(), 0.7, "zero-loss", count=int(zeros.sum()), step=at
        )
    lost = np.isnan(values) & np.isfinite(gradient)
    if concerns(case, "non-finite") and lost.any():
        at = int(np.argmax(lost))
        weight = 0.8 if gradient[at] == 0.0 else 0.45
        weigh.fact(True, weight, "nan-loss-finite-gradient", step=int(steps[at]), value=float(gradient[at]))
    return weigh.verdict(
        "P0", "check-labels", "check-template-markers", "mean-over-active-labels", test="count-active-labels"
    )


def first_bad_part(case: Case) -> tuple[str, int, float, list[str]] | None:
    """Name, step and value of the part of the loss that is non-finite first while at least one other part is finite there."""
    parts = {n: first_bad(case, n) for n in case.columns if n.startswith("loss/")}
    bad = {n: b for n, b in parts.items() if b is not None}
    if not bad or len(bad) == len(parts):
        return None
    name = min(bad, key=lambda n: bad[n][0])
    fine = [n for n in parts if n not in bad]
    return name, bad[name][0], bad[name][1], fine


def _ignores_input(weigh: Weigh) -> None:
    """A loss that stands at what word frequencies alone give: labels that have nothing to do with their inputs do that."""
    loss = finite(series(weigh.case, "loss")[1])
    if "untrained" in facts(weigh.case, "why") and len(loss):
        weigh.fact(True, 0.3, "ignores-input", value=float(np.median(loss[-16:])))


def _isolated(weigh: Weigh) -> None:
    found = isolated(weigh.case)
    if found is not None:
        weigh.fact(True, 0.5, "isolated-non-finite", count=found[0], step=found[1], after=found[2])


def _aligned(case: Case, signal: str, steps: np.ndarray) -> np.ndarray:
    """A signal's values at some steps, NaN where it was not measured."""
    own, values = series(case, signal)
    out = np.full(len(steps), np.nan)
    if len(own):
        at = np.clip(np.searchsorted(own, steps), 0, len(own) - 1)
        out = np.where(own[at] == steps, values[at], np.nan)
    return out


def _row_before(case: Case, step: int) -> int:
    """The step of the row before, where losses are sampled: the bad batch lies after it."""
    steps = case.columns["loss"].steps if case.has("loss") else np.empty(0, np.int64)
    row = int(np.searchsorted(steps, step))
    return int(steps[row - 1]) + 1 if row > 0 else step


def _first_loss(case: Case) -> float | None:
    values = finite(series(case, "loss")[1])
    return float(values[0]) if len(values) else None
