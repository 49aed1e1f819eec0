"""Healthy losses of many shapes: no loss detector may say more than `info`. The count of rows stands in the assertion."""

from collections.abc import Iterator

import numpy as np
import pytest

from poise.detectors import BadStart, Divergence, LossSpike, NonFinite, NotLearning, Oscillation
from poise.records import Column, Floats, Frame, Incident
from poise.watch import Watch

SEEDS = range(6)
ROWS = (60, 300, 2000, 20_000)


def healthy(seed: int, rows: int) -> Iterator[tuple[str, Floats]]:
    rng = np.random.default_rng(seed)
    t = np.arange(rows)
    fall = rng.choice([1.2, 2.5]) + rng.choice([1, 8]) * (1 + 30 * t / rows) ** -1.0
    for noise in (0.005, 0.03, 0.15, 0.5):
        yield f"falling, noise {noise}", fall * np.exp(noise * rng.standard_normal(rows))
    for noise in (0.005, 0.03):
        e = rng.standard_normal(rows)
        yield f"heavy tails {noise}", fall * np.exp(0.6 * noise * rng.standard_t(3, rows))
        yield f"epoch stairs {noise}", (1.5 - 0.4 * (t // max(1, rows // 3))) * np.exp(noise * e)
        yield f"flat fine-tuning {noise}", 1.4 * np.exp(noise * e)
        yield f"memorising {noise}", (1.5 * np.exp(-8 * t / rows) + 0.002) * np.exp(10 * noise * e)
        yield f"additive noise {noise}", fall + 3 * noise * e


def incidents(loss: Floats) -> tuple[Incident, ...]:
    watch = Watch((NonFinite(), LossSpike(), Divergence(), Oscillation(), NotLearning(), BadStart()))
    watch.update(Frame({"loss": Column(np.arange(len(loss)) * 10, loss)}))
    return watch.incidents


def test_no_alarm_on_healthy_losses() -> None:
    streams = [(name, rows, loss) for seed in SEEDS for rows in ROWS for name, loss in healthy(seed, rows)]
    alarms = [
        (name, rows, i.kind, i.onset_step)
        for name, rows, loss in streams
        for i in incidents(loss)
        if i.severity != "info"
    ]
    assert sum(len(loss) for *_, loss in streams) > 1_800_000
    assert alarms == []


@pytest.mark.parametrize("factor", [1e-4, 1.0, 1e4])
def test_a_lasting_jump_is_critical_at_any_scale(factor: float) -> None:
    loss = next(iter(healthy(1, 2000)))[1] * factor
    loss[1200:] *= 2.5
    [incident] = [i for i in incidents(loss) if i.severity == "critical" and i.kind == "divergence"]
    assert abs(incident.onset_step - 12_000) <= 20


def test_a_slow_divergence_needs_no_nan() -> None:
    loss = np.concatenate([np.full(20, 1.9), 1.9 * 1.05 ** np.arange(1, 38)]) * np.exp(
        0.005 * np.random.default_rng(1).standard_normal(57)
    )
    watch = Watch((Divergence(),))
    watch.update(Frame({"loss": Column(np.arange(57), loss)}))
    [incident] = watch.incidents
    assert incident.severity == "critical"
    assert 20 <= incident.onset_step <= 23


def test_parts_are_not_judged_beside_their_total() -> None:
    loss = next(iter(healthy(1, 2000)))[1]
    part = np.where(np.arange(2000) < 1000, 0.1, 0.4)
    watch = Watch((LossSpike(), Divergence()))
    watch.update(Frame({"loss": Column(np.arange(2000), loss), "loss/box": Column(np.arange(2000), part)}))
    assert watch.incidents == ()
