"""What can be wrong with a run: one function per cause, from a Case to a Hypothesis or None. `diagnose.py` ranks them.

The list is explicit. To add a cause: write its function, add its name to `NAMES`, the function to `CAUSES`, its texts to
`messages/causes.py` and `messages/explain.py`, and a test.
"""

from __future__ import annotations

from poise.causes.attention import attention_logits, stray_mask
from poise.causes.bad_data import bad_data_burst, batch_composition, data_order
from poise.causes.base import Case, Cause
from poise.causes.generalisation import data_leak, overfitting_data
from poise.causes.gradient_scale import accumulation_scaling, clip_order, clip_too_low, gradients_not_cleared
from poise.causes.learning_rate import learning_rate_too_high, warmup_too_short
from poise.causes.machine import (
    code_error,
    hardware_fault,
    input_stall,
    library_fault,
    rank_desync,
    token_id_out_of_range,
)
from poise.causes.memory import batch_size, memory_fragmentation, memory_leak, ragged_shapes, sequence_length
from poise.causes.noise import small_batch_noise
from poise.causes.numerics import loss_scale_exhausted, masked_loss, non_finite_gradient, numeric_overflow
from poise.causes.optimizer_state import optimizer_state_lost, stale_second_moment
from poise.causes.precision import epsilon, low_precision_stall
from poise.causes.reinforcement import entropy_lost, preference_without_signal, reference_drift, reward_group_degenerate
from poise.causes.repetition import decoding, repeated_data, template_data
from poise.causes.samples import corrupt_samples, label_error, label_masking
from poise.causes.schedule import decay_too_fast, learning_rate_zero, schedule_misapplied
from poise.causes.start import initialization, normalization, residual_missing, uniform_output
from poise.causes.tasks import router, task_imbalance

NAMES: tuple[str, ...] = (
    "learning-rate-too-high", "learning-rate-zero", "warmup-too-short", "decay-too-fast", "schedule-misapplied", "bad-data-burst",
    "template-data", "repeated-data", "label-error", "label-masking", "data-leak", "overfitting-data", "numeric-overflow",
    "low-precision-stall", "loss-scale-exhausted", "clip-order", "clip-too-low", "accumulation-scaling", "optimizer-state-lost",
    "stale-second-moment", "epsilon", "initialization", "attention-logits", "output-logits", "task-imbalance", "data-order",
    "batch-composition", "corrupt-samples", "token-skew", "decoding", "residual-missing", "normalization", "feature-scale",
    "sequence-length", "stray-mask", "batch-size", "memory-fragmentation", "ragged-shapes", "router", "hardware-fault", "rank-desync",
    "small-batch-noise",
    # not in the first design: what public bug reports needed
    "non-finite-gradient", "masked-loss", "uniform-output", "gradients-not-cleared", "no-optimizer-step", "gradient-path-cut",
    "optimizer-state-low-precision", "data-replayed", "preference-without-signal", "reward-group-degenerate", "entropy-lost",
    "reference-drift", "gradient-norm-unit", "token-weighting", "impossible-sample", "token-id-out-of-range", "average-non-finite",
    "decay-on-norms", "step-order", "memory-leak", "input-stall", "code-error", "library-fault",
)  # fmt: skip
"""Every cause Poise can name, also those that only a live run or a data check can show. Append only."""

CAUSES: tuple[Cause, ...] = (
    learning_rate_too_high, warmup_too_short, learning_rate_zero, decay_too_fast, schedule_misapplied,
    bad_data_burst, batch_composition, data_order, corrupt_samples, label_error, label_masking,
    repeated_data, template_data, decoding, overfitting_data, data_leak,
    numeric_overflow, non_finite_gradient, masked_loss, loss_scale_exhausted, low_precision_stall, epsilon,
    clip_order, clip_too_low, accumulation_scaling, gradients_not_cleared, optimizer_state_lost, stale_second_moment,
    initialization, uniform_output, residual_missing, normalization, attention_logits, stray_mask, task_imbalance, router,
    small_batch_noise, batch_size, sequence_length, memory_fragmentation, ragged_shapes, memory_leak,
    hardware_fault, rank_desync, input_stall, code_error, token_id_out_of_range, library_fault,
    reward_group_degenerate, preference_without_signal, entropy_lost, reference_drift,
)  # fmt: skip
"""The causes that a log alone can support, in no order of rank."""

__all__ = ["CAUSES", "NAMES", "Case", "Cause"]
