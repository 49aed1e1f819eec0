"""Numbers run out of range: fp16 activations, the loss scale, a backward pass that makes NaN, a log that hides it."""

from __future__ import annotations

import numpy as np

from poise.causes.base import Case
from poise.causes.clues import Weigh, concerns, finite, first_bad, half_precision, loss_of, past, series, settled
from poise.causes.rate import rate
from poise.records import Hypothesis

FP16_MAX = 65504.0


def numeric_overflow(case: Case) -> Hypothesis | None:
    """An Inf comes first, under fp16 or near its largest number."""
    if not concerns(
        case, "non-finite", "loss-scale-collapse", "gradient-explosion", "divergence", "crash", "saturation"
    ):
        return None
    weigh = Weigh(case, "numeric-overflow")
    _activations(weigh)
    gradient, loss = first_bad(case, "grad_norm"), first_bad(case, loss_of(case) or "loss")
    first = gradient is not None and (loss is None or gradient[0] <= loss[0])
    infinite = gradient is not None and bool(np.isinf(gradient[1]))
    weigh.fact(first and infinite, 0.35, "inf-gradient-first", step=gradient[0] if gradient else 0)
    fp16 = half_precision(case)
    hurt = concerns(case, "non-finite", "loss-scale-collapse")
    weigh.fact(fp16 and hurt, 0.2, "fp16", rows=len(case.columns.get("loss_scale", ())))
    overflows = [e for e in case.events if e.kind == "overflow"]
    weigh.fact(
        len(overflows) >= 3,
        0.2,
        "overflow-events",
        count=len(overflows),
        first=overflows[0].step if overflows else 0,
        last=overflows[-1].step if overflows else 0,
    )
    if first and loss is not None and not infinite:
        weigh.fact(weigh.evidence, 0.1, "gradient-before-loss", gradient=gradient[0] if gradient else 0, loss=loss[0])
    end = settled(case)
    weigh.against(
        end is not None and end.peak > 5 * abs(end.before) and not infinite and concerns(case, "divergence"), 0.2
    )
    if not weigh.evidence and concerns(case, "non-finite"):
        weigh.open("activation_max", 0.15)
    return weigh.verdict(
        "P0",
        "use-bf16",
        "loss-scale-window",
        ("clip-gradients", {"value": 1.0}),
        test="fp32",
        step=case.incident.onset_step,
    )


def non_finite_gradient(case: Case) -> Hypothesis | None:
    """The gradient is non-finite while the loss is finite and hardly a step was taken: the backward pass itself makes it."""
    gradient = first_bad(case, "grad_norm")
    if not concerns(case, "non-finite") or gradient is None:
        return None
    weigh = Weigh(case, "non-finite-gradient")
    step, value = gradient
    loss_steps, loss = series(case, "loss", stop=step + 1)
    there = loss[loss_steps == step]
    weigh.fact(
        len(there) and np.isfinite(there[-1]) and there[-1] != 0,
        0.2,
        "gradient-bad-loss-fine",
        step=step,
        value=value,
        loss=float(there[-1]) if len(there) else 0,
    )
    schedule = rate(case)
    still = (
        schedule is not None
        and float(schedule.values[: np.searchsorted(schedule.steps, step, side="right")].max(initial=0.0)) == 0.0
    )
    weigh.fact(still, 0.35, "no-step-taken", step=step)
    weigh.fact(len(past(case, "grad_norm")) == 0, 0.3, "from-the-first-row", step=step)
    return weigh.verdict(
        "P0", ("anomaly-mode", {"step": step}), "swap-attention", "use-bf16", test="one-batch-fp32", step=step
    )


def masked_loss(case: Case) -> Hypothesis | None:
    """The trainer wrote 0.0 or a running mean in place of NaN: the gradient norm is NaN where the loss looks fine."""
    steps, loss = series(case, "loss")
    if not concerns(case, "non-finite") or not len(loss):
        return None
    weigh = Weigh(case, "masked-loss")
    gradient_steps, gradient = series(case, "grad_norm")
    bad = gradient_steps[np.isnan(gradient)]
    zeros = steps[(loss == 0.0) & np.isin(steps, bad)]
    weigh.fact(len(zeros), 0.5, "zeros-stand-for-nan", count=len(zeros), step=int(zeros[0]) if len(zeros) else 0)
    return weigh.verdict("P1", "show-non-finite", test="unfiltered-log")


def loss_scale_exhausted(case: Case) -> Hypothesis | None:
    """The loss scale halves step after step and no update is accepted: something overflows always, at any scale."""
    weigh = Weigh(case, "loss-scale-exhausted")
    if not concerns(case, "loss-scale-collapse", "non-finite", "crash", "not-learning"):
        return None
    steps, scale = series(case, "loss_scale")
    if len(scale) >= 3:
        streak = _falling(scale)
        top, low = float(scale[-streak - 1]) if streak < len(scale) else float(scale[0]), float(scale[-1])
        weigh.fact(streak >= 3, 0.6, "scale-falls", count=streak, step=int(steps[-streak]), first=top, last=low)
        tiny = finite(scale)
        weigh.fact(
            len(tiny) and tiny.min() < 1.0,
            0.3,
            "scale-below-one",
            value=float(tiny.min()) if len(tiny) else 0,
            step=int(steps[np.nanargmin(scale)]),
        )
    skips = [e for e in case.events if e.kind == "overflow" and e.step is not None]
    run = _last_run([int(e.step) for e in skips if e.step is not None])
    weigh.fact(
        len(run) >= 3, 0.4, "skips-unbroken", count=len(run), first=run[0] if run else 0, last=run[-1] if run else 0
    )
    if not weigh.evidence:
        _detected(weigh)
    return weigh.verdict(
        "P0", "use-bf16", "loss-scale-window", "find-overflow", test="fp32", step=case.incident.onset_step
    )


def _detected(weigh: Weigh) -> None:
    """What the detector counted, where the log states no scale and no steps of its own for the skips."""
    for finding in weigh.case.incident.findings:
        count = int(finding.facts.get("halvings", 0))
        if finding.kind == "loss-scale-collapse" and count >= 3:
            weigh.fact(
                True, 0.6, "scale-falls", count=count, step=finding.onset, first=finding.expected, last=finding.value
            )
            return


def _activations(weigh: Weigh) -> None:
    """Name the module whose activations came nearest to the largest fp16 number."""
    peaks = []
    for name in weigh.case.columns:
        if name.partition("/")[0] == "activation_max":
            steps, values = series(weigh.case, name)
            at = int(np.argmax(np.where(np.isnan(values), -1.0, values)))
            peaks.append(
                (float(values[at]), int(steps[at]), name.partition("/")[2] or weigh.case.info.names.get(name, name))
            )
    if peaks:
        value, step, module = max(peaks)
        weigh.fact(value >= FP16_MAX, 0.7, "activation-overflow", value=value, step=step, module=module)
        weigh.fact(
            FP16_MAX / 2 <= value < FP16_MAX,
            0.4,
            "activation-near-limit",
            value=value,
            step=step,
            module=module,
            share=100 * value / FP16_MAX,
        )


def _falling(scale: np.ndarray) -> int:
    """How many rows at the end each lie below the one before."""
    falls = np.diff(scale) < 0
    return len(falls) if falls.all() else int(np.argmin(falls[::-1]))


def _last_run(steps: list[int]) -> list[int]:
    """The last stretch of consecutive steps."""
    run: list[int] = []
    for step in sorted(set(steps)):
        run = [*run, step] if run and step == run[-1] + 1 else [step]
    return run
