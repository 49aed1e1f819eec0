"""A spike that takes a dozen rows to heal reaches the smoothed loss too; it is a spike all the same."""

from __future__ import annotations

import numpy as np
import pytest

from poise import presets
from poise.detectors.examples import falling_loss, frame, steps
from poise.records import Floats, Incident


def incidents_of(loss: Floats) -> list[Incident]:
    watch = presets.pretrain()
    watch.update(frame(steps(len(loss)), loss=loss))
    return list(watch.incidents)


@pytest.mark.parametrize("width", [3.0, 4.0, 5.0])
def test_a_broad_spike_that_heals_is_called_a_spike(width: float) -> None:
    loss = falling_loss(600, seed=2)
    loss[350:380] += 3 * np.exp(-np.arange(30) / width)
    (incident,) = incidents_of(loss)
    assert (incident.kind, incident.severity, incident.onset_step) == ("loss-spike", "info", 350)
    assert incident.recovered


def test_a_rise_that_stays_is_called_a_divergence_though_it_began_as_a_spike() -> None:
    loss = falling_loss(600, seed=2)
    loss[350:] += 4
    assert incidents_of(loss)[0].kind == "divergence"
