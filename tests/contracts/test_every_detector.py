"""What every detector in `detectors.ALL` owes, for free: being in the tuple is enough to be tested here."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from random_streams import cut_at, cuts, nan_for_good, not_a_number, spikes, stream, streams

from poise.detectors import ALL
from poise.detectors.base import Detector, Example
from poise.messages import render
from poise.presets import pretrain
from poise.records import Finding, Frame
from poise.signals import KINDS
from poise.stats.baseline import Baseline
from poise.stats.state import dump, load
from poise.watch import Watch

EVERY = pytest.mark.parametrize("make", ALL, ids=lambda make: make.__name__)
FIRING = [pytest.param(make, e, id=f"{make.__name__} fires on {e.title}") for make in ALL for e in make.fires_on]
QUIET = [pytest.param(make, e, id=f"{make.__name__} is quiet on {e.title}") for make in ALL for e in make.quiet_on]
FOREIGN = [
    pytest.param(make, e, id=f"{make.__name__} minds {other.__name__} on {e.title}")
    for make in ALL
    for other in ALL
    for e in other.quiet_on
    if other is not make
]

FIRES_BY_DESIGN: dict[tuple[str, str], str] = {
    (
        "LossSpike",
        "a learning-rate restart that lifts the loss by 15 %",
    ): "it takes more than 128 rows to come back, which has hurt the run",
}
"""(detector, title of another's quiet example) -> why its alarm there is right."""


def findings_of(watch: Watch, frames: Iterable[Frame]) -> list[Finding]:
    """All findings, in the order of the steps at which they were known."""
    found = [record for frame in frames for record in watch.update(frame) if isinstance(record, Finding)]
    return sorted(found, key=lambda f: (f.step, f.kind, f.signal, f.onset, f.state))


def alone(make: type[Detector], frames: Iterable[Frame]) -> list[Finding]:
    """What one detector finds by itself."""
    return findings_of(Watch((make(),)), frames)


def essence(finding: Finding) -> tuple[Any, ...]:
    """What must not depend on the cutting at all; sums may differ in their last digits."""
    return (
        finding.kind,
        finding.signal,
        finding.onset,
        finding.step,
        finding.severity,
        finding.state,
        finding.chronic,
        finding.message.id,
    )


def numbers(finding: Finding) -> list[float]:
    """The numbers of a finding."""
    return [finding.value, finding.expected, finding.strength]


def assert_same(found: list[Finding], whole: list[Finding]) -> None:
    """Compare findings of two cuttings."""
    assert [essence(f) for f in found] == [essence(f) for f in whole]
    for f, g in zip(found, whole, strict=True):
        assert numbers(f) == pytest.approx(numbers(g), rel=1e-6, nan_ok=True)


@EVERY
def test_a_detector_says_what_it_sees_and_what_it_misses(make: type[Detector]) -> None:
    text = inspect.getdoc(make) or ""

    assert "Blind to:" in text, f"the docstring of {make.__name__} does not say `Blind to:`"
    assert "Delay:" in text, f"the docstring of {make.__name__} does not say `Delay:`"
    assert make.kinds and set(make.kinds) <= set(KINDS)
    assert set(make.kinds) == {e.kind for e in make.fires_on}, "each kind has an example, and no example another kind"
    assert make.quiet_on, "a detector without a quiet example may fire on everything"


def test_no_two_examples_of_one_detector_share_a_title() -> None:
    for make in ALL:
        titles = [e.title for e in (*make.fires_on, *make.quiet_on)]
        assert len(set(titles)) == len(titles), make.__name__


@pytest.mark.parametrize(("make", "shown"), FIRING)
def test_a_detector_fires_on_its_examples(make: type[Detector], shown: Example) -> None:
    found = alone(make, [shown.make()])

    assert {f.kind for f in found} == {shown.kind}
    assert shown.onset is None or abs(found[0].onset - shown.onset) <= shown.tolerance, f"onset {found[0].onset}"
    for finding in found:
        assert finding.onset <= finding.step
        assert finding.kind in make.kinds
        assert render(finding.message) and render(finding.message, "zh")


@pytest.mark.parametrize(("make", "shown"), QUIET)
def test_a_detector_is_quiet_on_its_examples(make: type[Detector], shown: Example) -> None:
    assert alone(make, [shown.make()]) == []


@pytest.mark.parametrize(("make", "shown"), FOREIGN)
def test_what_is_healthy_for_one_detector_alarms_no_other(make: type[Detector], shown: Example) -> None:
    watch = Watch((make(),))
    watch.update(shown.make())
    alarms = [i for i in watch.incidents if i.severity != "info"]

    assert bool(alarms) == ((make.__name__, shown.title) in FIRES_BY_DESIGN), alarms


@pytest.mark.parametrize(("make", "shown"), FIRING + QUIET)
@pytest.mark.parametrize("rows", [1, 7, 64])
def test_cutting_an_example_changes_nothing(make: type[Detector], shown: Example, rows: int) -> None:
    frame = shown.make()

    assert_same(alone(make, frame.cut(rows)), alone(make, [frame]))


@EVERY
@settings(max_examples=40)
@given(frame=streams(), shares=cuts())
@example(
    frame=stream(0, 300, ("loss", "grad_norm"), (("loss", spikes), ("loss", nan_for_good))),
    shares=(0.2, 0.5, 0.500001, 0.9),
)
@example(frame=stream(1, 1, ("loss",), (("loss", not_a_number),)), shares=(0.0, 1.0))
def test_cutting_a_stream_changes_nothing(make: type[Detector], frame: Frame, shares: tuple[float, ...]) -> None:
    whole = alone(make, [frame])

    assert_same(alone(make, cut_at(frame, shares)), whole)
    assert_same(alone(make, [frame]), whole)


@EVERY
@settings(max_examples=25)
@given(frame=streams(), share=st.floats(0, 1))
@example(frame=stream(0, 300, ("loss", "grad_norm"), (("loss", spikes), ("loss", nan_for_good))), share=0.5)
def test_a_detector_goes_on_from_its_state_in_json(make: type[Detector], frame: Frame, share: float) -> None:
    first, second = cut_at(frame, (share,))
    expected = alone(make, [first, second])
    watch = Watch((make(),))
    before = findings_of(watch, [first])

    text = json.dumps(dump(watch.detectors[0]), allow_nan=False)
    restored = load(make, json.loads(text))
    watch.detectors = (restored,)
    watch.baselines = {
        name: load(Baseline, json.loads(json.dumps(dump(b), allow_nan=False))) for name, b in watch.baselines.items()
    }
    after = findings_of(watch, [second])

    assert json.dumps(dump(load(make, json.loads(text)))) == text
    assert_same(before + after, expected)


@EVERY
@settings(max_examples=25)
@given(frame=streams())
def test_a_finding_never_comes_before_what_it_rests_on(make: type[Detector], frame: Frame) -> None:
    watch = Watch((make(),))
    seen = 0
    for piece in frame.cut(16):
        last = max((int(c.steps[-1]) for c in piece.columns.values() if len(c)), default=seen)
        for finding in findings_of(watch, [piece]):
            assert finding.onset <= finding.step <= max(seen, last), (
                f"known at {finding.step}, only {last} steps were seen"
            )
            assert finding.signal in frame.columns or finding.kind in ("crash", "configuration", "loss-scale-collapse")
            assert render(finding.message) and render(finding.message, "zh")
            json.dumps(dump(dict(finding.facts)), allow_nan=False)
        seen = max(seen, last)


@settings(max_examples=30)
@given(frame=streams(), shares=cuts())
def test_all_detectors_together_give_the_same_incidents_however_cut(frame: Frame, shares: tuple[float, ...]) -> None:
    whole, pieces = pretrain(), pretrain()
    whole.update(frame)
    for piece in cut_at(frame, shares):
        pieces.update(piece)

    told = [
        [(i.kind, i.severity, i.onset_step, i.detected_step, i.end_step, i.state, i.first_signal) for i in w.incidents]
        for w in (whole, pieces)
    ]
    assert told[0] == told[1]
    assert whole.grade() == pieces.grade()


def test_the_random_streams_are_ugly_enough() -> None:
    """The streams above would prove nothing if they were all calm: most must make the detectors speak."""
    spoken = 0
    for seed in range(20):
        frame = stream(seed, 300, ("loss", "grad_norm"), (("loss", (spikes, nan_for_good, not_a_number)[seed % 3]),))
        spoken += bool(findings_of(pretrain(), [frame]))
    assert spoken >= 15
    assert not np.isfinite(stream(0, 50, ("loss",), (("loss", nan_for_good),)).columns["loss"].values[-1])
