"""What a log can say about an incident: plain questions to a Case, each answered from columns, and a way to add them up.

Causes differ in which clues they ask for and how much each counts; the clues themselves are found here once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from poise.advice import advise
from poise.causes.base import Case
from poise.records import Event, Floats, Hypothesis, Ints, Message, Priority

LOSS_RISES = (
    "loss-spike", "divergence", "oscillation", "gradient-explosion", "training-collapse", "loss-cliff", "level-shift",
    "non-finite", "unstable", "update-norm-spike", "resume-jump",
)  # fmt: skip
STANDSTILL = ("not-learning", "plateau", "lost-updates", "dead-units", "gradient-vanishing", "bad-start")
EARLY, LATE = 0.1, 0.5  # share of the run
CALM_Z = 6.0


@dataclass(slots=True)
class Weigh:
    """Adds up what speaks for one cause, and keeps each clue as a sentence with its numbers."""

    case: Case
    cause: str
    score: float = 0.0
    evidence: list[Message] = field(default_factory=list)

    def fact(self, holds: object, weight: float, clue: str, **params: Any) -> bool:
        """Count a clue where it holds; returns whether it did."""
        if holds:
            self.score += weight
            plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in params.items()}
            self.evidence.append(Message(f"causes.evidence.{clue}", plain))
        return bool(holds)

    def against(self, holds: object, weight: float) -> None:
        """Lower the score for what speaks against the cause; said by the rivals, so not repeated here."""
        if holds:
            self.score -= weight

    def open(self, missing: str, score: float = 0.1) -> None:
        """Keep the cause as an open rival: nothing in this log speaks for it, and nothing can rule it out."""
        if not self.evidence:
            self.score = score
            self.evidence.append(Message("causes.evidence.open", {"missing": missing}))

    def verdict(
        self, priority: Priority, *topics: tuple[str, dict[str, Any]] | str, test: str | None = None, **params: Any
    ) -> Hypothesis | None:
        """Close the account: None without evidence, else the hypothesis with advice in the trainer's own words.

        Args:
            topics: advice topics of `poise.advice`, most local first, alone or with their values.
            test: id of the experiment under `causes.test.`, filled in with `params`.
        """
        if not self.evidence or self.score <= 0:
            return None
        trainer = self.case.info.trainer
        pairs = [(topic, {}) if isinstance(topic, str) else topic for topic in topics]
        advice = tuple(advise(trainer, topic, **values) for topic, values in pairs)
        experiment = Message(f"causes.test.{test}", params) if test else None
        score = round(min(max(self.score, 0.02), 0.97), 3)
        return Hypothesis(self.cause, score, priority, tuple(self.evidence), advice, experiment)


def kinds(case: Case) -> frozenset[str]:
    """The incident's kind and those of its findings."""
    return frozenset({case.incident.kind, *(f.kind for f in case.incident.findings)})


def concerns(case: Case, *names: str) -> bool:
    """Whether the incident shows one of these symptoms."""
    return not kinds(case).isdisjoint(names)


def facts(case: Case, name: str) -> Iterator[Any]:
    """What the findings of this incident say under a fact's name."""
    for finding in case.incident.findings:
        if name in finding.facts:
            yield finding.facts[name]


def series(case: Case, signal: str, start: float = -np.inf, stop: float = np.inf) -> tuple[Ints, Floats]:
    """Steps and scalar values with start <= step < stop; vectors are averaged over what is finite in them."""
    steps, values = case.between(signal, start, stop)
    if values.ndim == 1:
        return steps, values
    finite = np.isfinite(values)
    total = np.where(finite, values, 0.0).sum(axis=1)
    return steps, np.where(finite.any(axis=1), total / np.maximum(finite.sum(axis=1), 1), np.nan)


def finite(values: Floats) -> Floats:
    """The finite ones."""
    return values[np.isfinite(values)]


def past(case: Case, signal: str, rows: int = 64) -> Floats:
    """The finite values of the last rows before the onset."""
    return finite(series(case, signal, stop=case.incident.onset_step)[1][-rows:])


def future(case: Case, signal: str, rows: int = 64) -> Floats:
    """The finite values of the first rows from the onset on."""
    return finite(series(case, signal, start=case.incident.onset_step)[1][:rows])


def loss_of(case: Case) -> str | None:
    """The column that plays the loss in this incident."""
    named = [f.signal for f in case.incident.findings if f.signal.startswith("loss")]
    for name in ("loss", *named, *(n for n in case.columns if n.startswith("loss/")), "eval_loss"):
        if case.has(name):
            return name
    return None


@dataclass(frozen=True, slots=True)
class Burst:
    """A rise of a signal at the onset: its largest value, where, and how many times the calm past."""

    step: int
    value: float
    usual: float
    ratio: float


def burst(case: Case, signal: str, rows: int = 16) -> Burst | None:
    """The largest value of a signal from the onset on, against the median before; None without a past."""
    calm = past(case, signal)
    steps, values = series(case, signal, start=case.incident.onset_step)
    steps, values = steps[:rows], values[:rows]
    keep = np.isfinite(values)
    if not len(calm) or not keep.any():
        return None
    usual = float(np.median(calm))
    at = int(np.argmax(np.where(keep, values, -np.inf)))
    ratio = float(values[at]) / usual if usual > 0 else float("inf") if values[at] > 0 else 1.0
    return Burst(int(steps[at]), float(values[at]), usual, ratio)


def first_rise(case: Case, signal: str, z: float = CALM_Z, reach: int = 32) -> int | None:
    """The first step around the onset at which a signal left its calm past upwards (`reach` rows to either side)."""
    steps, values = series(case, signal)
    center = int(np.searchsorted(steps, case.incident.onset_step))
    calm = finite(values[max(0, center - reach - 128) : max(0, center - 8)])
    if len(calm) < 8:
        return None
    scale = 1.4826 * float(np.median(np.abs(calm - np.median(calm)))) + 0.002 * abs(float(np.median(calm)))
    window = slice(max(0, center - 8), center + reach)
    over = np.flatnonzero(~(values[window] <= np.median(calm) + z * scale))
    return int(steps[window][over[0]]) if len(over) else None


@dataclass(frozen=True, slots=True)
class Settled:
    """The loss before the onset and where it ended up."""

    before: float
    after: float
    peak: float
    healed: bool
    noise: float

    @property
    def stays_up(self) -> bool:
        """Whether the level rose for good: by more than a twentieth, and more than its noise explains."""
        return not self.healed and self.lost > 0.05 and self.after - self.before > 3 * self.noise

    @property
    def lost(self) -> float:
        """What is lasting, as a share of the level before."""
        return (self.after - self.before) / max(abs(self.before), 1e-12)


def settled(case: Case, signal: str | None = None) -> Settled | None:
    """Where the loss went in the end: medians of up to 16 rows before the onset and of the last tenth after it."""
    name = signal or loss_of(case)
    if name is None:
        return None
    before = past(case, name, 16)
    after = finite(series(case, name, start=case.incident.onset_step)[1])
    if not len(before) or not len(after):
        return None
    tail = after[-max(1, min(len(after) // 10, 32)) :]
    low, high = float(np.median(before)), float(np.median(tail))
    sigma = 1.4826 * float(np.median(np.abs(before - np.median(before))))
    stays = any(
        isinstance(share, float) and share > 0.003 for share in facts(case, "lasting")
    )  # a detector that followed it says so
    back = (
        high <= low + max(3 * sigma, 0.01 * abs(low))
        and len(after) > len(tail)
        and np.isfinite(series(case, name)[1][-1]).item()
    )
    healed = not stays and (back or case.incident.recovered)
    noise = 1.25 * sigma * (len(before) ** -0.5 + len(tail) ** -0.5)  # of the two medians
    return Settled(low, high, float(after.max()), healed, noise)


def position(case: Case) -> float | None:
    """Where in the run the onset lies (0 to 1); None while the run is too short to say early or late."""
    return case.progress if max((len(c) for c in case.columns.values()), default=0) >= 20 else None


def setting(case: Case, *names: str) -> Any:
    """The first of some settings that the log states, whatever prefix its trainer puts before the name."""
    for name in names:
        for key, value in case.info.config.items():
            if key == name or key.rpartition(".")[2].rpartition("/")[2].replace("-", "_") == name:
                return value
    return None


def half_precision(case: Case) -> bool:
    """Whether the log states fp16, or has the loss scale that only fp16 needs."""
    stated = setting(case, "fp16", "precision", "mixed_precision", "dtype", "params_dtype")
    text = str(stated).lower()
    return (
        case.has("loss_scale")
        or stated is True
        or (any(t in text for t in ("fp16", "float16", "16-mixed", "half")) and "bf" not in text)
    )


def first_bad(case: Case, signal: str) -> tuple[int, float] | None:
    """Step and value of the first non-finite point of a signal."""
    steps, values = case.between(signal, -np.inf, np.inf)
    flat = values if values.ndim == 1 else values.min(axis=1) + 0 * values.max(axis=1)
    bad = np.flatnonzero(~np.isfinite(flat))
    return (int(steps[bad[0]]), float(flat[bad[0]])) if len(bad) else None


def spike_steps(case: Case) -> list[int]:
    """Onsets of all loss spikes of the run, this incident's and the others', or as its detector grouped them."""
    grouped = [int(s) for steps in facts(case, "onsets") for s in steps]
    single = [
        f.onset for i in (case.incident, *case.others) for f in i.findings if f.kind in ("loss-spike", "oscillation")
    ]
    own = [i.onset_step for i in case.others if i.kind == "loss-spike"]
    return sorted({*grouped, *single, *own})


def exception(case: Case) -> Event | None:
    """The exception or signal that ended the run, the one nearest to the onset if there were several; None if there was none."""
    events = [e for e in case.events if e.kind in ("exception", "signal")]
    onset = case.incident.onset_step
    return min(events, key=lambda e: abs((case.last_step if e.step is None else e.step) - onset), default=None)


def told(event: Event) -> str:
    """What an exception says: its type and its text."""
    return f"{event.data.get('type') or event.data.get('name') or ''}: {event.data.get('text', '')}"


def out_of_memory(case: Case) -> int | None:
    """The step at which memory ran out (the last step where it has none); None if it did not."""
    event = exception(case)
    if event is None or not (event.data.get("oom") or "out of memory" in told(event).lower()):
        return None
    return case.last_step if event.step is None else event.step


def planned_steps(case: Case) -> int:
    """The last step of the run as far as is known: what the log plans, or else the last one seen."""
    stated = setting(case, "max_steps", "train_iters", "total_steps", "max_iters", "num_iterations")
    planned = int(stated) if isinstance(stated, int | float) and not isinstance(stated, bool) and stated > 0 else 0
    return max(case.last_step, planned)


def isolated(case: Case) -> tuple[int, int, float] | None:
    """Count, first step and next finite loss of non-finite losses after which the loss is at its old level: no weight was hurt."""
    steps, values = series(case, "loss")
    bad = ~np.isfinite(values)
    if not bad.any() or bad[-3:].all() or bad.mean() > 0.1:
        return None
    at = int(np.argmax(bad))
    before, after = finite(values[:at])[-8:], finite(values[at:])[:8]
    if len(before) < 3 or not len(after):
        return None
    same = abs(float(np.median(after)) - float(np.median(before))) < 0.25 * abs(float(np.median(before)))
    return (int(bad.sum()), int(steps[at]), float(after[0])) if same else None
