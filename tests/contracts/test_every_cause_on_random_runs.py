"""What every cause in `causes.CAUSES` owes on runs that nobody thought of: no error, no chance, and honest numbers."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import example, given, settings
from random_streams import nan_for_good, rise, spikes, stream, streams, zeros

from poise.causes import CAUSES, NAMES
from poise.causes.base import Case, Cause
from poise.diagnose import diagnose
from poise.messages import render
from poise.presets import pretrain
from poise.records import Frame, Hypothesis, RunInfo
from poise.stats.state import dump


def cases(frame: Frame) -> list[Case]:
    """The case of each incident that the watch finds."""
    watch = pretrain()
    watch.update(frame)
    info = RunInfo("run.csv", "csv", "hf", config={"max_steps": 1000, "learning_rate": 3e-4, "fp16": True})
    incidents = watch.incidents
    return [Case(i, info, frame.columns, frame.events, tuple(o for o in incidents if o is not i)) for i in incidents]


def ask(cause: Cause, case: Case) -> Hypothesis | None:
    """One cause's answer; arithmetic on NaN is allowed, as in `diagnose`."""
    with np.errstate(all="ignore"):
        return cause(case)


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.__name__)
def test_a_cause_is_documented_and_named_in_the_vocabulary(cause: Cause) -> None:
    assert cause.__doc__
    assert cause.__name__.replace("_", "-") in NAMES


@settings(max_examples=60)
@given(frame=streams())
@example(frame=stream(0, 300, ("loss", "grad_norm", "learning_rate"), (("loss", spikes), ("loss", nan_for_good))))
@example(frame=stream(1, 300, ("loss", "grad_norm", "loss_scale"), (("loss", rise), ("grad_norm", zeros))))
def test_every_cause_answers_every_incident_twice_alike_and_with_a_score(frame: Frame) -> None:
    for case in cases(frame):
        for cause in CAUSES:
            found, again = ask(cause, case), ask(cause, case)
            assert json.dumps(dump(found)) == json.dumps(dump(again))
            if found is None:
                continue
            assert found.cause == cause.__name__.replace("_", "-")
            assert 0 <= found.score <= 1
            assert found.priority in ("P0", "P1", "P2")
            for message in (*found.evidence, *found.advice, *([found.test] if found.test else [])):
                assert render(message) and render(message, "zh")


@settings(max_examples=30)
@given(frame=streams())
def test_hypotheses_come_best_first_and_each_with_something_to_do(frame: Frame) -> None:
    for case in cases(frame):
        found = diagnose(case)
        assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
        assert len({h.cause for h in found}) == len(found)
        assert all(h.evidence and h.advice for h in found)
