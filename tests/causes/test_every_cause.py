"""Contracts of every cause: found in its own log, silent without evidence, documented and speakable in both languages."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cause_cases import calm_loss, case, gradient, incident, names, warmup_cosine
from cause_examples import AMONG, TOP

import poise.causes
from poise.advice import DIALECTS, SNIPPETS, advise, dialect
from poise.causes import CAUSES, NAMES
from poise.causes.base import Cause
from poise.diagnose import diagnose
from poise.messages import render
from poise.messages.causes import ADVICE, EVIDENCE, TEST
from poise.messages.explain import CAUSES as PAGES
from poise.records import Event, Message
from poise.signals import KINDS

OPEN = "causes.evidence.open"


def cause_name(cause: Cause) -> str:
    return cause.__name__.replace("_", "-")


@pytest.mark.parametrize("name", TOP)
def test_a_cause_is_named_first_in_a_log_that_shows_it(name: str) -> None:
    found = diagnose(TOP[name]())

    assert names(found)[:1] == [name], [(h.cause, h.score) for h in found]


@pytest.mark.parametrize("name", AMONG)
def test_a_cause_with_rivals_is_among_the_first_three(name: str) -> None:
    found = diagnose(AMONG[name]())

    assert name.strip() in names(found)[:3], [(h.cause, h.score) for h in found]


@pytest.mark.parametrize("cause", CAUSES, ids=cause_name)
def test_every_cause_is_registered_documented_and_has_a_log(cause: Cause) -> None:
    name = cause_name(cause)

    assert name in NAMES
    assert inspect.getdoc(cause)
    assert name in TOP or name in AMONG or name == "library-fault"


def test_every_name_has_a_page() -> None:
    assert set(NAMES) == set(PAGES)
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("name", [*TOP, *AMONG])
def test_hypotheses_are_complete_and_speak_both_languages(name: str) -> None:
    made = TOP.get(name) or AMONG[name]

    for hypothesis in diagnose(made()):
        assert 0 < hypothesis.score <= 1
        assert hypothesis.cause in NAMES
        said = [*hypothesis.evidence, *hypothesis.advice, *([hypothesis.test] if hypothesis.test else [])]
        assert hypothesis.evidence and hypothesis.advice
        for language in ("en", "zh"):
            assert all(render(message, language).strip() for message in said)


@pytest.mark.parametrize("kind", KINDS)
def test_a_calm_log_gives_no_cause_more_than_an_open_score(kind: str) -> None:
    """No cause may be named on the strength of the symptom alone."""
    steps = 400
    columns = {"loss": calm_loss(steps), "grad_norm": gradient(steps), "learning_rate": np.full(steps, 2e-4)}

    for cause in CAUSES:
        found = cause(case(kind, 180, columns))
        if found is not None:
            assert found.score <= 0.35, (found.cause, found.score, [m.id for m in found.evidence])
            if [m.id for m in found.evidence] == [OPEN]:
                assert found.score <= 0.3


@pytest.mark.parametrize("cause", CAUSES, ids=cause_name)
def test_no_cause_stumbles_over_hardly_any_log(cause: Cause) -> None:
    broken = np.array([np.nan, np.inf, -np.inf, 0.0, -1.0])
    logs: list[dict[str, Any]] = [
        {"loss": np.empty(0)},
        {"loss": [1.0]},
        {"loss": [np.nan]},
        {"loss": [0.0, 0.0]},
        {"grad_norm": [0.0]},
    ]
    names_of_all = ("loss", "loss/a", "loss/b", "eval_loss", "grad_norm", "learning_rate", "loss_scale", "epoch", "kl", "entropy", "reward",
                    "update_norm", "aux_loss", "expert_load_max", "memory_allocated", "batch_tokens", "step_seconds")  # fmt: skip
    logs.append(dict.fromkeys(names_of_all, np.tile(broken, 20)))
    logs.append(dict.fromkeys(names_of_all, np.zeros(40)))

    for kind, columns in itertools.product(KINDS, logs):
        found = cause(case(kind, 3, columns, events=[Event("exception", None, {}), Event("text", None, {"text": ""})]))
        assert found is None or 0 < found.score <= 1


def test_every_sentence_that_causes_use_exists_and_none_is_unused() -> None:
    used: dict[str, set[str]] = {"fact": set(), "verdict": set(), "test": set()}
    for file in Path(poise.causes.__file__).parent.glob("*.py"):
        for call in ast.walk(ast.parse(file.read_text())):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
                strings = {
                    c.value
                    for a in call.args[1:]
                    for c in ast.walk(a)
                    if isinstance(c, ast.Constant) and isinstance(c.value, str)
                }
                if call.func.attr == "fact":
                    used["fact"].add(call.args[2].value)  # type: ignore[attr-defined]
                if call.func.attr == "verdict":
                    used["verdict"] |= strings
                    used["test"] |= {k.value.value for k in call.keywords if k.arg == "test"}  # type: ignore[attr-defined]

    assert used["fact"] | {"open"} == set(EVIDENCE)
    assert used["test"] == set(TEST)
    assert set(ADVICE) - used["verdict"] <= {"lower-learning-rate"}


@pytest.mark.parametrize("topic", SNIPPETS)
@pytest.mark.parametrize("trainer", [*sorted(set(DIALECTS.values())), None])
def test_every_snippet_can_be_filled_in(topic: str, trainer: str | None) -> None:
    message = advise(trainer, topic, value=1e-4, steps=100, first=7, last=9, factor=8, step=7)

    assert not re.search(r"[{](value|steps?|first|last|factor|code)\b", render(message))
    assert topic in ADVICE


@pytest.mark.parametrize(
    ("trainer", "code"),
    [
        ("hf", "TrainingArguments(learning_rate=0.0001)"),
        ("llama-factory", "TrainingArguments(learning_rate=0.0001)"),
        ("megatron", "--lr 0.0001"),
        ("deepspeed", '"optimizer": {"params": {"lr": 0.0001}}'),
        ("lightning", "lr=0.0001"),
        ("keras", "keras.optimizers.AdamW(learning_rate=0.0001)"),
        ("torchtitan", "[optimizer] lr = 0.0001"),
        ("yolo", "yolo train lr0=0.0001"),
        (None, "g['lr'] = 0.0001"),
        ("somebody-elses", "g['lr'] = 0.0001"),
    ],
)
def test_advice_is_code_for_the_trainer_that_wrote_the_log(trainer: str | None, code: str) -> None:
    assert code in render(advise(trainer, "lower-learning-rate", value=1e-4))


def test_a_topic_without_code_is_a_sentence_alone() -> None:
    assert render(advise("hf", "check-residuals")) == "Check that each block has its residual branch"


def test_an_unknown_trainer_speaks_plain_torch() -> None:
    assert dialect("coqui") == "torch"


def test_a_message_is_made_of_plain_data() -> None:
    for hypothesis in diagnose(TOP["learning-rate-too-high"]()):
        for message in (*hypothesis.evidence, *hypothesis.advice):
            assert isinstance(message, Message)
            assert all(isinstance(v, str | int | float | bool) for v in message.params.values()), message


def test_others_of_a_calm_schedule_do_not_make_a_cause() -> None:
    columns = {"loss": calm_loss(), "learning_rate": warmup_cosine()}

    found = diagnose(case("overfitting", 500, columns, others=[incident("loss-spike", 100, number=2)]))

    assert "learning-rate-too-high" not in names(found)
