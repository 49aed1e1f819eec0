"""Data that repeats itself: whole epochs, templates, and text that comes out repeated."""

from __future__ import annotations

from collections import Counter

import numpy as np

from poise.causes.base import Case
from poise.causes.clues import Weigh, concerns, facts, finite, first_bad, series
from poise.records import Floats, Hypothesis, Priority

COLLAPSED = ("mode-collapse", "oscillation", "overfitting")


def repeated_data(case: Case) -> Hypothesis | None:
    """The loss falls in stairs at epoch boundaries: samples are recognised when they come back."""
    weigh = Weigh(case, "repeated-data")
    if not concerns(case, "level-shift", "loss-cliff", "overfitting", "suspicious-loss"):
        return None
    stairs = _stairs(case)
    weigh.fact(
        stairs,
        0.7,
        "stairs",
        count=len(stairs),
        step=stairs[0][0] if stairs else 0,
        before=stairs[0][1] if stairs else 0,
        after=stairs[0][2] if stairs else 0,
    )
    for steps in facts(case, "stairs"):
        weigh.fact(
            not stairs and len(list(steps)) > 0,
            0.65,
            "stairs-found",
            count=len(list(steps)),
            step=int(next(iter(steps))),
        )
    _many_epochs(weigh)
    return weigh.verdict("P1", "fewer-epochs", "remove-duplicates", "regularise", test="fresh-data")


def template_data(case: Case) -> Hypothesis | None:
    """The same phrases fill the samples: text shrinks to them, or one sub-task is learnt by heart while others swing."""
    if not concerns(case, *COLLAPSED):
        return None
    weigh = Weigh(case, "template-data")
    share, count = _repeated_text(case)
    weigh.fact(share > 0.2, 0.5, "text-repeats", share=100 * share, count=count)
    part = _part_by_heart(case)
    weigh.fact(
        part is not None,
        0.45,
        "part-by-heart",
        part=part[0] if part else "",
        value=part[1] if part else 0,
        others=part[2] if part else 0,
    )
    _shrinks(weigh)
    if not weigh.evidence and concerns(case, "mode-collapse"):
        weigh.open("sampled text", 0.15)
    return weigh.verdict(
        _priority(case),
        "remove-duplicates",
        "resample-domains",
        "label-smoothing",
        "regularise",
        test="without-templates",
    )


def decoding(case: Case) -> Hypothesis | None:
    """The text repeats while loss and gradients are calm: the way of sampling may be all that is wrong."""
    if not concerns(case, "mode-collapse"):
        return None
    weigh = Weigh(case, "decoding")
    share, count = _repeated_text(case)
    loss = finite(series(case, "loss")[1])
    calm = len(loss) >= 16 and float(np.median(loss[-8:])) <= 1.02 * float(np.median(loss[-16:-8]))
    weigh.fact(
        share > 0.2 and calm and first_bad(case, "loss") is None,
        0.45,
        "text-repeats-loss-calm",
        share=100 * share,
        count=count,
        value=float(loss[-1]) if len(loss) else 0,
    )
    if not weigh.evidence:
        weigh.open("sampled text", 0.15)
    return weigh.verdict(
        _priority(case),
        "decoding-settings",
        "temperature-schedule",
        "label-smoothing",
        "watch-attention-entropy",
        test="other-decoding",
    )


def _priority(case: Case) -> Priority:
    """Poor text while validation still falls is less urgent than a collapse that nothing contradicts."""
    held = finite(series(case, "eval_loss", start=case.incident.onset_step)[1])
    return "P2" if len(held) >= 3 and held[-1] <= held[0] else "P1"


def _many_epochs(weigh: Weigh) -> None:
    epochs = finite(series(weigh.case, "epoch")[1])
    weigh.fact(
        len(epochs) and epochs[-1] >= 2.0 and weigh.evidence,
        0.1,
        "epochs-seen",
        epochs=float(epochs[-1]) if len(epochs) else 0,
    )


def _stairs(case: Case) -> list[tuple[int, float, float]]:
    """Boundaries of epochs at which the loss drops by far more than it falls within an epoch: step, before, after."""
    steps, epochs = series(case, "epoch")
    loss_steps, loss = series(case, "loss")
    if len(steps) < 8 or len(loss) < 12:
        return []
    turns = np.flatnonzero(np.floor(epochs[1:] + 1e-6) > np.floor(epochs[:-1] + 1e-6)) + 1
    found = []
    for step in steps[turns]:
        at = int(np.searchsorted(loss_steps, step))
        before, after = loss[max(0, at - 6) : at], loss[at + 1 : at + 7]
        if len(before) >= 3 and len(after) >= 3:
            noise = 1.4826 * float(np.median(np.abs(np.diff(loss[max(0, at - 24) : at])))) + 1e-9
            high, low = float(np.median(before)), float(np.median(after))
            if high - low > max(4 * noise / 6**0.5, 0.05 * abs(high)) and high - low > 2 * _slope(loss, at) * 6:
                found.append((int(step), high, low))
    return found


def _slope(loss: Floats, at: int) -> float:
    """How much the loss fell per row in the last rows before a boundary."""
    part = loss[max(0, at - 24) : at]
    return (
        max(0.0, -float(np.polyfit(np.arange(len(part)), part, 1)[0]))
        if len(part) >= 3 and np.isfinite(part).all()
        else 0.0
    )


def _repeated_text(case: Case) -> tuple[float, int]:
    """Mean share of repeated 4-grams over the text events from the onset on, and how many texts there were."""
    texts = [
        str(e.data.get("text", ""))
        for e in case.events
        if e.kind == "text" and (e.step is None or e.step >= case.incident.onset_step)
    ]
    shares = []
    for text in texts:
        words = text.split()
        grams = Counter(zip(words, words[1:], words[2:], words[3:], strict=False))
        if total := sum(grams.values()):
            shares.append(1 - len(grams) / total)
    return (float(np.mean(shares)) if shares else 0.0), len(texts)


def _part_by_heart(case: Case) -> tuple[str, float, float] | None:
    """A part of the loss that ends below a twentieth of its start while the others keep more than a third."""
    ends = {}
    for name in case.columns:
        values = finite(series(case, name)[1]) if name.startswith("loss/") else np.empty(0)
        if len(values) >= 16 and np.median(values[:4]) > 0:
            ends[name] = float(np.median(values[-8:]) / np.median(values[:4]))
    low = [n for n, r in ends.items() if r < 0.05]
    rest = [r for r in ends.values() if r > 0.33]
    return (low[0], ends[low[0]], min(rest)) if low and rest else None


def _shrinks(weigh: Weigh) -> None:
    case = weigh.case
    before, after = (
        series(case, "completion_length", stop=case.incident.onset_step)[1],
        series(case, "completion_length")[1][-8:],
    )
    if len(before) >= 4 and len(after) >= 4:
        ratio = float(np.nanmedian(after) / max(np.nanmedian(before), 1e-9))
        weigh.fact(
            ratio < 0.6, 0.2, "text-shortens", before=float(np.nanmedian(before)), after=float(np.nanmedian(after))
        )
