import numpy as np
import pytest

from poise.detectors.overfitting import Overfitting
from poise.records import Column, Floats, Frame, Incident
from poise.watch import Watch


def incidents(train: Floats, evals: Floats) -> tuple[Incident, ...]:
    every = len(train) // len(evals)
    at = np.arange(1, len(evals) + 1, dtype=np.int64) * every - 1
    watch = Watch((Overfitting(),))
    watch.update(Frame({"loss": Column(np.arange(len(train)), train), "eval_loss": Column(at, evals)}))
    return watch.incidents


@pytest.mark.parametrize("evals", [5, 40, 4000])
def test_a_validation_loss_that_turned_is_found_with_few_and_many_evaluations(evals: int) -> None:
    t = np.linspace(0, 1, evals)
    validation = np.where(t < 0.4, 3 - 2 * t / 0.4, 1 + (t - 0.4)) * np.exp(
        0.01 * np.random.default_rng(1).standard_normal(evals)
    )
    [incident] = incidents(np.linspace(3, 0.1, evals * 4), validation)
    assert incident.severity == "warning"
    assert abs(incident.onset_step / (evals * 4) - 0.4) < 2 / evals + 0.05


def test_both_losses_rising_is_not_overfitting() -> None:
    assert incidents(np.linspace(1, 3, 400), np.linspace(1.1, 3.1, 40)) == ()


def test_a_slight_rise_is_only_worth_knowing() -> None:
    [incident] = incidents(np.linspace(3, 0.5, 400), np.r_[np.linspace(3, 1, 20), np.linspace(1, 1.06, 20)])
    assert incident.severity == "info"


def test_a_validation_loss_that_comes_back_has_recovered() -> None:
    [incident] = incidents(
        np.linspace(3, 0.5, 600), np.r_[np.linspace(3, 1, 20), np.linspace(1, 1.3, 20), np.linspace(1.3, 0.8, 20)]
    )
    assert (incident.state, incident.severity) == ("recovered", "info")


def test_healthy_validation_of_any_noise_is_quiet() -> None:
    said = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        evals, noise = int(rng.integers(3, 200)), float(rng.choice([0.005, 0.03]))
        noise = 0.2 if evals > 60 and seed % 2 else noise
        train = 2 + 6 * (1 + 30 * np.linspace(0, 1, evals * 8)) ** -1.0
        said += [
            (i.severity, evals, noise)
            for i in incidents(train, train[7::8] * 1.05 * np.exp(noise * rng.standard_normal(evals)))
        ]
    assert [s for s in said if s[0] != "info"] == []
