"""`poise explain` as strings: the table, pages of symptoms and causes, wrong names."""

from __future__ import annotations

import pytest

from poise.causes import NAMES
from poise.causes.likely import LIKELY
from poise.detectors import ALL
from poise.explain import ROWS, UnknownNameError, explain, picture, row_of
from poise.messages import Text
from poise.messages.causes import ADVICE
from poise.messages.explain import CAUSES, TABLE, WORDS
from poise.messages.explain import KINDS as KIND_TEXTS
from poise.signals import KINDS


def test_without_a_name_it_is_the_quick_table_with_p0_first() -> None:
    text = explain()

    lines = [line for line in text.splitlines() if line[:2] in ("P0", "P1", "P2")]
    assert lines == [
        "P0  loss NaN or Inf",
        "P0  loss slow, or rising first",
        "P0  sudden oscillation late in a calm run",
        "P1  gradient of shallow layers persistently tiny",
        "P1  short and repetitive text",
        "P2  validation loss falls but text is poor",
        "P2  memory swings, speed steady",
    ]
    assert text.count("treatment:") == 7 and text.count("likely causes:") == 7


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", [*KINDS, *NAMES])
def test_every_symptom_and_every_cause_has_a_page(name: str, language: str) -> None:
    page = explain(name, language)

    assert page.startswith(name)
    assert len(page.splitlines()) >= 2


def test_a_symptom_that_is_also_a_cause_shows_both_pages() -> None:
    page = explain("rank-desync")

    assert KIND_TEXTS["rank-desync"][0] in page and CAUSES["rank-desync"][0] in page


@pytest.mark.parametrize("detector", ALL, ids=lambda d: d.__name__)
def test_a_symptom_page_draws_the_examples_of_its_detector(detector: type) -> None:
    for example in detector.fires_on:  # type: ignore[attr-defined]
        drawn = picture(example, example.kind)
        assert any("⠀" < letter <= "⣿" for letter in drawn) or "x" in drawn
    for kind in detector.kinds:  # type: ignore[attr-defined]
        examples = [e for e in detector.fires_on if e.kind == kind]  # type: ignore[attr-defined]
        assert all(e.title in explain(kind) for e in examples[:2])


@pytest.mark.parametrize(
    ("typo", "meant"),
    [
        ("learning-rate-to-high", "learning-rate-too-high"),
        ("los-spike", "loss-spike"),
        ("overfiting", "overfitting"),
        ("warmup", "warmup-too-short"),
    ],
)
def test_a_typo_names_the_nearest(typo: str, meant: str) -> None:
    with pytest.raises(UnknownNameError, match=meant):
        explain(typo)


def test_a_name_far_from_all_still_says_where_to_look() -> None:
    with pytest.raises(UnknownNameError, match="`poise explain` without a name"):
        explain("zzzzqqqq")


@pytest.mark.parametrize("name", ["Loss_Spike", " loss spike ", "LOSS-SPIKE"])
def test_spelling_of_case_and_separators_does_not_matter(name: str) -> None:
    assert explain(name) == explain("loss-spike")


def test_tables_name_only_what_exists() -> None:
    assert set(LIKELY) <= set(KINDS)
    assert {c for causes in LIKELY.values() for c in causes} <= set(NAMES)
    assert {c for row in ROWS for c in row.causes} <= set(NAMES)
    assert {k for row in ROWS for k in row.kinds} <= set(KINDS)
    assert {t for row in ROWS for t in row.topics} <= set(ADVICE)
    assert set(KIND_TEXTS) == set(KINDS) and set(CAUSES) == set(NAMES)
    assert set(TABLE) == {f"{row.name}{part}" for row in ROWS for part in ("", ".causes", ".treatment")}


def test_texts_are_in_two_languages() -> None:
    everything: list[Text] = [*KIND_TEXTS.values(), *CAUSES.values(), *TABLE.values(), *WORDS.values()]

    assert all(english.isascii() and not chinese.isascii() for english, chinese in everything)


@pytest.mark.parametrize(
    ("kind", "progress", "row"),
    [
        ("loss-spike", 0.01, "slow-start"),
        ("loss-spike", 0.9, "late-oscillation"),
        ("non-finite", None, "non-finite"),
        ("crash", 0.5, None),
    ],
)
def test_a_symptom_finds_its_row_by_the_part_of_the_run(kind: str, progress: float | None, row: str | None) -> None:
    found = row_of(kind, progress)

    assert (found.name if found else None) == row
