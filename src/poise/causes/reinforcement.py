"""Runs whose loss carries no level: reinforcement learning and preference training."""

from __future__ import annotations

import math

import numpy as np

from poise.causes.base import Case
from poise.causes.clues import Weigh, concerns, finite, series
from poise.records import Hypothesis

RUINED = ("policy-collapse", "not-learning", "plateau", "mode-collapse")


def reward_group_degenerate(case: Case) -> Hypothesis | None:
    """All rewards of a group are equal, so that every advantage and the loss are zero: nothing is learnt."""
    if not concerns(case, *RUINED):
        return None
    weigh = Weigh(case, "reward-group-degenerate")
    steps, spread = series(case, "reward_std")
    flat = spread == 0
    weigh.fact(
        len(spread) >= 3 and float(np.mean(flat[-16:])) > 0.8,
        0.75,
        "reward-std-zero",
        count=int(flat.sum()),
        rows=len(flat),
        step=int(steps[np.argmax(flat)]) if len(steps) else 0,
    )
    loss_steps, loss = series(case, "policy_loss" if case.has("policy_loss") else "loss")
    dead = loss == 0.0
    rl = case.has("reward") or case.has("policy_loss")
    at_end = len(dead) >= 3 and bool(dead[-3:].all())
    weigh.fact(
        rl and at_end,
        0.45,
        "policy-loss-zero",
        count=int(dead.sum()),
        step=int(loss_steps[np.argmax(dead)]) if len(dead) else 0,
    )
    return weigh.verdict("P0", "check-groups", "vary-rewards", test="reward-spread")


def preference_without_signal(case: Case) -> Hypothesis | None:
    """The loss of a preference run is ln 2 and the margin 0 or NaN: chosen and rejected look alike to the model."""
    margin = series(case, "reward_margin")[1]
    if not concerns(case, *RUINED, "non-finite") or not len(margin):
        return None
    weigh = Weigh(case, "preference-without-signal")
    loss = finite(series(case, "loss")[1])
    known = finite(margin)
    level = float(np.median(loss)) if len(loss) else float("nan")
    weigh.fact(len(loss) and abs(level - math.log(2)) < 2e-3, 0.55, "loss-is-ln-two", value=level)
    weigh.fact(
        len(known) < len(margin) or float(np.max(np.abs(known), initial=0.0)) < 1e-6,
        0.35,
        "margin-empty",
        finite=len(known),
        rows=len(margin),
    )
    return weigh.verdict("P0", "check-pairs", "check-reference", test="count-identical-pairs")


def entropy_lost(case: Case) -> Hypothesis | None:
    """The policy's entropy falls to nearly nothing before or with the reward: it stopped exploring."""
    if not concerns(case, "policy-collapse", "mode-collapse"):
        return None
    weigh = Weigh(case, "entropy-lost")
    steps, values = series(case, "entropy")
    values = np.abs(values)  # some trainers log its negative as a loss
    if len(finite(values)) >= 6:
        first, last = float(np.nanmedian(values[:3])), float(np.nanmedian(values[-3:]))
        low = int(steps[np.argmax(values < 0.3 * first)])
        weigh.fact(last < 0.3 * first, 0.55, "entropy-falls", first=first, last=last, step=low)
    return weigh.verdict("P0", "entropy-bonus", "lower-learning-rate-unknown", "kl-penalty", test="entropy-bonus")


def reference_drift(case: Case) -> Hypothesis | None:
    """The policy runs away from its reference: the divergence grows first, the reward follows."""
    if not concerns(case, "policy-collapse", "divergence"):
        return None
    weigh = Weigh(case, "reference-drift")
    steps, kl = series(case, "kl")
    usable = finite(kl)
    if len(usable) >= 8:
        usual, top = float(np.median(np.abs(usable[: len(usable) // 2]))), float(usable.max())
        far = np.flatnonzero(kl > 5 * max(usual, 1e-3))
        weigh.fact(
            top > 5 * max(usual, 1e-3) and top > 0.05,
            0.5,
            "kl-grows",
            usual=usual,
            value=top,
            step=int(steps[far[0]]) if len(far) else 0,
        )
    return weigh.verdict("P0", "kl-penalty", "lower-learning-rate-unknown", test="kl-penalty")
