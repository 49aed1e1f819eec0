from dataclasses import replace

import pytest

from poise.policy import Alarm, Observe, named
from poise.records import Incident, Severity, State


def incident(number: int, severity: Severity, state: State = "open") -> Incident:
    return Incident(number, "divergence", severity, 90, 100, None, state, "loss", (), ())


def names(policy: Alarm, what: Incident, step: int) -> list[str]:
    return [action.name for action in policy.decide(what, step)]


def test_observing_does_nothing() -> None:
    assert Observe().decide(incident(1, "critical"), 100) == ()


def test_a_warning_is_saved_and_a_critical_incident_is_paused_once() -> None:
    policy = Alarm()
    assert names(policy, incident(1, "info"), 99) == []
    assert names(policy, incident(1, "warning"), 100) == ["save"]
    assert names(policy, incident(1, "warning"), 101) == []
    assert names(policy, incident(1, "critical"), 110) == ["pause"]
    assert names(policy, incident(1, "critical"), 111) == []


def test_other_incidents_wait_for_the_cool_down() -> None:
    policy = Alarm(cooldown=50)
    assert names(policy, incident(1, "critical"), 100) == ["save", "pause"]
    assert names(policy, incident(2, "critical"), 120) == []
    assert names(policy, incident(3, "critical"), 150) == ["save", "pause"]


def test_the_budget_of_a_run_ends() -> None:
    policy = Alarm(cooldown=0, budget=2)
    acted = [names(policy, incident(i, "warning"), 100 * i) for i in range(1, 5)]
    assert acted == [["save"], ["save"], [], []]


def test_a_healed_incident_needs_nothing() -> None:
    assert names(Alarm(), replace(incident(1, "critical"), state="recovered"), 100) == []


def test_an_unknown_policy_lists_those_that_are() -> None:
    with pytest.raises(ValueError, match="observe, alarm"):
        named("rescu")
