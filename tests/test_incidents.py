from dataclasses import replace

from poise.incidents import Ledger
from poise.records import Finding, Message, Severity, State


def finding(
    kind: str, onset: int, step: int | None = None, severity: Severity = "warning", signal: str = "loss",
    state: State = "open", chronic: bool = False, reach: int = 16,
) -> Finding:  # fmt: skip
    message = Message("detectors.repeated", {"count": 1, "last": onset})
    return Finding(kind, signal, onset, onset if step is None else step, severity, message, state, reach, chronic)


def spike(onset: int) -> list[Finding]:
    opened = finding("loss-spike", onset, severity="info")
    return [opened, replace(opened, state="recovered", step=onset + 5)]


def test_symptoms_close_in_time_are_one_incident_led_by_who_moved_first() -> None:
    ledger = Ledger()
    ledger.update(
        [
            finding("gradient-explosion", 100, signal="grad_norm"),
            finding("loss-spike", 103),
            finding("divergence", 104, 110, "critical"),
        ]
    )
    [incident] = ledger.incidents
    assert (incident.kind, incident.severity, incident.first_signal) == ("divergence", "critical", "grad_norm")
    assert (incident.onset_step, incident.detected_step) == (100, 100)
    assert [moment.step for moment in incident.timeline] == [100, 103, 104]


def test_symptoms_far_apart_are_two_incidents() -> None:
    ledger = Ledger()
    ledger.update([finding("loss-spike", 100), finding("loss-spike", 500)])
    assert [i.onset_step for i in ledger.incidents] == [100, 500]


def test_a_chronic_condition_is_its_own_incident() -> None:
    ledger = Ledger()
    ledger.update([finding("loss-spike", 100), finding("overfitting", 101, chronic=True)])
    assert [i.kind for i in ledger.incidents] == ["loss-spike", "overfitting"]


def test_an_incident_recovers_when_all_its_symptoms_did() -> None:
    ledger = Ledger()
    loss, norm = finding("loss-spike", 100), finding("gradient-explosion", 101, signal="grad_norm")
    ledger.update([loss, norm, replace(norm, state="recovered", step=105)])
    assert ledger.incidents[0].state == "open"
    ledger.update([replace(loss, state="recovered", step=120, severity="info")])
    assert (ledger.incidents[0].state, ledger.incidents[0].end_step) == ("recovered", 120)


def test_a_healed_incident_is_as_serious_as_what_its_symptoms_say_in_the_end() -> None:
    ledger = Ledger()
    opened = finding("loss-spike", 100, severity="warning")
    ledger.update([opened, replace(opened, severity="info", state="recovered", step=110)])
    assert ledger.incidents[0].severity == "info"


def test_spikes_at_a_fixed_distance_are_told_once_with_their_period() -> None:
    ledger = Ledger()
    for onset in range(250, 2001, 250):
        ledger.update(spike(onset))
    [incident] = ledger.incidents
    facts = incident.findings[0].facts
    assert (facts["count"], facts["period"], incident.severity) == (8, 250, "warning")
    assert incident.onset_step == 250


def test_irregular_healed_spikes_are_told_once_as_info() -> None:
    ledger = Ledger()
    for onset in (100, 190, 700, 930, 2400):
        ledger.update(spike(onset))
    [incident] = ledger.incidents
    assert (incident.severity, incident.findings[0].facts["count"], incident.findings[0].facts["period"]) == (
        "info",
        5,
        0,
    )


def test_a_spike_that_stays_is_not_folded_into_healed_ones() -> None:
    ledger = Ledger()
    for onset in (100, 300, 700, 900, 1500):
        ledger.update(spike(onset))
    ledger.update([finding("loss-spike", 2600)])
    assert [(i.onset_step, i.severity) for i in ledger.incidents] == [(100, "info"), (2600, "warning")]


def test_branches_do_not_share_incidents() -> None:
    ledger = Ledger()
    ledger.update([finding("loss-spike", 100)], branch=0)
    ledger.update([finding("loss-spike", 102)], branch=1)
    assert [i.branch for i in ledger.incidents] == [0, 1]
