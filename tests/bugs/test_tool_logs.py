"""What tools write: other units of the gradient norm, steps out of order (B18, B19, B33)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from bug_logs import Run, alarms, falling, jsonl, kinds, noisy, trainer_state

Diagnose = Callable[[Path], Run]


def test_b18_a_norm_of_1656_beside_a_healthy_loss_is_not_unstable(tmp_path: Path, diagnose: Diagnose) -> None:
    norm = noisy(np.full(300, 1656.0), 0.15, 1)
    rows = [
        {"step": s + 1, "loss": float(v), "grad_norm": float(norm[s]), "learning_rate": 1e-5}
        for s, v in enumerate(noisy(falling(300)))
    ]

    run = diagnose(trainer_state(tmp_path, rows))

    assert alarms(run) == [] and run["grade"] in ("A", "B")


def test_b18_a_norm_of_a_fortieth_beside_a_healthy_loss_is_not_vanishing(tmp_path: Path, diagnose: Diagnose) -> None:
    norm = noisy(np.full(300, 0.025), 0.15, 1)
    rows = [
        {"step": s + 1, "loss": float(v), "grad_norm": float(norm[s]), "learning_rate": 1e-5}
        for s, v in enumerate(noisy(falling(300)))
    ]

    assert alarms(diagnose(trainer_state(tmp_path, rows))) == []


def test_b19_a_norm_that_changes_its_level_under_an_unchanged_loss_is_not_vanishing(
    tmp_path: Path, diagnose: Diagnose
) -> None:
    loss = noisy(np.full(400, 1.95), 0.08)
    norm = noisy(np.where(np.arange(400) < 200, 12.0, 0.2), 0.15, 1)
    rows = [
        {"step": s + 1, "loss": float(loss[s]), "grad_norm": float(norm[s]), "learning_rate": 1e-5} for s in range(400)
    ]

    run = diagnose(trainer_state(tmp_path, rows))

    assert "gradient-vanishing" not in kinds(run)
    assert not kinds(run) & {"divergence", "loss-spike", "training-collapse"}


def test_b33_rows_out_of_order_and_duplicates_are_all_kept(tmp_path: Path, diagnose: Diagnose) -> None:
    rows = [{"step": s, "loss": 3.0 - 0.1 * i} for i, s in enumerate((1, 2, 4, 3, 3, 5))]

    run = diagnose(jsonl(tmp_path, rows))

    assert run["points"] == 6 and run["steps"] == [1, 5]
    assert alarms(run) == []
