"""Learning rate, schedule and resume (A22, A26, A41, A43, A56)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from bug_logs import (
    Run,
    alarms,
    all_causes,
    causes,
    csv_file,
    evidence,
    falling,
    incident,
    jsonl,
    kinds,
    noisy,
    trainer_state,
    with_cause,
)

Diagnose = Callable[[Path], Run]
RISES = ("divergence", "loss-spike", "gradient-explosion", "oscillation")


def explosion(rate: float, warmup: int, onset: int | None, top: float, rows: int = 200) -> list[dict[str, float]]:
    """A small language model over 32 words (ln V = 3.47) that leaves its path at `onset`, or does not."""
    loss, norm = noisy(falling(rows, 3.47, 2.2), 0.02), noisy(np.full(rows, 0.8), 0.2, 1)
    if onset is not None:
        after = np.arange(rows - onset)
        loss[onset:] = noisy(
            loss[onset] + (top - loss[onset]) * np.exp(-after / 30) * np.minimum(1, (after + 1) / 4) + 5, 0.1, 2
        )
        norm[onset:] = noisy(40 * np.exp(-after / 40) + 3, 0.3, 3)
    rates = rate * np.minimum(1, (np.arange(rows) + 1) / warmup)
    return [
        {"step": s, "loss": float(loss[s]), "grad_norm": float(norm[s]), "lr": float(rates[s])} for s in range(rows)
    ]


def test_a22_a_rate_far_too_high_behind_a_warmup_of_one_step(tmp_path: Path, diagnose: Diagnose) -> None:
    run = diagnose(jsonl(tmp_path, explosion(0.3, 1, 12, 200.8)))

    found = incident(run, *RISES)
    assert 10 <= found["onset_step"] <= 15 and found["severity"] == "critical"
    assert causes(found)[0] == "learning-rate-too-high"


def test_a22_the_same_rate_behind_sixty_steps_of_warmup_is_not_blamed_on_the_warmup(
    tmp_path: Path, diagnose: Diagnose
) -> None:
    run = diagnose(jsonl(tmp_path, explosion(0.3, 60, 66, 40.4)))

    found = incident(run, *RISES)
    assert 64 <= found["onset_step"] <= 70
    assert causes(found)[0] == "learning-rate-too-high"
    assert "warmup-too-short" not in all_causes(run)
    assert "behind the end of warmup" in evidence(found, "learning-rate-too-high")


def test_a22_a_sound_rate_is_silent(tmp_path: Path, diagnose: Diagnose) -> None:
    run = diagnose(jsonl(tmp_path, explosion(3e-3, 60, None, 0)))

    assert alarms(run) == [] and run["exit"] == 0


def test_a26_a_schedule_that_runs_four_times_too_fast_is_named_with_its_factor(
    tmp_path: Path, diagnose: Diagnose
) -> None:
    rate = 1e-3 * np.clip(1 - 4 * np.arange(100) / 100, 0, None)
    loss = np.concatenate([falling(25, 4, 3), np.full(75, falling(25, 4, 3)[-1])])
    rows = [{"step": s + 1, "loss": float(v), "learning_rate": float(rate[s])} for s, v in enumerate(noisy(loss))]

    run = diagnose(trainer_state(tmp_path, rows, max_steps=100))

    found = with_cause(run, "schedule-misapplied")
    assert found["severity"] != "info"
    assert "whole number, 4" in evidence(found, "schedule-misapplied")
    zero = with_cause(run, "learning-rate-zero")
    assert "from step 2" in evidence(zero, "learning-rate-zero")


def resumed(jump: float, rate_after: Callable[[int], float]) -> list[dict[str, float]]:
    """A run that stops at 620, goes back to its checkpoint at 600, and runs on to 1000."""
    base = noisy(falling(1001), 0.005)
    cosine = [3e-4 * (0.5 + 0.5 * float(np.cos(np.pi * s / 1000))) for s in range(1001)]
    first = [{"step": s, "loss": float(base[s]), "lr": cosine[s]} for s in range(1, 621)]
    heal = 1 + (jump - 1) * np.exp(-np.arange(400) / 60)
    second = [{"step": s, "loss": float(base[s] * heal[s - 601]), "lr": rate_after(s)} for s in range(601, 1001)]
    return [*first, *second]


def cosine(step: int) -> float:
    return 3e-4 * (0.5 + 0.5 * float(np.cos(np.pi * step / 1000)))


def test_a41_a_jump_at_a_resume_under_the_same_rate_points_to_a_lost_optimizer_state(
    tmp_path: Path, diagnose: Diagnose
) -> None:
    run = diagnose(jsonl(tmp_path, resumed(2.8, cosine)))

    found = with_cause(run, "optimizer-state-lost")
    assert 601 <= found["onset_step"] <= 604 and found["severity"] != "info"
    assert causes(found)[0] == "optimizer-state-lost"
    assert "schedule-misapplied" not in all_causes(run)


def test_a41_a_schedule_that_starts_again_as_well_adds_the_mismatch(tmp_path: Path, diagnose: Diagnose) -> None:
    run = diagnose(jsonl(tmp_path, resumed(8.0, lambda step: 3e-4 * (1 - (step - 600) / 2000))))

    assert "optimizer-state-lost" in all_causes(run)
    found = with_cause(run, "schedule-misapplied")
    assert "jumps up" in evidence(found, "schedule-misapplied")


def test_a41_a_kept_state_is_silent(tmp_path: Path, diagnose: Diagnose) -> None:
    run = diagnose(jsonl(tmp_path, resumed(1.0, cosine)))

    assert alarms(run) == [] and run["exit"] == 0


def test_a43_validation_that_falls_apart_on_new_data_is_seen_from_its_best_point_on(
    tmp_path: Path, diagnose: Diagnose
) -> None:
    steps = np.arange(25_000, 62_001, 1000)
    perplexity = np.where(
        steps <= 46_000,
        np.interp(steps, [25_000, 46_000], [420, 251]),
        np.interp(steps, [46_000, 50_000, 62_000], [251, 258, 782]),
    )
    loss = noisy(np.interp(steps, [25_000, 62_000], [5.6, 5.2]), 0.005)
    path = csv_file(
        tmp_path, {"step": steps.tolist(), "train_loss": loss.tolist(), "val_ppl": noisy(perplexity).tolist()}
    )

    run = diagnose(path)

    found = incident(run, "overfitting", "divergence")
    assert 45_000 <= found["onset_step"] <= 53_000 and found["severity"] != "info"


@pytest.mark.parametrize("growth", [1.05])
def test_a56_a_slow_exponential_rise_is_a_divergence_from_its_start_on(
    tmp_path: Path, diagnose: Diagnose, growth: float
) -> None:
    loss = np.minimum(1.9 * growth ** np.clip(np.arange(80) - 20, 0, None), 12)
    rows = [{"step": s, "loss": float(v), "lr": 1e-4} for s, v in enumerate(noisy(loss, 0.01))]

    run = diagnose(jsonl(tmp_path, rows))

    found = incident(run, "divergence")
    assert 18 <= found["onset_step"] <= 24 and found["severity"] == "critical"


def test_a56_the_control_at_rate_zero_does_not_diverge(tmp_path: Path, diagnose: Diagnose) -> None:
    rows = [{"step": s, "loss": float(v), "lr": 0.0} for s, v in enumerate(noisy(np.full(80, 1.9)))]

    run = diagnose(jsonl(tmp_path, rows))

    assert not kinds(run) & set(RISES)
    assert "learning-rate-zero" in all_causes(run)
