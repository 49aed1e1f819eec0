"""The Ledger folds findings into incidents: what a person would call one event."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from statistics import median

from poise.records import SEVERITIES, Finding, Incident, Message, Moment, State, worst

RANK = (
    "non-finite", "training-collapse", "divergence", "policy-collapse", "loss-scale-collapse", "bad-start", "dead-units", "not-learning",
    "suspicious-loss", "mode-collapse", "overfitting", "plateau", "oscillation", "loss-spike", "gradient-explosion",
)  # fmt: skip
"""Which symptom names an incident that has several: of the worst severity, the one that says most about the outcome."""
MAX_MOMENTS = 32
REPEATS = 4  # this many healed incidents of one kind on one signal are told as one
PERIOD_SPREAD = 0.1  # relative spread of the gaps below which repeats are periodic


@dataclass(slots=True)
class Ledger:
    """Keeps the incidents of a run. Acute findings close in time are one incident, a chronic condition is its own.

    Incidents never roll back. Each one's findings are kept by identity (kind, signal, onset); a later finding with the same
    identity replaces the earlier one.
    """

    incidents: list[Incident] = field(default_factory=list)
    last_id: int = 0

    def update(self, findings: Iterable[Finding], branch: int = 0) -> list[Incident]:
        """Fold findings, in order of detection; return the incidents that are new or changed."""
        touched: dict[int, None] = {}
        for finding in findings:
            index = self._home(finding, branch)
            if index is None:
                self.last_id += 1
                self.incidents.append(_opened(self.last_id, finding, branch))
                index = len(self.incidents) - 1
            else:
                self.incidents[index] = _joined(self.incidents[index], finding)
            touched[self.incidents[index].id] = None
            touched[self._fold_repeats(index)] = None
        return [incident for incident in self.incidents if incident.id in touched]

    def _home(self, finding: Finding, branch: int) -> int | None:
        """The incident that a finding belongs to: the one that knows it, else an acute one close in time."""
        for index in range(len(self.incidents) - 1, -1, -1):
            incident = self.incidents[index]
            if incident.branch == branch and any(_same(f, finding) for f in incident.findings):
                return index
        for index in range(len(self.incidents) - 1, -1, -1):
            if self.incidents[index].branch == branch and _close(self.incidents[index], finding):
                return index
        return None

    def _fold_repeats(self, index: int) -> int:
        """Tell many healed incidents of one kind as one, with their period if they have one; return its id."""
        this = self.incidents[index]
        alike = [
            i
            for i in self.incidents
            if i.branch == this.branch and (i.kind, i.first_signal) == (this.kind, this.first_signal) and i.recovered
        ]
        onsets = [f.onset for i in alike for f in i.findings if f.kind == i.kind and f.signal == i.first_signal]
        if this.state != "recovered" or len(onsets) < REPEATS or len(alike) < 2:
            return this.id
        first, rest = alike[0], alike[1:]
        gone = {i.id for i in rest}
        self.incidents = [i for i in self.incidents if i.id not in gone]
        index = self.incidents.index(first)
        self.incidents[index] = _merged(first, rest, sorted(set(onsets)))
        return first.id


def _opened(number: int, finding: Finding, branch: int) -> Incident:
    moment = Moment(finding.onset, finding.signal, finding.message)
    end = None if finding.state == "open" else finding.step
    return Incident(
        number,
        finding.kind,
        finding.severity,
        finding.onset,
        finding.step,
        end,
        finding.state,
        finding.signal,
        (moment,),
        (finding,),
        branch,
    )


def _joined(incident: Incident, finding: Finding) -> Incident:
    others = tuple(f for f in incident.findings if not _same(f, finding))
    findings = (*others, finding)
    leader = _leader(findings)
    moments = {
        (f.onset, f.signal, f.kind): Moment(f.onset, f.signal, f.message)
        for f in sorted(findings, key=lambda f: (f.onset, f.step))
    }
    timeline = tuple(moments.values())[:MAX_MOMENTS]
    state = _state(findings)
    return replace(
        incident, kind=leader.kind, severity=worst(*(f.severity for f in findings)), onset_step=min(f.onset for f in findings),
        state=state, end_step=None if state == "open" else max(f.step for f in findings), first_signal=timeline[0].signal,
        timeline=timeline, findings=findings,
    )  # fmt: skip


def _leader(findings: tuple[Finding, ...]) -> Finding:
    spiked = any(f.kind == "loss-spike" for f in findings)

    def weight(f: Finding) -> tuple[int, int, bool, int]:
        told = "loss-spike" if f.kind == "divergence" and _came_back(f) and spiked else f.kind
        rank = RANK.index(told) if told in RANK else len(RANK)
        return SEVERITIES.index(f.severity), -rank, f.kind == told, -f.onset

    return max(findings, key=weight)


def _came_back(finding: Finding) -> bool:
    """Whether nothing was lost: a rise that healed soon is a broad spike, for a divergence does not come back."""
    return finding.state == "recovered" and finding.severity == "info"


def _state(findings: tuple[Finding, ...]) -> State:
    states = {f.state for f in findings}
    return "open" if "open" in states else "ended" if "ended" in states else "recovered"


def _same(a: Finding, b: Finding) -> bool:
    return (a.kind, a.signal, a.onset) == (b.kind, b.signal, b.onset)


def _close(incident: Incident, finding: Finding) -> bool:
    """Whether an acute finding began while this acute incident was young, or while it still lasts on a related signal."""
    if finding.chronic or any(f.chronic for f in incident.findings):
        return False
    begun = [f.onset for f in incident.findings]
    reach = max(finding.reach, *(f.reach for f in incident.findings))
    return min(begun) - reach <= finding.onset <= max(begun) + reach


def _merged(first: Incident, rest: list[Incident], onsets: list[int]) -> Incident:
    gaps = [b - a for a, b in zip(onsets, onsets[1:], strict=False)]
    period = round(median(gaps))
    periodic = len(onsets) > REPEATS and all(abs(gap - period) <= PERIOD_SPREAD * period + 1 for gap in gaps)
    what = Message(
        "detectors.periodic" if periodic else "detectors.repeated",
        {"count": len(onsets), "period": period, "last": onsets[-1]},
    )
    opening = replace(
        first.findings[0],
        facts={
            **first.findings[0].facts,
            "count": len(onsets),
            "onsets": onsets[-50:],
            "period": period if periodic else 0,
        },
    )
    moments = (first.timeline[0], Moment(onsets[-1], first.first_signal, what))
    severity = "warning" if periodic else first.severity
    findings = (opening, *(f for i in (first, *rest) for f in i.findings if f != first.findings[0]))
    return replace(
        first,
        severity=severity,
        end_step=max(i.end_step or 0 for i in (first, *rest)),
        timeline=moments,
        findings=findings,
    )
