"""NaN and Inf: what turned non-finite first, and what a trainer's filter hides (A01, A06, A08, A10, A16, A30, A57, B01, B03)."""

from __future__ import annotations

import math
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
    incident,
    jsonl,
    kinds,
    noisy,
    said,
    trainer_state,
    with_cause,
)  # fmt: skip

Diagnose = Callable[[Path], Run]
RATES = [0.0, 1.31e-07, 2.2e-07, 3.1e-07, 3.9e-07, 4.7e-07]


def masked_rows() -> list[dict[str, float]]:
    first = {"epoch": 0.01, "grad_norm": math.nan, "learning_rate": 0.0, "loss": 1.0778, "step": 1}
    later = [
        {"epoch": 0.01 * s, "grad_norm": math.nan, "learning_rate": RATES[s - 1], "loss": 0.0, "step": s}
        for s in range(2, 7)
    ]
    return [first, *later]


def check_a01(run: Run) -> None:
    found = incident(run, "non-finite")
    assert found["onset_step"] == 1 and found["first_signal"] == "grad_norm" and found["severity"] == "critical"
    assert causes(found)[0] == "non-finite-gradient"
    assert "in place of NaN" in evidence(found, "masked-loss")
    assert "learning-rate-too-high" not in all_causes(run)
    assert not kinds(run) & {"suspicious-loss", "plateau", "loss-cliff", "level-shift", "not-learning"}
    assert run["exit"] == 1


def test_a01_a_gradient_that_is_nan_at_rate_zero_is_named_before_the_zeros_that_follow(
    tmp_path: Path, diagnose: Diagnose
) -> None:
    check_a01(diagnose(trainer_state(tmp_path, masked_rows())))


def test_a01_the_same_in_the_console_behind_progress_bars(tmp_path: Path, diagnose: Diagnose) -> None:
    lines = []
    for row in masked_rows():
        shown = {k: row[k] for k in ("loss", "grad_norm", "learning_rate", "epoch")}
        lines.append(f"  {row['step']}%|          | {row['step']}/100 [00:0{row['step']}<01:39,  1.00s/it]\r{shown}\n")

    run = diagnose(console(tmp_path, "".join(lines)))

    found = incident(run, "non-finite")
    assert causes(found)[0] == "non-finite-gradient"
    assert "learning-rate-too-high" not in all_causes(run)


def overflow_log(skips: range) -> str:
    scale, text = 64, ""
    for step in range(1, 383):
        bar = f"{100 * step // 1000:3d}%|███       | {step}/1000 [{step:02d}:00<10:00,  2.00s/it]"
        if step in skips:
            text += (
                f"[2023-06-11 04:12:0{step % 10},123] [INFO] [loss_scaler.py:188:update_scale] [deepspeed] OVERFLOW! "
                f"Rank 0 Skipping step. Attempted loss scale: {scale}, reducing to {max(scale // 2, 1)}\n"
            )
            scale = max(scale // 2, 1)
        text += f"\r{bar}"
        if step % 10 == 0:
            loss = 2.0491 if step == 380 else round(2.0 + 2 / (1 + step / 20), 4)
            text += f"\n{{'loss': {loss}, 'learning_rate': 0.000196, 'epoch': {round(step / 500, 2)}}}\n"
    return text


def test_a06_a_loss_scale_that_halves_on_consecutive_steps_is_a_collapse_from_the_first_skip(
    tmp_path: Path, diagnose: Diagnose
) -> None:
    text = overflow_log(range(378, 383)) + (
        "\nTraceback (most recent call last):\n"
        '  File "run_clm_pt.py", line 622, in <module>\n    main()\n'
        "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.\n"
    )

    run = diagnose(console(tmp_path, text))

    found = incident(run, "loss-scale-collapse")
    assert 377 <= found["onset_step"] <= 379 and found["severity"] == "critical"
    assert causes(found)[0] == "loss-scale-exhausted"
    told = evidence(found, "loss-scale-exhausted") + said(found)
    assert "0 updates accepted" in told or "without one accepted update" in told
    assert run["exit"] == 1


def test_a06_one_isolated_overflow_is_no_collapse(tmp_path: Path, diagnose: Diagnose) -> None:
    run = diagnose(console(tmp_path, overflow_log(range(200, 201))))

    assert "loss-scale-collapse" not in kinds(run)
    assert run["exit"] == 0


def test_a08_a_scale_below_one_is_a_collapse_and_the_weights_are_not_to_blame(
    tmp_path: Path, diagnose: Diagnose
) -> None:
    steps = list(range(1, 61))
    scale = [65536 * 0.5**s for s in steps]
    path = csv_file(tmp_path, {"step": steps, "loss": [1.0] * 60, "grad_norm": ["inf"] * 60, "loss_scale": scale})

    run = diagnose(path)

    found = with_cause(run, "loss-scale-exhausted")
    below = next(s for s, value in zip(steps, scale, strict=True) if value < 1)
    collapse = incident(run, "loss-scale-collapse", "non-finite")
    assert collapse["detected_step"] <= below
    assert found["causes"][0]["name"] in ("loss-scale-exhausted", "numeric-overflow")
    assert not kinds(run) & {"weight-growth", "gradient-explosion"}


def test_a10_an_activation_above_the_largest_half_number_names_its_module(tmp_path: Path, diagnose: Diagnose) -> None:
    peak = [*np.geomspace(900, 60000, 33), 66246.39]
    columns = {
        "step": list(range(1, 35)),
        "loss": [*noisy(falling(33)), math.nan],
        "activation_max/encoder.block.3.wo": peak,
        "activation_max/encoder.block.3.norm": [12.0] * 34,
    }

    run = diagnose(csv_file(tmp_path, columns))

    found = incident(run, "non-finite", "saturation")
    told = evidence(found, "numeric-overflow")
    assert causes(found)[0] == "numeric-overflow"
    assert "encoder.block.3.wo" in told and "66246" in told and "34" in told and "norm" not in told


def test_a16_a_loss_of_exactly_zero_with_no_gradient_means_that_no_label_is_active(
    tmp_path: Path, diagnose: Diagnose
) -> None:
    rows = [
        {"epoch": s / 60, "grad_norm": 0.0, "learning_rate": 2e-5 * (1 - s / 60), "loss": 0.0, "step": s}
        for s in range(1, 61)
    ]

    run = diagnose(trainer_state(tmp_path, rows))

    found = with_cause(run, "label-masking")
    assert causes(found)[0] == "label-masking" and found["severity"] != "info"
    assert "no label is active" in evidence(found, "label-masking")
    assert "overfitting" not in kinds(run)


PARTS = """[session 1][epoch  1][iter    0/10000] loss: 2.0858, lr: 1.00e-03
\t\t\tfg/bg=(41/215), time cost: 1.103
\t\t\trpn_cls: 0.7161, rpn_box: 0.0311, rcnn_cls: 1.1516, rcnn_box 0.1871
[session 1][epoch  1][iter  100/10000] loss: nan, lr: 1.00e-03
\t\t\tfg/bg=(64/192), time cost: 61.41
\t\t\trpn_cls: 0.6902, rpn_box: nan, rcnn_cls: 0.2591, rcnn_box 0.0000
"""


def test_a30_the_part_of_the_loss_that_broke_is_named_and_not_the_total(tmp_path: Path, diagnose: Diagnose) -> None:
    run = diagnose(console(tmp_path, PARTS))

    found = incident(run, "non-finite")
    assert found["onset_step"] == 100 and "rpn_box" in found["first_signal"]
    assert causes(found)[0] == "corrupt-samples"
    assert "rpn_box" in evidence(found, "corrupt-samples") and "loss/rcnn_box is" not in evidence(
        found, "corrupt-samples"
    )
    assert "learning rate" not in found["causes"][0]["advice"][0]


def test_a30_in_a_longer_log_too(tmp_path: Path, diagnose: Diagnose) -> None:
    names = ("loss_rpn_cls", "loss_rpn_loc", "loss_cls", "loss_box_reg")
    parts = {n: noisy(falling(80, 1.0, 0.3), seed=i) for i, n in enumerate(names)}
    parts["loss_rpn_loc"][57:] = np.nan
    rows = [
        {
            "iteration": s,
            **{n: float(v[s]) for n, v in parts.items()},
            "total_loss": float(sum(v[s] for v in parts.values())),
            "lr": 0.01,
        }
        for s in range(80)
    ]

    run = diagnose(jsonl(tmp_path, rows, "metrics.json"))

    found = incident(run, "non-finite")
    assert found["onset_step"] == 57 and "rpn_loc" in found["first_signal"]
    assert causes(found)[0] in ("corrupt-samples", "label-error")


def test_a57_four_points_make_no_spike_and_lengths_that_vary_no_throughput_incident(
    tmp_path: Path, diagnose: Diagnose
) -> None:
    loss = [1.344, 1.727, 2.141, 1.297, *noisy([1.4] * 15, 0.1), math.nan]
    seconds = ([103.0, 7.6, 156.0, 210.0] * 5)[:20]
    rows = [{"step": s + 1, "loss": loss[s], "step_time": seconds[s]} for s in range(20)]

    run = diagnose(jsonl(tmp_path, rows))

    assert kinds(run) == {"non-finite"}
    assert alarms(run)[0]["onset_step"] == 20


def test_b01_zeros_beside_a_nan_gradient_are_masked_losses_and_no_best_loss(tmp_path: Path, diagnose: Diagnose) -> None:
    rows = [
        {"step": s, "loss": float(v), "grad_norm": 0.6, "learning_rate": 2e-5}
        for s, v in enumerate(noisy(falling(40)), 1)
    ]
    for row in rows[25:]:
        row.update(loss=0.0, grad_norm=math.nan)

    run = diagnose(trainer_state(tmp_path, rows))

    found = incident(run, "non-finite")
    assert found["onset_step"] == 26 and found["severity"] == "critical"
    assert "masked-loss" in causes(found)
    assert "logging_nan_inf_filter=False" in str(found["causes"])
    assert not kinds(run) & {"suspicious-loss", "loss-cliff", "level-shift"}


def test_b03_one_rank_that_is_nan_is_named_and_the_others_are_not(tmp_path: Path, diagnose: Diagnose) -> None:
    random = np.random.default_rng(0)
    columns: dict[str, list[float]] = {"step": list(range(20))}
    for rank in range(8):
        columns[f"loss/rank{rank}"] = list(2 + 0.05 * random.standard_normal(20))
    columns["loss/rank5"][12] = math.nan

    run = diagnose(csv_file(tmp_path, columns))

    found = incident(run, "non-finite")
    assert found["onset_step"] == 12 and "rank5" in found["first_signal"].replace("_", "")
    assert "rank4" not in said(found)
