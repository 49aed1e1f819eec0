"""The head of every report: one sentence on what happened, and the rows of the quick table that fit."""

from __future__ import annotations

from dataclasses import dataclass

from poise.offline import Diagnosis
from poise.records import Incident
from poise.report.wording import advice_parts, clean, phrase, rivals, what_happened

QUIET_SIGNALS = ("other", "time", "epoch", "tokens", "batch_size", "batch_tokens")


@dataclass(frozen=True, slots=True)
class QuickLine:
    """A row of the quick table that fits an incident of this run."""

    priority: str
    symptom: str
    causes: str
    treatment: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the head of a report says.

    Args:
        level: `critical`, `warning`, `info`, `calm` or `unjudged`.
        sentence: what happened, since when, who moved first, the likely cause; or what was checked.
        action: what to do first and its code, both empty if nothing need be done.
    """

    level: str
    sentence: str
    action: tuple[str, str]
    rest: str
    quick: tuple[QuickLine, ...]


def verdict(diagnosis: Diagnosis, language: str = "en") -> Verdict:
    """Sum a diagnosis up."""
    alarms = [i for i in diagnosis.incidents if i.severity != "info"]
    if not diagnosis.judged:
        return Verdict("unjudged", _unjudged(diagnosis, language), ("", ""), "", ())
    if not alarms:
        level = "info" if diagnosis.incidents else "calm"
        return Verdict(level, _calm(diagnosis, language), ("", ""), "", ())
    head = alarms[0]
    action = advice_parts(head.causes[0].advice[0], language) if head.causes and head.causes[0].advice else ("", "")
    rest = phrase("say", "others", language, count=len(diagnosis.incidents) - 1) if len(diagnosis.incidents) > 1 else ""
    return Verdict(head.severity, about(head, language), action, rest, _quick(diagnosis, alarms, language))


def about(incident: Incident, language: str = "en") -> str:
    """One sentence on an incident: what, since when, first sign, likely cause."""
    what = what_happened(incident.kind, language)
    if incident.recovered and incident.end_step is not None:
        begun = phrase("say", "back", language, what=what, step=incident.onset_step, end=incident.end_step)
    else:
        form = "throughout" if any(f.chronic for f in incident.findings) else "since"
        begun = phrase("say", form, language, what=what, step=incident.onset_step)
    parts = [begun, phrase("say", "first", language, signal=incident.first_signal)]
    leading = rivals(incident.causes)
    if len(leading) > 1:
        first, second = leading[0], leading[1]
        parts.append(
            phrase(
                "say",
                "rival",
                language,
                cause=first.cause,
                rival=second.cause,
                priority=min(first.priority, second.priority),
            )
        )
    elif leading:
        parts.append(phrase("say", "cause", language, cause=leading[0].cause, priority=leading[0].priority))
    sentence = ("；" if language == "zh" else "; ").join(parts) + ("。" if language == "zh" else ".")
    return sentence[:1].upper() + sentence[1:]


def checked_signals(diagnosis: Diagnosis) -> tuple[str, ...]:
    """The signals that were judged, without those that are only plotted."""
    return tuple(dict.fromkeys(s for name in diagnosis.signals if (s := name.partition("/")[0]) not in QUIET_SIGNALS))


def quick_row(diagnosis: Diagnosis, incident: Incident) -> str | None:
    """The id of the quick table's row for an incident."""
    from poise.explain import row_of

    row = row_of(incident.kind, progress(diagnosis, incident))
    return row.name if row else None


def progress(diagnosis: Diagnosis, incident: Incident) -> float:
    """Where in its branch an incident began, 0 to 1."""
    last = max((int(c.steps[-1]) for c in diagnosis.columns(incident.branch).values() if len(c)), default=0)
    planned = diagnosis.info.config.get("max_steps")
    last = max(last, int(planned) if isinstance(planned, int | float) and 0 < planned < 1e15 else 0)
    return incident.onset_step / last if last else 0.0


def _quick(diagnosis: Diagnosis, alarms: list[Incident], language: str) -> tuple[QuickLine, ...]:
    from poise.explain import ROWS

    names = {quick_row(diagnosis, incident) for incident in alarms}
    return tuple(
        QuickLine(r.priority, r.text(language=language), r.text("causes", language), r.text("treatment", language))
        for r in ROWS
        if r.name in names
    )


def _calm(diagnosis: Diagnosis, language: str) -> str:
    first, last = diagnosis.steps or (0, 0)
    name = "healthy-info" if diagnosis.incidents else "healthy"
    told = phrase(
        "say", name, language, points=diagnosis.points, first=first, last=last, count=len(diagnosis.incidents)
    )
    signals = [clean(s) for s in checked_signals(diagnosis)]
    return f"{told} {phrase('say', 'checked', language, signals=', '.join(signals))}" if signals else told


def _unjudged(diagnosis: Diagnosis, language: str) -> str:
    if diagnosis.main is None:
        return phrase("say", "unjudged-main", language, count=len(diagnosis.signals))
    return phrase("say", "unjudged-points", language, points=diagnosis.points, signal=diagnosis.main)
