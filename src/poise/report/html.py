"""One self-contained HTML page for one or several runs: no network, and nothing out of a log is ever markup."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import numpy as np

from poise.messages.report import PAGE
from poise.offline import Diagnosis
from poise.records import Column, Hypothesis, Incident
from poise.report.arrays import Arrays
from poise.report.as_json import dumps
from poise.report.thin import kept_rows, shares, smoothed
from poise.report.verdict import about, verdict
from poise.report.wording import about_cause, advice_parts, clean, phrase, say, what_happened
from poise.signals import SIGNALS, signal_of

POINTS = 120_000
"""Points drawn of one run: about 1.3 MB where no two series share their steps."""
MOST_LINES = 16  # lines drawn of a column with one value per rank
MOST_ONSETS = 8  # onsets around which every row is kept

_ORDER = {signal.name: i for i, signal in enumerate(SIGNALS)}


def page(runs: Sequence[Mapping[str, Any]], errors: Sequence[Mapping[str, str]], language: str = "en") -> str:
    """The page, from what `run_page` made of each run.

    Args:
        errors: `path` and `error` of each file that could not be read.
    """
    texts = {name: phrase("page", name, language) for name in PAGE if name != "thinned"}
    texts["thinned"] = PAGE["thinned"][1 if language == "zh" else 0]
    data = dumps({"texts": texts, "runs": runs, "errors": errors})
    parts = {
        "LANG": language,
        "TITLE": html.escape(phrase("page", "title", language)),
        "NO_SCRIPT": html.escape(phrase("page", "no-script", language)),
        "STYLE": _file("vendor/uPlot.min.css") + _file("page.css"),
        "PLOTTER": _file("vendor/uPlot.iife.min.js"),
        "SCRIPT": _file("plots.js") + _file("page.js"),
        "DATA": data.replace("<", "\\u003c"),
    }
    pieces = _file("page.html").split(
        "@@"
    )  # text, name, text, name, ..., text: what is filled in is never searched again
    return "".join(parts[piece] if i % 2 else piece for i, piece in enumerate(pieces))


def run_page(diagnosis: Diagnosis, language: str = "en", points: int = POINTS) -> dict[str, Any]:
    """What the page needs to know of one run.

    Args:
        points: how many points of all its signals may be kept.
    """
    head = verdict(diagnosis, language)
    arrays = Arrays()
    series = _series(diagnosis, arrays, points)
    facts = [diagnosis.info.format, phrase("say", "points", language, points=diagnosis.points)]
    if diagnosis.steps:
        facts.append(phrase("say", "steps-span", language, first=diagnosis.steps[0], last=diagnosis.steps[1]))
    return {
        "path": diagnosis.info.path,
        "facts": facts,
        "level": head.level,
        "sentence": head.sentence,
        "action": head.action,
        "quick": [[row.priority, row.symptom, row.causes, row.treatment] for row in head.quick],
        "grade": diagnosis.grade or "–",
        "basis": phrase("word", f"basis-{diagnosis.grade_basis}", language),
        "branches": [frame.branch for frame in diagnosis.frames],
        "series": series,
        "arrays": arrays.texts,
        "incidents": [_incident(incident, language) for incident in diagnosis.incidents],
        "events": _events(diagnosis),
        "not_checked": [[say(what, language), say(why, language)] for what, why in diagnosis.not_checked],
        "names": [[signal, own] for signal, own in diagnosis.info.names.items() if own != signal],
        "not_named": diagnosis.not_named,
        "notes": [say(note, language) for note in diagnosis.info.notes],
        "config": [
            [name, str(value)[:200]] for name, value in {**diagnosis.info.versions, **diagnosis.info.config}.items()
        ][:200],
    }


def _series(diagnosis: Diagnosis, arrays: Arrays, points: int) -> list[dict[str, Any]]:
    columns = [
        (name, frame.branch, column)
        for frame in diagnosis.frames
        for name, column in frame.columns.items()
        if _is_drawn(column)
    ]
    caps = shares([len(column) for _, _, column in columns], points)
    onsets = [(i.branch, i.onset_step) for i in diagnosis.incidents][:MOST_ONSETS]
    made: dict[str, dict[str, Any]] = {}
    for (name, branch, column), cap in zip(columns, caps, strict=True):
        signal = signal_of(name)
        entry = made.setdefault(
            name,
            {
                "name": name, "own": diagnosis.info.names.get(name, ""), "unit": signal.unit if signal.unit not in ("1", "?") else "",
                "meaning": "" if signal.name == "other" else signal.meaning, "log": signal.log, "main": name == diagnosis.main, "stretches": [],
            },
        )  # fmt: skip
        entry["stretches"].append(_stretch(branch, column, cap, [step for b, step in onsets if b == branch], arrays))
    return sorted(made.values(), key=lambda e: (not e["main"], _ORDER.get(e["name"].partition("/")[0], len(_ORDER))))


def _stretch(branch: int, column: Column, cap: int, onsets: list[int], arrays: Arrays) -> dict[str, Any]:
    near = [int(np.searchsorted(column.steps, step)) for step in onsets] if cap > 2000 else []
    rows = kept_rows(column.values, cap, near)
    values = column.values if column.values.ndim == 2 else column.values[:, None]
    bad = values[~np.isfinite(values)]
    smooth = smoothed(column.values, rows) if column.values.ndim == 1 else None
    return {
        "branch": branch,
        "rows": len(column),
        "kept": len(rows),
        "nan": int(np.isnan(bad).sum()),
        "inf": int(np.isinf(bad).sum()),
        "x": arrays.add_steps(column.steps[rows]),
        "smooth": smooth and [arrays.add_steps(smooth[0]), arrays.add_values(smooth[1])],
        "y": [arrays.add_values(values[rows, i]) for i in range(min(values.shape[1], MOST_LINES))],
    }


def _is_drawn(column: Column) -> bool:
    return len(column) > 0 and column.shape in ("scalar", "ranks")


def _incident(incident: Incident, language: str) -> dict[str, Any]:
    return {
        "id": incident.id,
        "kind": incident.kind,
        "what": what_happened(incident.kind, language),
        "about": about(incident, language),
        "severity": incident.severity,
        "severity_word": phrase("word", incident.severity, language),
        "state": phrase("word", incident.state, language),
        "onset": incident.onset_step,
        "end": incident.end_step,
        "branch": incident.branch,
        "timeline": [[m.step, m.signal, say(m.message, language)] for m in incident.timeline],
        "causes": [_cause(cause, language) for cause in incident.causes],
    }


def _cause(cause: Hypothesis, language: str) -> dict[str, Any]:
    return {
        "name": cause.cause,
        "about": about_cause(cause.cause, language),
        "score": round(float(cause.score), 2),
        "priority": cause.priority,
        "evidence": [say(e, language) for e in cause.evidence],
        "advice": [advice_parts(a, language) for a in cause.advice],
        "test": say(cause.test, language) if cause.test else "",
    }


def _events(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    kept = []
    for frame in diagnosis.frames:
        last = max((int(c.steps[-1]) for c in frame.columns.values() if len(c)), default=0)
        for event in frame.events:
            if event.kind in ("exception", "signal", "restart"):
                text = " ".join(str(event.data[key]) for key in ("type", "name", "text") if event.data.get(key))
                kept.append(
                    {
                        "kind": event.kind,
                        "step": last if event.step is None else event.step,
                        "branch": frame.branch,
                        "text": clean(text[:2000]),
                    }
                )
    return kept[:100]


def _file(name: str) -> str:
    return files("poise.report").joinpath(name).read_text(encoding="utf-8")
