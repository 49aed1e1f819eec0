"""The report for a terminal: the verdict first, then each incident with its plot, timeline, causes and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from poise.offline import Diagnosis
from poise.records import Column, Hypothesis, Incident
from poise.report.layout import Style, cells, shorten, wrap
from poise.report.plot import plot
from poise.report.verdict import Verdict, verdict
from poise.report.wording import about_cause, advice_parts, clean, phrase, rivals, say, what_happened

COLOURS = {"critical": "red", "warning": "yellow", "info": "blue", "calm": "green", "unjudged": "yellow"}
SIGNS = {"critical": "✖", "warning": "▲", "info": "i", "calm": "✔", "unjudged": "?"}
AROUND = 60  # rows to either side of an onset that the plot shows at least
MOST_CAUSES = 4
MOST_MOMENTS = 8
MOST_NAMES = 12


def report(diagnosis: Diagnosis, style: Style, language: str = "en", quiet: bool = False) -> str:
    """The whole report of one run; only its verdict where `quiet`."""
    head = verdict(diagnosis, language)
    lines = [title(diagnosis, style, language), *_verdict_lines(head, style, language)]
    if not quiet:
        for incident in diagnosis.incidents:
            lines += ["", *_incident(diagnosis, incident, style, language)]
        lines += _footer(diagnosis, style, language)
    return "\n".join(lines)


def title(diagnosis: Diagnosis, style: Style, language: str = "en") -> str:
    """Path, format, and how much there is."""
    info = diagnosis.info
    facts = [info.format, phrase("say", "points", language, points=diagnosis.points)]
    if diagnosis.steps:
        facts.append(phrase("say", "steps-span", language, first=diagnosis.steps[0], last=diagnosis.steps[1]))
    if len(diagnosis.frames) > 1:
        facts.append(phrase("say", "branches", language, count=len(diagnosis.frames)))
    tail = clean(", ".join(facts))
    path = shorten(clean(info.path), max(style.width - cells(tail) - 2, 12))
    line = f"{style.paint(path, 'bold')}  {style.paint(tail, 'dim')}"
    return (
        line
        if cells(path) + 2 + cells(tail) <= style.width
        else f"{style.paint(path, 'bold')}\n{style.paint(shorten(tail, style.width), 'dim')}"
    )


def verdict_line(diagnosis: Diagnosis, style: Style, language: str = "en") -> str:
    """One line for a run among many."""
    head = verdict(diagnosis, language)
    sign = style.paint(_sign(head.level, style), COLOURS[head.level])
    path = shorten(clean(diagnosis.info.path), max(style.width // 2, 16))
    return f"{sign} {path}  {shorten(head.sentence, max(style.width - cells(path) - 4, 8))}"


def _verdict_lines(head: Verdict, style: Style, language: str) -> Iterator[str]:
    sign = _sign(head.level, style)
    for i, line in enumerate(wrap(head.sentence, style.width, f"{sign} ", "  ")):
        yield style.paint(line, COLOURS[head.level], "bold") if i == 0 else style.paint(line, COLOURS[head.level])
    sentence, code = head.action
    if sentence:
        yield from wrap(phrase("say", "do", language, advice=sentence), style.width, "  ")
        yield from (style.paint(line, "cyan") for line in wrap(code, style.width, "      ") if code)
    for row in head.quick:
        text = f"{row.symptom}: {row.causes} {style.arrow} {row.treatment}"
        yield from (style.paint(line, "dim") for line in wrap(text, style.width, f"  {row.priority}  ", "      "))
    if head.rest:
        yield f"  {head.rest}"


def _incident(diagnosis: Diagnosis, incident: Incident, style: Style, language: str) -> Iterator[str]:
    what = what_happened(incident.kind, language)
    end = (
        "" if incident.end_step is None else f" – {incident.end_step}" if style.braille else f" to {incident.end_step}"
    )
    state = phrase("word", incident.state, language)
    facts = f"{phrase('word', incident.severity, language)}, {phrase('word', 'step', language)} {incident.onset_step}{end}, {state}"
    priority = f"{incident.causes[0].priority}  " if incident.causes else ""
    rule = ("─" if style.braille else "-") * 2
    head = wrap(f"{priority}{incident.kind}: {what} ({facts})", style.width, f"{rule} ", "   ")
    yield from (style.paint(line, "bold", COLOURS[incident.severity]) for line in head)
    yield from _plots(diagnosis, incident, style, language)
    yield from _timeline(incident, style, language)
    yield from _causes(incident.causes, style, language)


def _plots(diagnosis: Diagnosis, incident: Incident, style: Style, language: str) -> Iterator[str]:
    columns = diagnosis.columns(incident.branch)
    for name in dict.fromkeys(
        n for n in (incident.first_signal, _loudest(incident), diagnosis.main or "") if n in columns
    ):
        column = _scalar(columns[name])
        start, stop = window(column, incident)
        shown = column.slice(start, stop)
        if not len(shown):
            continue
        bad = int(np.count_nonzero(~np.isfinite(shown.values)))
        own = diagnosis.info.names.get(name, name)
        label = clean(name if own == name else f"{name} ({own})")
        if bad:
            label += f"  x {phrase('say', 'not-finite-here', language, count=bad)}"
        yield ""
        yield style.paint(shorten(f"   {label}", style.width), "dim")
        room = min(style.width - 3, 84)
        yield from (
            f"   {line}" for line in plot(shown.steps, shown.values, room, 5, incident.onset_step, style.braille)
        )


def _loudest(incident: Incident) -> str:
    """The signal of the finding that names the incident."""
    return next((f.signal for f in incident.findings if f.kind == incident.kind), incident.first_signal)


def window(column: Column, incident: Incident) -> tuple[int, int]:
    """Rows around an incident that show what was before, what happened, and what came of it."""
    first = int(np.searchsorted(column.steps, incident.onset_step))
    if any(f.chronic for f in incident.findings):
        return 0, len(column)
    end = incident.end_step if incident.end_step is not None else incident.detected_step
    last = int(np.searchsorted(column.steps, end, side="right"))
    margin = max(AROUND, (last - first) // 2)
    return max(0, first - margin), min(len(column), max(last, first + 1) + margin)


def _timeline(incident: Incident, style: Style, language: str) -> Iterator[str]:
    yield ""
    yield f"   {style.paint(phrase('word', 'who-moved-first', language), 'bold')}"
    shown = incident.timeline[:MOST_MOMENTS]
    wide = max(len(str(m.step)) for m in shown)
    for moment in shown:
        begin = f"   {phrase('word', 'step', language)} {moment.step:>{wide}}  "
        yield from wrap(say(moment.message, language), style.width, begin, " " * cells(begin))
    if len(incident.timeline) > MOST_MOMENTS:
        yield f"   {phrase('word', 'more', language, count=len(incident.timeline) - MOST_MOMENTS)}"


def _causes(causes: tuple[Hypothesis, ...], style: Style, language: str) -> Iterator[str]:
    yield ""
    yield f"   {style.paint(phrase('word', 'causes' if causes else 'no-cause', language), 'bold' if causes else 'dim')}"
    leading = rivals(causes)
    for number, cause in enumerate(causes[:MOST_CAUSES], start=1):
        about = about_cause(cause.cause, language)
        line = f"{cause.priority}  {cause.cause} ({cause.score:.2f})" + (f": {about}" if about else "")
        begin = f"   {number}. "
        yield from (
            style.paint(t, "bold") if i == 0 else t
            for i, t in enumerate(wrap(line, style.width, begin, " " * len(begin)))
        )
        for evidence in cause.evidence:
            yield from wrap(say(evidence, language), style.width, f"        {style.bullet} ", "          ")
        if number <= max(2, len(leading)):
            yield from _advice(cause, style, language)
        if cause.test and len(leading) > 1 and cause in leading:
            tell = phrase("word", "test", language)
            yield from wrap(say(cause.test, language), style.width, f"        ? {tell}: ", "          ")


def _advice(cause: Hypothesis, style: Style, language: str) -> Iterator[str]:
    for advice in cause.advice:
        sentence, code = advice_parts(advice, language)
        yield from wrap(sentence, style.width, f"        {style.arrow} ", "          ")
        if code:
            yield from (style.paint(line, "cyan") for line in wrap(code, style.width, "            "))


def _footer(diagnosis: Diagnosis, style: Style, language: str) -> Iterator[str]:
    groups: list[tuple[str, list[str]]] = [
        (
            "not-checked",
            [
                phrase("say", "gap", language, what=say(what, language), why=say(why, language))
                for what, why in diagnosis.not_checked
            ],
        ),
        ("names", _guessed(diagnosis.info.names, diagnosis.signals)),
        ("not-named", _listed(diagnosis.not_named, language)),
        ("notes", [say(note, language) for note in diagnosis.info.notes]),
    ]
    grade = diagnosis.grade or "-"
    yield ""
    yield from wrap(
        f"{phrase('word', 'grade', language)} {grade} ({phrase('word', f'basis-{diagnosis.grade_basis}', language)})",
        style.width,
    )
    for word, texts in groups:
        if texts:
            label = f"{phrase('word', word, language)}: "
            joined = "; ".join(texts) if language == "en" else "；".join(texts)
            yield from (style.paint(line, "dim") for line in wrap(joined, style.width, label, "  "))


def _guessed(names: Mapping[str, str], signals: tuple[str, ...]) -> list[str]:
    return [clean(f"{signal} <- {own}") for signal, own in names.items() if own != signal and signal in signals][
        :MOST_NAMES
    ]


def _listed(names: tuple[str, ...], language: str) -> list[str]:
    shown = [clean(name) for name in names[:MOST_NAMES]]
    more = len(names) - len(shown)
    return [", ".join(shown) + (f", {phrase('word', 'more', language, count=more)}" if more else "")] if shown else []


def _scalar(column: Column) -> Column:
    """The column itself, or the largest of each row of a vector."""
    if column.values.ndim == 1:
        return column
    return Column(column.steps, np.max(column.values, axis=1), column.resolution)


def _sign(level: str, style: Style) -> str:
    return SIGNS[level] if style.braille else {"critical": "!!", "warning": "!", "calm": "OK"}.get(level, SIGNS[level])
