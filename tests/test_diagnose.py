"""The ranking: the quick table's rows, early against late, and rivals that one log cannot tell apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from cause_cases import calm_loss, case, column, gradient, incident, names, warmup_cosine, with_spike

from poise.causes.base import Case
from poise.causes.likely import LIKELY, OPEN
from poise.diagnose import case_of, diagnose
from poise.explain import ROWS, row_of
from poise.messages import render
from poise.records import Event, Frame, RunInfo

STEPS = 1000


def loss_turns_nan() -> Case:
    loss, norm, scale = calm_loss(), gradient(), np.full(STEPS, 65536.0)
    norm[600], norm[601:], loss[601:] = np.inf, np.nan, np.nan
    scale[600:] = 65536 * 0.5 ** np.minimum(np.arange(STEPS - 600), 20)
    return case(
        "non-finite", 600, {"loss": loss, "grad_norm": norm, "loss_scale": scale, "learning_rate": warmup_cosine()}
    )


def loss_rises_first() -> Case:
    loss, norm = calm_loss(), gradient()
    loss[8:60] += np.concatenate([np.linspace(0, 3, 26), np.linspace(3, 0, 26)])
    norm[8:34] *= 8
    return case("divergence", 8, {"loss": loss, "grad_norm": norm, "learning_rate": warmup_cosine(peak=2e-3, warmup=5)})


def late_oscillation() -> Case:
    loss = calm_loss()
    loss[880:] *= 1 + 0.25 * np.sin(np.arange(120))
    rate = np.where(np.arange(STEPS) < 870, 3e-4, 3e-5)
    return case("oscillation", 880, {"loss": loss, "grad_norm": gradient(), "learning_rate": rate})


def shallow_gradient() -> Case:
    layers = {f"grad_norm/layers.{i}.mlp": gradient(level=10.0 ** (i - 7), seed=i) for i in range(8)}
    return case("gradient-vanishing", 0, {"loss": calm_loss(), "grad_norm": gradient(), **layers})


def repetitive_text() -> Case:
    events = [Event("text", s, {"text": "thank you for your order " * 20}) for s in (500, 600, 700)]
    return case("mode-collapse", 500, {"loss": calm_loss(), "grad_norm": gradient()}, events=events)


def poor_text() -> Case:
    events = [Event("text", s, {"text": "thank you for your order " * 20}) for s in (500, 600, 700)]
    held = column(calm_loss(20, 4, 2), np.arange(0, STEPS, 50))
    return case("mode-collapse", 500, {"loss": calm_loss(), "eval_loss": held}, events=events)


def memory_swings() -> Case:
    random = np.random.default_rng(0)
    used = 20e9 * (1 + 0.4 * random.random(STEPS))
    columns = {"loss": calm_loss(), "memory_allocated": used, "memory_reserved": np.full(STEPS, 60e9)}
    return case("memory-swing", 300, {**columns, "tokens_per_second": 1e4 * (1 + 0.01 * random.random(STEPS))})


TABLE: dict[str, tuple[Callable[[], Case], set[str], set[str]]] = {
    "non-finite": (loss_turns_nan, {"numeric-overflow", "loss-scale-exhausted"}, {"loss-scale-window", "clip-gradients"}),
    "slow-start": (loss_rises_first, {"warmup-too-short", "learning-rate-too-high"}, {"longer-warmup", "lower-learning-rate"}),
    "late-oscillation": (late_oscillation, {"bad-data-burst", "decay-too-fast", "batch-composition"}, {"inspect-batches", "slower-decay", "clean-data"}),
    "shallow-gradient": (shallow_gradient, {"initialization", "residual-missing", "normalization"}, {"check-residuals", "check-norms", "initialise"}),
    "repetitive-text": (repetitive_text, {"template-data", "decoding"}, {"temperature-schedule", "label-smoothing", "watch-attention-entropy"}),
    "poor-text": (poor_text, {"template-data"}, {"resample-domains", "remove-duplicates"}),
    "memory-swing": (memory_swings, {"memory-fragmentation", "ragged-shapes"}, {"fix-shapes"}),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_each_row_of_the_quick_table_is_diagnosed_with_its_causes_treatment_and_priority(name: str) -> None:
    make, causes, topics = TABLE[name]
    given = make()

    found = diagnose(given)
    row = row_of(given.incident.kind, given.progress, text_is_poor=name == "poor-text")

    assert row is not None and row.name == name
    assert causes <= set(names(found)[:4]), [(h.cause, h.score) for h in found]
    said = {m.id.rpartition(".")[2] for h in found for m in h.advice}
    assert topics <= said
    assert min(h.priority for h in found[:2]) == row.priority


def test_the_quick_table_has_the_p0_rows_first() -> None:
    assert [row.priority for row in ROWS] == sorted(row.priority for row in ROWS)
    assert [row.name for row in ROWS] == list(TABLE)


def spike(at: int, **more: np.ndarray) -> Case:
    return case("loss-spike", at, {"loss": with_spike(calm_loss(), at), **more}, end=at + 6)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"learning_rate": warmup_cosine(warmup=12)},
        {"learning_rate": np.full(STEPS, 3e-4)},
        {"learning_rate": warmup_cosine(warmup=8), "grad_norm": gradient()},
    ],
    ids=["loss alone", "warmup", "constant rate", "with gradient"],
)
def test_the_same_spike_early_ranks_the_step_size_and_late_ranks_the_data(more: dict[str, np.ndarray]) -> None:
    early, late = diagnose(spike(10, **more)), diagnose(spike(900, **more))

    assert names(early)[0] in ("warmup-too-short", "learning-rate-too-high")
    assert names(late)[0] == "bad-data-burst"
    assert set(names(early)[:2]) <= {"warmup-too-short", "learning-rate-too-high"}


def test_a_late_divergence_at_a_high_constant_rate_does_not_blame_the_data_alone() -> None:
    loss = calm_loss()
    loss[700:] = 9.0
    norm = gradient()
    norm[700:] *= 50

    found = diagnose(case("divergence", 700, {"loss": loss, "grad_norm": norm, "learning_rate": np.full(STEPS, 2e-2)}))

    assert names(found)[0] == "learning-rate-too-high"


def test_no_rate_is_too_high_before_the_first_step() -> None:
    loss = np.array([1.0778, 0.0, 0.0, 0.0, 0.0, 0.0])
    rate = np.array([0.0, 1.31e-7, 2.1e-7, 3e-7, 3.9e-7, 4.7e-7])

    found = diagnose(case("non-finite", 0, {"loss": loss, "grad_norm": np.full(6, np.nan), "learning_rate": rate}))

    assert names(found)[0] == "non-finite-gradient"
    assert "masked-loss" in names(found)
    assert "learning-rate-too-high" not in names(found)


def test_a_rate_far_too_high_is_blamed_before_a_warmup_that_is_not_short() -> None:
    loss, norm = calm_loss(200, 3.5, 2.0), gradient(200)
    loss[62:] = 40
    norm[62:] = 300

    found = diagnose(
        case("divergence", 62, {"loss": loss, "grad_norm": norm, "learning_rate": warmup_cosine(200, 0.3, 60)})
    )

    assert names(found)[0] == "learning-rate-too-high"
    assert "warmup-too-short" not in names(found)


def test_rivals_that_one_log_cannot_tell_apart_stand_side_by_side_with_the_experiment() -> None:
    found = {h.cause: h for h in diagnose(shallow_gradient())}

    rivals = [found[name] for name in ("initialization", "residual-missing", "normalization")]
    assert max(h.score for h in rivals) - min(h.score for h in rivals) <= 0.1
    assert all(h.test is not None and render(h.test) for h in rivals)


def test_evidence_cites_the_numbers_of_this_log() -> None:
    loss, norm = calm_loss(), gradient()
    loss[40:], norm[41] = 9.0, 672.2
    rate = np.full(STEPS, 2e-2)

    found = diagnose(case("divergence", 40, {"loss": loss, "grad_norm": norm, "learning_rate": rate}))
    said = " ".join(render(m) for m in found[0].evidence)

    assert "672.2" in said and "step 41" in said and "0.02" in said and " 9 at the end" in said


def test_the_order_is_by_score_and_stable() -> None:
    first, again = diagnose(late_oscillation()), diagnose(late_oscillation())

    assert first == again
    assert [h.score for h in first] == sorted((h.score for h in first), reverse=True)


def test_an_incident_that_nothing_is_known_about_gives_nothing() -> None:
    assert diagnose(case("crash", 5, {"other": np.zeros(3)}), []) != ()
    assert diagnose(case("saturation", 5, {"other": np.zeros(3)})) == ()


def test_a_case_is_only_read() -> None:
    given = loss_turns_nan()
    before = {n: c.values.copy() for n, c in given.columns.items()}

    diagnose(given)

    assert all(np.array_equal(before[n], c.values, equal_nan=True) for n, c in given.columns.items())


def test_a_long_log_is_thinned_far_from_the_onset_and_leads_to_the_same_causes() -> None:
    rows, at = 200_000, 180_000
    loss, rate = with_spike(calm_loss(rows), at), warmup_cosine(rows, warmup=2000)
    loss[90_001] = np.nan
    columns = {"loss": loss, "grad_norm": gradient(rows), "learning_rate": rate}

    asked: list[int] = []

    def spy(given: Case) -> None:
        asked.append(len(given.columns["loss"]))
        assert np.isnan(given.between("loss", 90_001, 90_002)[1]).all()
        assert len(given.between("loss", at - 1000, at + 1000)[0]) == 2000

    diagnose(case("loss-spike", at, columns, end=at + 6), [spy])
    columns["loss"] = with_spike(calm_loss(rows), at)

    assert asked[0] < 10_000
    assert names(diagnose(case("loss-spike", at, columns, end=at + 6)))[0] == "bad-data-burst"


def test_a_branch_is_seen_with_what_came_before_it() -> None:
    first = Frame({"loss": column(np.arange(620) * 1.0, np.arange(1, 621))}, branch=0)
    second = Frame({"loss": column(np.arange(400) - 400.0, np.arange(601, 1001))}, (Event("restart", 601),), 1)
    third = Frame({"loss": column([1.0], [1001])}, branch=2)
    here, other = replace(incident("resume-jump", 601), branch=1), incident("loss-spike", 100, number=2)

    made = case_of(here, RunInfo("run", "csv"), [first, second, third], [here, other])

    loss = made.columns["loss"]
    assert loss.steps.tolist() == list(range(1, 1001))
    assert loss.values.tolist() == [*np.arange(600) * 1.0, *(np.arange(400) - 400.0)]
    assert made.events == (Event("restart", 601),) and made.others == (other,)


def test_a_run_that_starts_again_from_its_first_step_has_nothing_before_it() -> None:
    first, second = Frame({"loss": column([3.0, 2.0])}, branch=0), Frame({"loss": column([5.0, 4.0])}, branch=1)

    made = case_of(replace(incident("divergence", 0), branch=1), RunInfo("run", "csv"), [first, second], [])

    assert made.columns["loss"].values.tolist() == [5.0, 4.0]


@pytest.mark.parametrize("kind", LIKELY)
def test_an_incident_about_which_the_log_says_no_more_names_the_usual_suspects_as_such(kind: str) -> None:
    found = diagnose(case(kind, 5, {"other": np.zeros(40)}, trainer="hf"))

    suspects = [name for name in LIKELY[kind] if name in OPEN]
    assert set(names(found)) <= set(LIKELY[kind])
    assert bool(found) == bool(suspects)
    for hypothesis in found:
        assert hypothesis.score <= 0.3 and hypothesis.advice and hypothesis.test
        assert {m.id for m in hypothesis.evidence} <= {"causes.evidence.open", "causes.evidence.jump-found"}
        for message in (*hypothesis.evidence, *hypothesis.advice, hypothesis.test):
            assert render(message) and render(message, "zh")


def test_suspects_are_not_added_where_the_log_speaks() -> None:
    found = diagnose(spike(900))

    assert found[0].score > 0.15 and "stale-second-moment" not in names(found)
