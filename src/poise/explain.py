"""`poise explain`: the quick table, and a page for each symptom and each cause. Plain strings; the CLI prints them."""

from __future__ import annotations

import difflib
import inspect
import textwrap
from dataclasses import dataclass

import numpy as np

from poise.causes import CAUSES, NAMES
from poise.causes.likely import LIKELY
from poise.detectors import ALL
from poise.detectors.base import Detector, Example
from poise.messages import render
from poise.records import Message, Priority
from poise.report.plot import plot
from poise.signals import KINDS

WIDTH = 100
SUDDEN = ("loss-spike", "gradient-explosion", "update-norm-spike", "non-finite", "loss-cliff", "resume-jump")
AROUND = 80
"""Rows shown to either side of a sudden event, which the fall of the early loss would flatten."""


class UnknownNameError(ValueError):
    """No symptom or cause has this name; the message lists the nearest ones."""


@dataclass(frozen=True, slots=True)
class QuickRow:
    """One row of the quick table.

    Args:
        name: id of its texts under `explain.table.`.
        kinds: symptoms that it is about.
        when: the part of the run to which it is confined.
        causes: causes it names, most likely first.
        topics: topics of advice that carry out its treatment.
    """

    name: str
    priority: Priority
    kinds: tuple[str, ...]
    causes: tuple[str, ...]
    topics: tuple[str, ...]
    when: str = "any"

    def text(self, column: str = "", language: str = "en") -> str:
        """The row's symptom, or with a column its `causes` or `treatment`, in words."""
        return render(Message(f"explain.table.{self.name}" + (f".{column}" if column else "")), language)


ROWS: tuple[QuickRow, ...] = (
    QuickRow("non-finite", "P0", ("non-finite", "gradient-explosion", "loss-scale-collapse"),
             ("numeric-overflow", "learning-rate-too-high"), ("clip-gradients", "loss-scale-window", "lower-learning-rate")),
    QuickRow("slow-start", "P0", ("not-learning", "bad-start", "divergence", "loss-spike", "oscillation"),
             ("warmup-too-short", "learning-rate-too-high", "initialization"), ("longer-warmup", "lower-learning-rate", "initialise"), "early"),
    QuickRow("late-oscillation", "P0", ("oscillation", "loss-spike", "divergence", "loss-cliff"),
             ("bad-data-burst", "decay-too-fast", "batch-composition"), ("inspect-batches", "clean-data", "slower-decay"), "late"),
    QuickRow("shallow-gradient", "P1", ("gradient-vanishing",),
             ("initialization", "residual-missing", "normalization"), ("check-residuals", "check-norms", "initialise")),
    QuickRow("repetitive-text", "P1", ("mode-collapse",), ("template-data", "decoding"),
             ("temperature-schedule", "label-smoothing", "watch-attention-entropy")),
    QuickRow("poor-text", "P2", ("mode-collapse", "overfitting"), ("template-data", "repeated-data", "overfitting-data"),
             ("regularise", "resample-domains", "remove-duplicates")),
    QuickRow("memory-swing", "P2", ("memory-swing",), ("memory-fragmentation", "ragged-shapes", "batch-size", "sequence-length"),
             ("fix-shapes", "smaller-batch")),
)  # fmt: skip
"""The quick table, P0 first. "Overfitting" is not named for falling validation loss with poor text: there validation would worsen."""


def row_of(kind: str, progress: float | None = None, text_is_poor: bool = False) -> QuickRow | None:
    """Return the row of the quick table for a symptom.

    Args:
        kind: a name of `signals.KINDS`.
        progress: where in the run it began, 0 to 1; rows for early and late symptoms need it.
        text_is_poor: whether validation still falls, which separates the two rows about text.
    """
    fitting = [r for r in ROWS if kind in r.kinds and r.when in ("any", _when(progress))]
    if text_is_poor and len(fitting) > 1:
        return fitting[-1]
    return fitting[0] if fitting else None


def quick_table(language: str = "en") -> str:
    """Return the quick table as text, P0 first."""
    parts = [_word("table-title", language), ""]
    for row in ROWS:
        parts.append(f"{row.priority}  {row.text(language=language)}")
        parts.append(
            _wrapped(f"{_word('causes', language)}: {row.text('causes', language)} ({', '.join(row.causes)})", "    ")
        )
        parts.append(_wrapped(f"{_word('treatment', language)}: {row.text('treatment', language)}", "    "))
    return "\n".join([*parts, "", _word("more", language)])


def explain(name: str | None = None, language: str = "en") -> str:
    """Return the quick table, or the page of a symptom or cause.

    Raises:
        UnknownNameError: no such name; says the nearest ones.
    """
    if name is None:
        return quick_table(language)
    wanted = name.strip().lower().replace("_", "-").replace(" ", "-")
    pages = [_symptom(wanted, language)] if wanted in KINDS else []
    pages += [_cause(wanted, language)] if wanted in NAMES else []
    if not pages:
        known = [*KINDS, *NAMES]
        nearest = (
            difflib.get_close_matches(wanted, known, 3, 0.5) or [n for n in known if wanted in n][:3] or ["divergence"]
        )
        raise UnknownNameError(_word("unknown", language, name=name, nearest=", ".join(nearest)))
    return "\n\n".join(pages)


def _symptom(kind: str, language: str) -> str:
    parts = [kind, _wrapped(render(Message(f"explain.kind.{kind}"), language))]
    if kind in LIKELY:
        parts += ["", f"{_word('likely', language)}:"]
        parts += [
            _wrapped(f"{c}: {render(Message(f'explain.cause.{c}'), language)}", "  ", "    ") for c in LIKELY[kind]
        ]
    for detector in ALL:
        if kind in detector.kinds:
            parts += [
                "",
                f"{_word('detector', language)} ({detector.__name__}):",
                textwrap.indent(inspect.getdoc(detector) or "", "  "),
            ]
            parts += _examples(detector, kind, language)
    return "\n".join(parts)


def _examples(detector: type[Detector], kind: str, language: str) -> list[str]:
    shown = [e for e in detector.fires_on if e.kind == kind][:2]
    parts = []
    for example, word in [*((e, "fires-on") for e in shown), *((e, "quiet-on") for e in detector.quiet_on[:1])]:
        parts += ["", _word(word, language, title=example.title), textwrap.indent(picture(example, kind), "  ")]
    return parts


def picture(example: Example, kind: str = "") -> str:
    """Draw the column of an example that shows its symptom, with its onset marked."""
    columns = example.make().columns
    wanted = "grad_norm" if kind.startswith("gradient") else "eval_loss" if kind == "overfitting" else "loss"
    name = wanted if wanted in columns else next(iter(columns))
    column = columns[name]
    if kind in SUDDEN and example.onset is not None and len(column) > 2 * AROUND:
        row = int(np.searchsorted(column.steps, example.onset))
        column = column.slice(max(0, row - AROUND), row + AROUND)
    values = column.values if column.values.ndim == 1 else column.values[:, 0]
    return "\n".join([name, *plot(column.steps, values, WIDTH - 30, 6, example.onset)])


def _cause(name: str, language: str) -> str:
    parts = [name, _wrapped(render(Message(f"explain.cause.{name}"), language))]
    function = next((c for c in CAUSES if getattr(c, "__name__", "").replace("_", "-") == name), None)
    if function is not None and language == "en":
        parts.append(_wrapped(inspect.getdoc(function) or ""))
    seen = [kind for kind, causes in LIKELY.items() if name in causes]
    if seen:
        parts += ["", _wrapped(f"{_word('seen-as', language)}: {', '.join(seen)}")]
    rows = [r for r in ROWS if name in r.causes]
    parts += [_wrapped(f"{_word('treatment', language)} ({r.priority}): {r.text('treatment', language)}") for r in rows]
    return "\n".join(parts)


def _when(progress: float | None) -> str:
    return "any" if progress is None else "late" if progress > 0.5 else "early"


def _word(word: str, language: str, **params: object) -> str:
    return render(Message(f"explain.word.{word}", params), language)


def _wrapped(text: str, first: str = "", rest: str | None = None) -> str:
    return textwrap.fill(
        text, WIDTH, initial_indent=first, subsequent_indent=first if rest is None else rest, break_on_hyphens=False
    )
