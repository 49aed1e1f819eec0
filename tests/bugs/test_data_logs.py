"""Order, repetition and tokens of the data (A28, A33, A35)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from bug_logs import Run, alarms, causes, console, evidence, falling, incident, jsonl, kinds, noisy, said, with_cause

Diagnose = Callable[[Path], Run]


def test_a28_an_index_error_of_the_embedding_is_mapped_to_its_cause(tmp_path: Path, diagnose: Diagnose) -> None:
    text = "".join(f"step {s} loss {2.5 - s / 100:.4f} lr 0.0002\n" for s in range(30)) + (
        "Traceback (most recent call last):\n"
        '  File "train.py", line 81, in <module>\n    logits = model(batch)\n'
        '  File "/usr/lib/python3/dist-packages/torch/nn/functional.py", line 2210, in embedding\n'
        "    return torch.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)\n"
        "IndexError: index out of range in self\n"
    )

    run = diagnose(console(tmp_path, text))

    found = incident(run, "crash")
    assert causes(found)[0] == "token-id-out-of-range" and run["exit"] == 1


def test_a33_stairs_at_epoch_boundaries_are_memory_and_the_third_epoch_overfits(
    tmp_path: Path, diagnose: Diagnose
) -> None:
    loss = noisy(np.repeat([1.50, 1.05, 0.60], 100), 0.02)
    rows: list[dict[str, float]] = []
    for s, value in enumerate(loss, 1):
        rows.append({"step": s, "epoch": s / 100, "loss": float(value), "learning_rate": 2e-5})
        if s % 100 == 0:
            rows.append({"step": s, "epoch": s / 100, "eval_loss": [1.45, 1.47, 1.70][s // 100 - 1]})

    run = diagnose(jsonl(tmp_path, rows, "trainer_log.jsonl"))

    stairs = with_cause(run, "repeated-data")
    assert "epoch" in evidence(stairs, "repeated-data")
    assert kinds(run) == {"overfitting"}
    assert incident(run, "overfitting")["detected_step"] > 200


def test_a35_spikes_at_one_distance_are_one_finding_with_its_period(tmp_path: Path, diagnose: Diagnose) -> None:
    loss = noisy(falling(2000, 1.2, 0.4), 0.02)
    for at in range(250, 2000, 250):
        loss[at : at + 3] *= 1.6
    rows = [{"batch_idx": s, "loss": float(v)} for s, v in enumerate(loss)]

    run = diagnose(jsonl(tmp_path, rows))

    spikes = [i for i in run["incidents"] if i["kind"] in ("loss-spike", "oscillation")]
    assert len(spikes) == 1, [(i["kind"], i["onset_step"]) for i in spikes]
    assert causes(spikes[0])[0] == "data-order"
    assert "every 250 steps" in evidence(spikes[0], "data-order") + said(spikes[0])
    assert "divergence" not in {i["kind"] for i in alarms(run)}
