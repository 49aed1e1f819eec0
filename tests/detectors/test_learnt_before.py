"""An untrained level tells more when one knows how the loss came there."""

from __future__ import annotations

import numpy as np

from poise import presets
from poise.detectors.examples import falling_loss, frame, steps
from poise.records import Floats, Incident


def incidents_of(loss: Floats) -> dict[str, Incident]:
    watch = presets.pretrain()
    watch.update(frame(steps(len(loss), 10), loss=loss))
    return {incident.kind: incident for incident in watch.incidents}


def test_a_loss_that_falls_to_the_entropy_of_words_and_stays_is_a_plateau_from_there_on() -> None:
    loss = 7.4 + 3.4 * np.exp(-np.arange(600) / 25) + 0.04 * np.random.default_rng(9).standard_normal(600)
    found = incidents_of(loss)
    assert "not-learning" not in found
    assert 400 <= found["plateau"].onset_step <= 1200


def test_a_loss_that_never_fell_has_not_learnt_since_the_start() -> None:
    loss = 7.4 + 0.04 * np.random.default_rng(9).standard_normal(600)
    assert incidents_of(loss)["not-learning"].onset_step == 0


def test_a_loss_that_was_learnt_and_lost_again_is_not_said_to_have_learnt_nothing() -> None:
    loss = falling_loss(600, 10, start=10.8, end=3.5)
    loss[250:] += 0.02 * np.arange(350)
    found = incidents_of(loss)
    assert "divergence" in found
    assert "not-learning" not in found
