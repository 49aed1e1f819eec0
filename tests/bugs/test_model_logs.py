"""Updates, attention, gradients and outputs (A11, A13, A37, A40, A51, A63, A67)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from bug_logs import (
    Run,
    alarms,
    all_causes,
    causes,
    console,
    csv_file,
    evidence,
    falling,
    jsonl,
    kinds,
    noisy,
    said,
    with_cause,
)

Diagnose = Callable[[Path], Run]


def test_a11_clipping_before_unscaling_is_no_explosion_and_no_low_rate(tmp_path: Path, diagnose: Diagnose) -> None:
    loss = np.linspace(4.4626, 4.4622, 50)
    norm = noisy(np.full(50, 3.2e5), 0.05)
    rows = [
        {"step": s, "loss": float(loss[s]), "grad_norm": float(norm[s]), "loss_scale": 65536.0, "lr": 0.01}
        for s in range(50)
    ]

    run = diagnose(jsonl(tmp_path, rows))

    found = with_cause(run, "clip-order")
    assert causes(found)[0] == "clip-order" and found["severity"] != "info"
    assert "65536" in evidence(found, "clip-order")
    assert "gradient-explosion" not in kinds(run)
    assert not {"learning-rate-zero", "learning-rate-too-high"} & {
        i["causes"][0]["name"] for i in alarms(run) if i["causes"]
    }


def test_a13_a_training_loss_that_is_a_multiple_of_the_validation_loss_points_to_the_accumulation(
    tmp_path: Path, diagnose: Diagnose
) -> None:
    loss = noisy(falling(300, 3.5, 2.0))
    rows: list[dict[str, float]] = []
    for s in range(300):
        rows.append(
            {"step": s, "loss": 8 * float(loss[s]), "grad_norm": 3.6, "lr": 2e-5, "gradient_accumulation_steps": 8}
        )
        if s % 50 == 49:
            rows.append({"step": s, "eval_loss": float(loss[s])})

    run = diagnose(jsonl(tmp_path, rows))

    assert not kinds(run) & {"loss-spike", "divergence", "gradient-explosion"}
    assert "corrupt-samples" not in all_causes(run) and "bad-data-burst" not in all_causes(run)


def update_log() -> dict[str, list[float]]:
    steps = np.arange(700)
    update, loss, norm = np.full(700, 0.10), np.full(700, 1.96), np.full(700, 0.30)
    update[500:512] = 0.20
    loss[503:560] = np.interp(np.arange(503, 560), [503, 506, 559], [2.02, 2.02, 1.975])
    loss[560:] = 1.975
    norm[504:516] = 2.0
    return {
        "step": steps.tolist(),
        "loss": noisy(loss, 0.002).tolist(),
        "grad_norm": noisy(norm, 0.05, 1).tolist(),
        "update_norm": noisy(update, 0.03, 2).tolist(),
    }


def test_a37_the_update_moves_first_and_a_rise_of_three_percent_that_stays_is_not_called_recovered(
    tmp_path: Path, diagnose: Diagnose
) -> None:
    run = diagnose(csv_file(tmp_path, update_log()))

    found = with_cause(run, "stale-second-moment")
    assert found["first_signal"].startswith("update_norm") and 499 <= found["onset_step"] <= 501
    assert causes(found)[0] == "stale-second-moment"
    assert not found["recovered"] and found["severity"] != "info"
    signals = [m["signal"] for m in found["timeline"]]
    assert signals.index("update_norm") < signals.index("loss") < signals.index("grad_norm")


def test_a40_query_and_key_weights_that_grow_are_seen_long_before_the_run_diverges(
    tmp_path: Path, diagnose: Diagnose
) -> None:
    steps = np.arange(20_000, 54_001, 500)
    part = (steps - 20_000) / 34_000
    columns: dict[str, list[float]] = {"step": steps.tolist(), "loss": noisy(np.full(len(steps), 2.1), 0.01).tolist()}
    for layer, grown in ((7, 1.1), (8, 1.0)):
        for name, first, last in (("q", 18.79, 57.35), ("k", 18.67, 51.08), ("v", 17.15, 20.25)):
            end = last if layer == 8 else first * grown
            columns[f"param_norm/layers.{layer}.{name}"] = noisy(first + (end - first) * part, 0.002, layer).tolist()

    run = diagnose(csv_file(tmp_path, columns))

    found = with_cause(run, "attention-logits")
    told = evidence(found, "attention-logits")
    assert causes(found)[0] == "attention-logits" and found["severity"] != "info"
    assert found["detected_step"] < 50_000
    assert "layers.8" in told
    flagged = " ".join(m["signal"] for i in alarms(run) for m in i["timeline"])
    assert "layers.7" not in flagged and ".v" not in flagged


def test_a51_a_norm_that_grows_in_a_straight_line_means_gradients_that_are_never_cleared(
    tmp_path: Path, diagnose: Diagnose
) -> None:
    rows = [
        {"step": s, "loss": float(v), "grad_norm": 0.4 * (s + 1), "lr": 1e-4} for s, v in enumerate(noisy(falling(300)))
    ]

    run = diagnose(jsonl(tmp_path, rows))

    found = with_cause(run, "gradients-not-cleared")
    assert causes(found)[0] == "gradients-not-cleared"


def test_a63_a_balancing_loss_below_one_is_no_better_balance(tmp_path: Path, diagnose: Diagnose) -> None:
    columns = {
        "step": list(range(500)),
        "loss": noisy(falling(500)).tolist(),
        "aux_loss": noisy(np.linspace(1.02, 0.4, 500), 0.005, 1).tolist(),
        "expert_load_max": noisy(np.linspace(0.15, 0.9, 500), 0.01, 2).tolist(),
    }

    run = diagnose(csv_file(tmp_path, columns))

    found = with_cause(run, "router")
    assert found["kind"] == "router-imbalance" and found["severity"] != "info"
    assert "below its least possible value of 1" in evidence(found, "router")


def test_a67_a_constant_loss_of_ln_21_is_a_uniform_output(tmp_path: Path, diagnose: Diagnose) -> None:
    text = "".join(
        f"I0305 12:{s // 60 % 60:02d}:{s % 60:02d}.123456  4711 solver.cpp:237] Iteration {s * 20}, loss = 3.04452\n"
        for s in range(600)
    )

    run = diagnose(console(tmp_path, text))

    found = with_cause(run, "uniform-output")
    assert causes(found)[0] == "uniform-output" and found["severity"] != "info"
    assert "21 classes" in evidence(found, "uniform-output")
    assert "learning-rate-zero" not in causes(found)
    assert "converged" not in said(found)
