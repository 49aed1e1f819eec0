"""The `--json` object: strict JSON in English, whatever the log holds. Its shape is a contract; new keys may be added."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from poise.offline import Diagnosis
from poise.records import Hypothesis, Incident
from poise.report.wording import clean, say

SCHEMA = 1


def document(runs: Iterable[Mapping[str, Any]], errors: Iterable[Mapping[str, str]]) -> str:
    """The whole output: one object, two spaces deep."""
    return dumps({"schema": SCHEMA, "runs": list(runs), "errors": list(errors)}, indent=2)


def dumps(value: Any, indent: int | None = None) -> str:
    """Strict JSON text: NaN and Inf become the strings "nan", "inf" and "-inf"; broken Unicode is escaped."""
    return json.dumps(_strict(value), indent=indent, ensure_ascii=False, allow_nan=False)


def run_object(diagnosis: Diagnosis) -> dict[str, Any]:
    """One run as the contract has it."""
    return {
        "path": diagnosis.info.path,
        "format": diagnosis.info.format,
        "trainer": diagnosis.info.trainer,
        "steps": list(diagnosis.steps) if diagnosis.steps else None,
        "points": diagnosis.points,
        "signals": list(diagnosis.signals),
        "names": dict(diagnosis.info.names),
        "not_named": list(diagnosis.not_named),
        "notes": [say(note) for note in diagnosis.info.notes],
        "grade": diagnosis.grade,
        "grade_basis": diagnosis.grade_basis,
        "not_checked": [{"what": say(what), "why": say(why)} for what, why in diagnosis.not_checked],
        "incidents": [incident_object(incident) for incident in diagnosis.incidents],
    }


def incident_object(incident: Incident) -> dict[str, Any]:
    """One incident as the contract has it."""
    return {
        "id": incident.id,
        "kind": incident.kind,
        "severity": incident.severity,
        "onset_step": incident.onset_step,
        "detected_step": incident.detected_step,
        "end_step": incident.end_step,
        "state": incident.state,
        "recovered": incident.recovered,
        "first_signal": incident.first_signal,
        "branch": incident.branch,
        "timeline": [{"step": m.step, "signal": m.signal, "what": say(m.message)} for m in incident.timeline],
        "causes": [_cause_object(cause) for cause in incident.causes],
    }


def _cause_object(cause: Hypothesis) -> dict[str, Any]:
    return {
        "name": cause.cause,
        "score": round(float(cause.score), 3),
        "priority": cause.priority,
        "evidence": [say(e) for e in cause.evidence],
        "advice": [say(a) for a in cause.advice],
        "test": say(cause.test) if cause.test else None,
    }


def _strict(value: Any) -> Any:
    """The value in JSON's own types."""
    if isinstance(value, str):
        return clean(value)
    if value is None or isinstance(value, bool | np.bool_):
        return None if value is None else bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        number = float(value)
        return number if math.isfinite(number) else "nan" if math.isnan(number) else "inf" if number > 0 else "-inf"
    if isinstance(value, Mapping):
        return {clean(str(key)): _strict(item) for key, item in value.items()}
    if isinstance(value, Iterable):
        return [_strict(item) for item in value]
    return clean(str(value))
