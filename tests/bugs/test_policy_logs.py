"""Reinforcement and preference runs (A59, A61)."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from bug_logs import Run, alarms, causes, evidence, jsonl, with_cause

Diagnose = Callable[[Path], Run]


def test_a59_groups_of_one_leave_no_advantage_and_the_run_is_not_called_healthy(
    tmp_path: Path, diagnose: Diagnose
) -> None:
    reward = np.clip(0.3 + 0.1 * np.random.default_rng(0).standard_normal(200), 0, 1)
    rows = [
        {"step": s, "loss": 0.0, "reward": float(reward[s]), "reward_std": 0.0, "kl": 0.0, "learning_rate": 1e-6}
        for s in range(200)
    ]

    run = diagnose(jsonl(tmp_path, rows))

    found = with_cause(run, "reward-group-degenerate")
    assert causes(found)[0] == "reward-group-degenerate"
    assert alarms(run) != []


@pytest.mark.parametrize("margin", [0.0, math.nan])
def test_a61_a_preference_loss_of_ln_two_without_a_margin_has_no_signal(
    tmp_path: Path, diagnose: Diagnose, margin: float
) -> None:
    rows = [
        {
            "step": s,
            "loss": 0.6931,
            "rewards/margins": margin,
            "rewards/chosen": margin,
            "rewards/rejected": margin,
            "learning_rate": 5e-7,
        }
        for s in range(1, 51)
    ]

    run = diagnose(jsonl(tmp_path, rows))

    found = with_cause(run, "preference-without-signal")
    assert causes(found)[0] == "preference-without-signal" and found["severity"] != "info"
    assert "ln 2" in evidence(found, "preference-without-signal")
