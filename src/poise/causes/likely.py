"""Which causes to think of for a symptom, and what to do about each where this log has nothing to say about it."""

from __future__ import annotations

from poise.advice import advise
from poise.causes.base import Case
from poise.records import Hypothesis, Message, Priority

LIKELY: dict[str, tuple[str, ...]] = {
    "non-finite": ("numeric-overflow", "learning-rate-too-high", "corrupt-samples", "non-finite-gradient", "label-masking", "stray-mask", "masked-loss"),
    "loss-spike": ("learning-rate-too-high", "warmup-too-short", "bad-data-burst", "batch-composition", "stale-second-moment", "data-order"),
    "divergence": ("learning-rate-too-high", "warmup-too-short", "numeric-overflow", "attention-logits", "schedule-misapplied"),
    "oscillation": ("learning-rate-too-high", "data-order", "small-batch-noise", "batch-composition", "decay-too-fast", "template-data"),
    "plateau": ("learning-rate-too-high", "decay-too-fast", "label-error", "learning-rate-zero", "schedule-misapplied", "uniform-output", "clip-too-low"),
    "not-learning": ("label-error", "learning-rate-too-high", "initialization", "learning-rate-zero", "uniform-output", "clip-order",
                     "label-masking", "low-precision-stall", "no-optimizer-step"),
    "bad-start": ("initialization", "label-error", "accumulation-scaling"),
    "gradient-explosion": ("learning-rate-too-high", "numeric-overflow", "gradients-not-cleared", "clip-order", "initialization"),
    "gradient-vanishing": ("initialization", "residual-missing", "normalization", "low-precision-stall"),
    "overfitting": ("overfitting-data", "repeated-data"),
    "mode-collapse": ("template-data", "decoding", "entropy-lost"),
    "policy-collapse": ("entropy-lost", "reference-drift", "reward-group-degenerate", "learning-rate-too-high"),
    "suspicious-loss": ("data-leak", "repeated-data", "label-masking", "router"),
    "loss-scale-collapse": ("loss-scale-exhausted", "numeric-overflow"),
    "attention-collapse": ("attention-logits",),
    "attention-logit-growth": ("attention-logits",),
    "weight-growth": ("attention-logits",),
    "update-norm-spike": ("stale-second-moment", "learning-rate-too-high"),
    "level-shift": ("batch-composition", "repeated-data", "accumulation-scaling"),
    "loss-cliff": ("bad-data-burst", "learning-rate-too-high", "repeated-data"),
    "training-collapse": ("learning-rate-too-high", "stale-second-moment", "attention-logits"),
    "lost-updates": ("low-precision-stall", "learning-rate-zero"),
    "dead-units": ("uniform-output", "learning-rate-too-high", "initialization"),
    "gradient-zeros": ("label-masking", "stray-mask", "low-precision-stall"),
    "memory-swing": ("memory-fragmentation", "ragged-shapes", "batch-size", "sequence-length"),
    "memory-growth": ("memory-leak",),
    "task-starvation": ("task-imbalance",),
    "router-imbalance": ("router",),
    "resume-jump": ("optimizer-state-lost", "schedule-misapplied", "data-replayed"),
    "rank-desync": ("rank-desync", "hardware-fault"),
    "straggler": ("hardware-fault", "input-stall", "ragged-shapes"),
    "throughput-drop": ("input-stall", "hardware-fault", "ragged-shapes"),
    "step-order": ("step-order",),
    "configuration": ("optimizer-state-low-precision", "decay-on-norms"),
    "crash": ("code-error", "batch-size", "memory-fragmentation", "hardware-fault", "token-id-out-of-range", "memory-leak"),
    "unstable": ("learning-rate-too-high", "bad-data-burst"),
}  # fmt: skip
"""Symptom -> causes to think of, most frequent first."""

_Row = tuple[Priority, str, tuple[str, ...], str]
OPEN: dict[str, _Row] = {
    "learning-rate-too-high": ("P0", "learning_rate, grad_norm", ("lower-learning-rate-unknown", "roll-back"), "lower-rate"),
    "numeric-overflow": ("P0", "loss_scale, activation_max", ("use-bf16", "loss-scale-window"), "fp32"),
    "corrupt-samples": ("P0", "loss per sample", ("guard-labels", "skip-non-finite"), "skip-batches"),
    "bad-data-burst": ("P0", "loss per sample", ("clean-data",), "skip-batches"),
    "batch-composition": ("P0", "batch_size, batch_tokens", ("log-batch-make-up", "shuffle-globally"), "same-mixture"),
    "decay-too-fast": ("P0", "learning_rate", ("slower-decay",), "slower-decay"),
    "schedule-misapplied": ("P0", "learning_rate", ("fix-scheduler", "check-schedule-length"), "plot-schedule"),
    "learning-rate-zero": ("P0", "learning_rate", ("set-learning-rate", "check-parameter-groups"), "constant-rate"),
    "label-error": ("P0", "label statistics", ("check-label-decoding", "check-labels"), "overfit-one-batch"),
    "initialization": ("P0", "grad_norm of each layer", ("initialise", "check-loaded-weights"), "first-loss"),
    "residual-missing": ("P1", "grad_norm of each layer", ("check-residuals", "check-norms"), "branch-entry"),
    "normalization": ("P1", "grad_norm of each layer", ("check-norms", "check-residuals"), "branch-entry"),
    "overfitting-data": ("P2", "epoch", ("fewer-epochs", "regularise", "remove-duplicates"), "fresh-data"),
    "repeated-data": ("P1", "epoch", ("remove-duplicates", "fewer-epochs"), "fresh-data"),
    "template-data": ("P1", "sampled text", ("remove-duplicates", "resample-domains"), "without-templates"),
    "decoding": ("P1", "sampled text", ("decoding-settings", "watch-attention-entropy"), "other-decoding"),
    "entropy-lost": ("P0", "entropy", ("entropy-bonus", "kl-penalty"), "entropy-bonus"),
    "reference-drift": ("P0", "kl", ("kl-penalty", "lower-learning-rate-unknown"), "kl-penalty"),
    "data-leak": ("P0", "eval_loss", ("check-split", "check-shift"), "shuffled-labels"),
    "attention-logits": ("P0", "attention_logit_max, param_norm of each layer", ("qk-norm", "clip-logits"), "qk-norm"),
    "stale-second-moment": ("P0", "update_norm", ("clip-update", "lower-beta2"), "fresh-second-moment"),
    "low-precision-stall": ("P1", "update_norm", ("fp32-master",), "fp32"),
    "uniform-output": ("P0", "activations of each layer", ("check-dead-units", "check-input-scale"), "overfit-one-batch"),
    "label-masking": ("P0", "label statistics", ("check-labels", "check-template-markers"), "count-active-labels"),
    "stray-mask": ("P0", "gradients of each layer", ("check-masks", "swap-attention"), "without-padding"),
    "gradients-not-cleared": ("P0", "grad_norm from the first step on", ("zero-gradients",), "cleared-gradients"),
    "loss-scale-exhausted": ("P0", "loss_scale", ("use-bf16", "find-overflow"), "fp32"),
    "memory-fragmentation": ("P2", "memory_reserved", ("expandable-segments", "fix-shapes"), "expandable-segments"),
    "ragged-shapes": ("P2", "batch_tokens", ("fix-shapes",), "fixed-shapes"),
    "memory-leak": ("P1", "host_memory, memory_allocated", ("memory-snapshot",), "short-run-snapshot"),
    "task-imbalance": ("P1", "loss of each task", ("task-weights", "sample-tasks"), "one-task"),
    "router": ("P1", "expert_load_max, aux_loss", ("router-balance", "router-normaliser"), "router-load"),
    "optimizer-state-lost": ("P0", "optimizer state", ("save-optimizer-state",), "inspect-checkpoint"),
    "rank-desync": ("P0", "values of each rank", ("check-rank-data",), "swap-ranks"),
    "hardware-fault": ("P1", "step_seconds of each rank", ("check-hardware",), "same-again"),
    "input-stall": ("P2", "time spent waiting for data", ("loader-workers", "check-neighbours"), "synthetic-data"),
    "code-error": ("P0", "the traceback", ("read-traceback", "resume-from-checkpoint"), "same-again"),
    "batch-size": ("P0", "memory_allocated", ("smaller-batch",), "half-batch"),
}  # fmt: skip
"""Cause -> priority, what would have to be logged to tell, advice topics, experiment."""
SHOWN = 3


def open_rivals(case: Case, named: frozenset[str] = frozenset()) -> tuple[Hypothesis, ...]:
    """The usual suspects for an incident about which the log says nothing more than its symptom, with low scores.

    Args:
        named: causes that have been named already.
    """
    suspects = [n for n in LIKELY.get(case.incident.kind, ()) if n in OPEN and n not in named and _not_logged(case, n)]
    return tuple(_suspect(case, name, 0.12 - 0.01 * place) for place, name in enumerate(suspects[:SHOWN]))


def _not_logged(case: Case, name: str) -> str:
    """What would tell and is not in the log; empty where all of it is there, and did not speak for the cause."""
    wanted = OPEN[name][1].split(", ")
    return ", ".join(w for w in wanted if not _is_logged(case, *w.split(" ", 1)))


def _is_logged(case: Case, signal: str, of_each: str = "") -> bool:
    if of_each.startswith("of each") or signal == "loss":
        return any(n.startswith(f"{signal}/") for n in case.columns)
    return case.has(signal)


def _suspect(case: Case, name: str, score: float) -> Hypothesis:
    priority, _, topics, test = OPEN[name]
    onset = case.incident.onset_step
    evidence = Message("causes.evidence.open", {"missing": _not_logged(case, name)})
    experiment = Message(
        f"causes.test.{test}", {"step": onset, "first": onset, "last": case.incident.end_step or onset}
    )
    advice = tuple(advise(case.info.trainer, topic) for topic in topics)
    return Hypothesis(name, round(score, 3), priority, (evidence,), advice, experiment)
