"""For each cause a log that shows it, as columns, and for some a look-alike that must not be taken for it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from cause_cases import calm_loss, case, column, gradient, incident, warmup_cosine, with_spike

from poise.causes.base import Case
from poise.records import Column, Event

ROWS = 1000


def _ranks(steps: int, values: np.ndarray) -> Column:
    return Column(np.arange(steps), values, shape="ranks")


def _diverging(onset: int, rows: int = ROWS, to: float = 9.0) -> np.ndarray:
    loss = calm_loss(rows)
    loss[onset:] = loss[onset] + (to - loss[onset]) * (1 - np.exp(-np.arange(rows - onset) / 20))
    return loss


def learning_rate_too_high() -> Case:
    rate = warmup_cosine(peak=2e-2)
    norm = gradient()
    norm[40:60] *= 300
    return case("divergence", 40, {"loss": _diverging(40), "grad_norm": norm, "learning_rate": rate})


def warmup_too_short() -> Case:
    rate = warmup_cosine(peak=3e-4, warmup=5)
    return case("loss-spike", 7, {"loss": with_spike(calm_loss(), 7), "learning_rate": rate})


def learning_rate_zero() -> Case:
    return case(
        "not-learning",
        0,
        {"loss": calm_loss(start=1.5, end=1.5), "learning_rate": np.zeros(ROWS), "grad_norm": gradient()},
    )


def decay_too_fast() -> Case:
    rate = 3e-4 * np.exp(-np.arange(ROWS) / 60)
    return case("plateau", 300, {"loss": calm_loss(), "learning_rate": rate})


def schedule_misapplied() -> Case:
    rate = 3e-4 * np.clip(1 - np.arange(ROWS) / 250, 0, None)
    return case("plateau", 250, {"loss": calm_loss(), "learning_rate": rate})


def schedule_restarted() -> Case:
    rate = np.where(np.arange(ROWS) < 600, 3e-4 * (1 - np.arange(ROWS) / 650), 3e-4)
    return case("loss-spike", 601, {"loss": with_spike(calm_loss(), 601), "learning_rate": rate})


def bad_data_burst() -> Case:
    columns = {
        "loss": with_spike(calm_loss(), 900),
        "grad_norm": with_spike(gradient(), 900, 8),
        "learning_rate": warmup_cosine(),
    }
    return case("loss-spike", 900, columns, end=905)


def batch_composition() -> Case:
    tokens = np.full(ROWS, 4096.0)
    tokens[700:] = 1024
    loss = calm_loss()
    loss[700:] *= 1 + 0.2 * np.sin(np.arange(300))
    return case("oscillation", 700, {"loss": loss, "batch_tokens": tokens, "learning_rate": warmup_cosine()})


def data_order() -> Case:
    loss = calm_loss()
    for at in range(125, ROWS, 125):
        loss = with_spike(loss, at, 1.6)
    others = [incident("loss-spike", at, number=at) for at in range(250, ROWS, 125)]
    return case("loss-spike", 125, {"loss": loss, "epoch": np.arange(ROWS) / 125}, others=others)


def corrupt_samples() -> Case:
    parts = {f"loss/{n}": calm_loss(seed=s) for s, n in enumerate(("rpn_cls", "rpn_box", "rcnn_cls"))}
    parts["loss/rpn_box"][500:] = np.nan
    return case("non-finite", 500, {"loss": np.sum(list(parts.values()), axis=0), **parts})


def label_error() -> Case:
    return case("bad-start", 0, {"loss": calm_loss(start=40, end=12)}, config={"vocab_size": 32000})


def label_masking() -> Case:
    return case(
        "suspicious-loss", 0, {"loss": np.zeros(50), "grad_norm": np.zeros(50), "learning_rate": warmup_cosine(50)}
    )


def label_masking_by_nan() -> Case:
    loss, norm = calm_loss(50), gradient(50)
    loss[[7, 21, 33]], norm[[7, 21, 33]] = np.nan, 0.0
    return case("non-finite", 7, {"loss": loss, "grad_norm": norm})


def repeated_data() -> Case:
    random = np.random.default_rng(0)
    loss = np.repeat([1.5, 1.05, 0.6], 100) + 0.01 * random.standard_normal(300)
    return case("level-shift", 100, {"loss": loss, "epoch": np.arange(300) / 100})


def template_data() -> Case:
    text = "dear customer thank you for your order " * 8
    events = [Event("text", s, {"text": text}) for s in (800, 900)]
    easy = np.linspace(2, 0.02, ROWS)
    return case(
        "oscillation", 700, {"loss": calm_loss(), "loss/template": easy, "loss/story": calm_loss(seed=3)}, events=events
    )


def decoding() -> Case:
    events = [Event("text", 900, {"text": "and so on and on " * 20})]
    return case("mode-collapse", 880, {"loss": calm_loss()}, events=events)


def overfitting_data() -> Case:
    steps = np.arange(0, ROWS, 50)
    held = column(2 + np.abs(steps - 300) / 400, steps)
    return case(
        "overfitting", 300, {"loss": np.linspace(3, 0.03, ROWS), "eval_loss": held, "epoch": np.arange(ROWS) / 100}
    )


def data_leak() -> Case:
    loss = np.array([7.6, 6.0, 4.9, 4.0, 1.2, 0.4, 0.2, 0.15])
    return case("suspicious-loss", 4, {"loss": loss, "eval_loss": loss * 0.5})


def numeric_overflow() -> Case:
    peak = np.geomspace(10, 66246, ROWS)
    loss, norm = calm_loss(), gradient()
    loss[-1], norm[-1] = np.nan, np.inf
    return case(
        "non-finite",
        ROWS - 1,
        {"loss": loss, "grad_norm": norm, "activation_max/encoder.wo": peak},
        config={"fp16": True},
    )


def non_finite_gradient() -> Case:
    loss = np.array([1.0778, 0, 0, 0, 0, 0])
    rate = np.array([0, 1.3e-7, 2e-7, 3e-7, 4e-7, 4.7e-7])
    return case("non-finite", 0, {"loss": loss, "grad_norm": np.full(6, np.nan), "learning_rate": rate})


def loss_scale_exhausted() -> Case:
    scale = np.concatenate([np.full(378, 64.0), [32, 16, 8, 4, 2, 1, 0.5]])
    events = [Event("overflow", s, {"loss_scale": float(scale[s])}) for s in range(378, 385)]
    return case("loss-scale-collapse", 378, {"loss": calm_loss(385), "loss_scale": scale}, events=events)


def low_precision_stall() -> Case:
    return case(
        "not-learning",
        0,
        {
            "loss": calm_loss(start=4, end=4),
            "grad_norm": gradient(),
            "update_norm": np.zeros(ROWS),
            "learning_rate": np.full(ROWS, 6e-4),
        },
    )


def epsilon() -> Case:
    loss, norm = calm_loss(), gradient(level=1e-3)
    loss[600:], norm[601:] = np.nan, np.nan
    config = {"adam_epsilon": 1e-8, "dtype": "float16", "learning_rate": 1e-4}
    return case("non-finite", 600, {"loss": loss, "grad_norm": norm}, config=config)


def clip_order() -> Case:
    flat = 4.4626 - 0.0004 * np.arange(50) / 50
    return case("not-learning", 0, {"loss": flat, "grad_norm": gradient(50, 3.2e5), "loss_scale": np.full(50, 65536.0)})


def clip_too_low() -> Case:
    return case(
        "not-learning",
        0,
        {"loss": calm_loss(start=4, end=3.9), "grad_norm": gradient(level=50), "clip_share": np.ones(ROWS)},
        config={"max_grad_norm": 0.1},
    )


def accumulation_scaling() -> Case:
    loss = calm_loss()
    held = column(loss[::100] / 8, np.arange(0, ROWS, 100))
    return case("bad-start", 0, {"loss": loss, "eval_loss": held}, config={"gradient_accumulation_steps": 8})


def gradients_not_cleared() -> Case:
    norm = 0.5 * (1 + np.arange(200)) + 0.1 * np.random.default_rng(0).standard_normal(200)
    return case("gradient-explosion", 150, {"loss": calm_loss(200), "grad_norm": norm})


def optimizer_state_lost() -> Case:
    loss = with_spike(calm_loss(), 600, 1.3, rows=90)
    return case("resume-jump", 600, {"loss": loss, "learning_rate": warmup_cosine()}, events=[Event("restart", 600)])


def stale_second_moment() -> Case:
    loss, update, norm = 1.96 * np.ones(ROWS), 0.1 * np.ones(ROWS), 0.3 * np.ones(ROWS)
    update[500:520], loss[503:560], norm[504:520] = 0.2, 2.02, 2.0
    loss[560:] = 1.975
    noise = 1 + 0.002 * np.random.default_rng(0).standard_normal(ROWS)
    return case(
        "update-norm-spike", 500, {"loss": loss * noise, "update_norm": update * noise, "grad_norm": norm * noise}
    )


def initialization() -> Case:
    columns = {f"grad_norm/layers.{i}": gradient(level=1e-7 * 10.0**i, seed=i) for i in range(8)}
    return case("gradient-vanishing", 0, {"loss": calm_loss(), "grad_norm": gradient(level=1e-5), **columns})


def uniform_output() -> Case:
    return case("not-learning", 0, {"loss": np.full(120, 3.04452)})


def attention_logits() -> Case:
    steps = np.arange(20_000, 54_001, 1000)
    grow = {"q": (18.79, 57.35), "k": (18.67, 51.08), "v": (17.15, 20.25)}
    columns = {f"param_norm/layers.8.{n}": column(np.linspace(a, b, len(steps)), steps) for n, (a, b) in grow.items()}
    return case("weight-growth", 35_000, {"loss": column(np.full(len(steps), 2.1), steps), **columns})


def stray_mask() -> Case:
    return case("non-finite", 0, {"loss": np.full(20, np.nan)})


def task_imbalance() -> Case:
    return case(
        "task-starvation",
        500,
        {"loss": calm_loss(), "loss/a": calm_loss(seed=1), "loss/b": calm_loss(start=3, end=3, seed=2)},
    )


def router() -> Case:
    aux, load = np.linspace(1.02, 0.4, 500), np.linspace(0.15, 0.9, 500)
    return case("router-imbalance", 250, {"loss": calm_loss(500), "aux_loss": aux, "expert_load_max": load})


def small_batch_noise() -> Case:
    return case("oscillation", 100, {"loss": calm_loss(start=2, end=1.8, noise=0.3)}, config={"batch_size": 2})


def batch_size() -> Case:
    events = [
        Event(
            "exception",
            None,
            {"type": "OutOfMemoryError", "text": "CUDA out of memory. Tried to allocate 2 GiB", "oom": True},
        )
    ]
    return case("crash", 37, {"loss": calm_loss(38)}, events=events)


def memory_fragmentation() -> Case:
    random = np.random.default_rng(0)
    used = 20e9 * (1 + 0.02 * random.standard_normal(ROWS))
    return case(
        "memory-swing", 400, {"loss": calm_loss(), "memory_allocated": used, "memory_reserved": np.full(ROWS, 40e9)}
    )


def ragged_shapes() -> Case:
    random = np.random.default_rng(0)
    columns = {
        "loss": calm_loss(),
        "memory_allocated": 20e9 * (1 + 0.4 * random.random(ROWS)),
        "tokens_per_second": 1e4 * (1 + 0.01 * random.random(ROWS)),
    }
    return case("memory-swing", 400, columns)


def sequence_length() -> Case:
    tokens = 2000 + 2000 * np.random.default_rng(0).random(ROWS)
    return case(
        "memory-swing", 400, {"loss": calm_loss(), "memory_allocated": 5e9 + 4e6 * tokens, "batch_tokens": tokens}
    )


def memory_leak() -> Case:
    return case("memory-growth", 400, {"loss": calm_loss(), "host_memory": np.linspace(4e9, 30e9, ROWS)})


def hardware_fault() -> Case:
    text = "CUDA error: uncorrectable ECC error encountered"
    return case(
        "crash", 99, {"loss": calm_loss(100)}, events=[Event("exception", 99, {"type": "RuntimeError", "text": text})]
    )


def rank_desync() -> Case:
    values = np.random.default_rng(0).random((20, 8)) + 2
    values[12, 3] = np.nan
    return case("non-finite", 12, {"loss": _ranks(20, values)})


def input_stall() -> Case:
    speed = np.full(ROWS, 1e4)
    speed[600:] = 4e3
    return case("throughput-drop", 600, {"loss": calm_loss(), "tokens_per_second": speed})


def code_error() -> Case:
    return case(
        "crash", 99, {"loss": calm_loss(100)}, events=[Event("exception", 99, {"type": "KeyError", "text": "'labels'"})]
    )


def token_id_out_of_range() -> Case:
    events = [Event("exception", 0, {"type": "IndexError", "text": "index out of range in self"})]
    return case("crash", 0, {"loss": calm_loss(5)}, events=events)


def reward_group_degenerate() -> Case:
    return case(
        "policy-collapse",
        160,
        {"reward": np.linspace(0.4, 0.0, 200), "reward_std": np.zeros(200), "loss": np.zeros(200)},
    )


def preference_without_signal() -> Case:
    return case("not-learning", 0, {"loss": np.full(50, 0.6931), "reward_margin": np.zeros(50)})


def entropy_lost() -> Case:
    return case("policy-collapse", 160, {"reward": np.linspace(0.8, 0.1, 200), "entropy": np.geomspace(2, 0.01, 200)})


def reference_drift() -> Case:
    return case("policy-collapse", 160, {"reward": np.linspace(0.8, 0.1, 200), "kl": np.geomspace(0.01, 20, 200)})


TOP: dict[str, Callable[[], Case]] = {
    "learning-rate-too-high": learning_rate_too_high, "warmup-too-short": warmup_too_short, "learning-rate-zero": learning_rate_zero,
    "decay-too-fast": decay_too_fast, "schedule-misapplied": schedule_misapplied, "bad-data-burst": bad_data_burst,
    "batch-composition": batch_composition, "data-order": data_order, "corrupt-samples": corrupt_samples, "label-masking": label_masking,
    "repeated-data": repeated_data, "template-data": template_data, "overfitting-data": overfitting_data,
    "data-leak": data_leak, "numeric-overflow": numeric_overflow, "non-finite-gradient": non_finite_gradient,
    "loss-scale-exhausted": loss_scale_exhausted, "low-precision-stall": low_precision_stall, "clip-order": clip_order,
    "clip-too-low": clip_too_low, "accumulation-scaling": accumulation_scaling, "gradients-not-cleared": gradients_not_cleared,
    "optimizer-state-lost": optimizer_state_lost, "stale-second-moment": stale_second_moment, "initialization": initialization,
    "uniform-output": uniform_output, "attention-logits": attention_logits, "task-imbalance": task_imbalance, "router": router,
    "small-batch-noise": small_batch_noise, "batch-size": batch_size, "memory-fragmentation": memory_fragmentation,
    "ragged-shapes": ragged_shapes, "sequence-length": sequence_length, "memory-leak": memory_leak, "hardware-fault": hardware_fault,
    "rank-desync": rank_desync, "input-stall": input_stall, "code-error": code_error,
    "token-id-out-of-range": token_id_out_of_range, "reward-group-degenerate": reward_group_degenerate,
    "preference-without-signal": preference_without_signal, "entropy-lost": entropy_lost, "reference-drift": reference_drift,
}  # fmt: skip
"""Cause -> a case in which it must be named first."""

AMONG: dict[str, Callable[[], Case]] = {
    "label-error": label_error, "stray-mask": stray_mask, "epsilon": epsilon, "masked-loss": non_finite_gradient,
    "label-masking": label_masking_by_nan, "schedule-misapplied": schedule_restarted, "residual-missing": initialization,
    "normalization": initialization, "decoding": decoding, "label-error ": corrupt_samples, "initialization": uniform_output,
}  # fmt: skip
"""Cause -> a case in which it must be among the first three: its rivals have as much to say."""
