"""The vocabulary: every signal Poise knows by name, and every symptom it can name.

A name once shipped is not changed. Members follow after a slash: `loss/box`, `grad_norm/layers.3.mlp`, `eval_loss/wikitext`.
Which names in other people's logs mean which signal is decided in `readers/naming.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Signal:
    """One measured quantity.

    Args:
        family: the signal family whose surprise it counts for in the stability index.
        bad: the direction that is bad; `none` for quantities that are never judged alone.
        log: whether it is positive and spans decades, so that it is judged on the log axis.
    """

    name: str
    unit: str
    meaning: str
    family: Literal[
        "gradient", "update", "attention", "activation", "curvature", "numerics", "output", "data", "machine", "none"
    ]
    bad: Literal["up", "down", "both", "none"] = "none"
    log: bool = False


SIGNALS: tuple[Signal, ...] = (
    Signal("loss", "nats", "training loss as logged; members are sub-tasks or parts", "output", "up"),
    Signal("eval_loss", "nats", "validation loss; members are data sets", "output", "up"),
    Signal("learning_rate", "1", "learning rate; members are parameter groups", "none"),
    Signal(
        "grad_norm",
        "1",
        "global L2 norm of the unscaled gradient before clipping; members are layers or groups",
        "gradient",
        "both",
        log=True,
    ),
    Signal("grad_norm_clipped", "1", "gradient norm after clipping", "gradient", "both", log=True),
    Signal(
        "param_norm",
        "1",
        "L2 norm of the weights; members are layers (for example layers.8.q)",
        "update",
        "up",
        log=True,
    ),
    Signal("update_norm", "1", "L2 norm of what the optimizer applied", "update", "up", log=True),
    Signal("update_ratio", "1", "update norm / weight norm", "update", "up", log=True),
    Signal("loss_scale", "1", "fp16 loss scale", "numerics", "down", log=True),
    Signal("skipped_steps", "steps", "steps skipped for overflow since the last row", "numerics", "up"),
    Signal(
        "nonfinite_count",
        "count",
        "non-finite losses or gradients since the last row, as the trainer counts them",
        "numerics",
        "up",
    ),
    Signal("clip_share", "share", "share of steps whose gradient was clipped", "gradient"),
    Signal("accuracy", "share", "training accuracy", "output", "down"),
    Signal("eval_accuracy", "share", "validation accuracy or another score where more is better", "output", "down"),
    Signal("perplexity", "1", "exp of the training loss", "none", log=True),
    Signal("eval_perplexity", "1", "exp of the validation loss", "none", log=True),
    Signal("aux_loss", "1", "router balancing loss of a mixture of experts", "output"),
    Signal("expert_load_max", "share", "largest share of tokens that one expert gets", "output", "up"),
    Signal("attention_logit_max", "1", "largest attention logit", "attention", "up", log=True),
    Signal("attention_entropy", "share", "entropy of attention / log(valid keys)", "attention", "down"),
    Signal("activation_max", "1", "largest absolute activation; members are modules", "activation", "up", log=True),
    Signal("reward", "1", "reward, return or score of an RL run; more is better", "output", "down"),
    Signal("reward_std", "1", "spread of reward within groups or batches", "output", "down"),
    Signal("reward_margin", "1", "chosen minus rejected reward (preference training)", "output"),
    Signal("entropy", "nats", "policy entropy", "output", "down"),
    Signal("kl", "nats", "divergence of the policy from its reference", "output", "up", log=True),
    Signal("policy_loss", "1", "surrogate loss of an RL run; carries no level", "none"),
    Signal("value_loss", "1", "critic loss of an RL run", "none"),
    Signal("completion_length", "tokens", "mean length of sampled completions", "none"),
    Signal("generator_loss", "1", "adversarial training: generator", "output"),
    Signal("discriminator_loss", "1", "adversarial training: discriminator", "output"),
    Signal("tokens_per_second", "tokens/s", "throughput", "machine", "down", log=True),
    Signal("samples_per_second", "samples/s", "throughput", "machine", "down", log=True),
    Signal("step_seconds", "s", "time per step; members are ranks", "machine", "up", log=True),
    Signal("memory_allocated", "bytes", "accelerator memory in use", "machine", "up", log=True),
    Signal("memory_reserved", "bytes", "accelerator memory held by the allocator", "machine", "up", log=True),
    Signal("host_memory", "bytes", "memory of the process on the host", "machine", "up", log=True),
    Signal("batch_size", "samples", "global batch size", "none"),
    Signal("batch_tokens", "tokens", "tokens per step", "none"),
    Signal("tokens", "tokens", "tokens seen so far", "none"),
    Signal("epoch", "epochs", "position in the data, may be fractional", "none"),
    Signal("time", "s", "wall-clock time since the start of the log", "none"),
    Signal(
        "other", "?", "a number whose meaning is not known: plotted, never judged; members are the log's names", "none"
    ),
)

KINDS: tuple[str, ...] = (
    "non-finite", "loss-spike", "divergence", "oscillation", "plateau", "not-learning", "bad-start", "gradient-explosion",
    "gradient-vanishing", "overfitting", "mode-collapse", "policy-collapse", "suspicious-loss", "loss-scale-collapse",
    "attention-collapse", "attention-logit-growth", "head-redundancy", "update-reversal", "lost-updates", "dead-units",
    "saturation", "rank-collapse", "level-shift", "training-collapse", "loss-cliff", "sharpness", "unstable",
    "gradient-one-sided", "gradient-zeros", "memory-swing", "task-starvation", "router-imbalance", "resume-jump",
    "rank-desync", "straggler", "throughput-drop", "memory-growth", "crash", "update-norm-spike", "weight-growth",
    "configuration", "step-order",
)  # fmt: skip
"""Symptoms, as design of the JSON contract. Append only."""

_BY_NAME = {s.name: s for s in SIGNALS}


def signal_of(column: str) -> Signal:
    """Return the signal that a column name belongs to; unknown names belong to `other`."""
    return _BY_NAME.get(column.partition("/")[0], _BY_NAME["other"])
