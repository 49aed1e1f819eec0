import json
import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poise.records import Floats
from poise.stats.blocks import MAX_BLOCKS, Course
from poise.stats.robust import line_and_scale, log10_tail, median
from poise.stats.rolling import RollingMedian
from poise.stats.state import dump, load
from poise.stats.wander import Wander

cuts_of_500 = st.lists(st.integers(0, 500), max_size=20)


def pieces(values: Floats, cuts: list[int]) -> list[Floats]:
    return np.split(values, sorted(cuts))


@given(st.integers(1, 20), st.integers(0, 99), cuts_of_500)
def test_a_rolling_median_is_the_median_of_the_last_rows(window: int, seed: int, cuts: list[int]) -> None:
    values = np.random.default_rng(seed).standard_normal(500)
    rolling = RollingMedian(window)
    got = np.concatenate([rolling.update(piece) for piece in pieces(values, cuts)])
    expected = [np.median(values[max(0, row + 1 - window) : row + 1]) for row in range(500)]
    np.testing.assert_allclose(got, expected)


@given(st.integers(0, 99), cuts_of_500)
def test_wandering_is_the_same_for_any_cut(seed: int, cuts: list[int]) -> None:
    values = np.cumsum(np.random.default_rng(seed).standard_normal(500))
    whole, parts = Wander(), Wander()
    np.testing.assert_array_equal(whole.update(values), np.concatenate([parts.update(p) for p in pieces(values, cuts)]))


def test_a_steady_trend_is_no_wandering() -> None:
    assert Wander().update(np.linspace(0, 100, 2000))[-1] == pytest.approx(0, abs=1e-9)


@given(cuts_of_500)
def test_a_course_is_the_same_for_any_cut(cuts: list[int]) -> None:
    values = np.random.default_rng(1).standard_normal(500)
    whole, parts = Course(), Course()
    whole.update(np.arange(500), values)
    for step, piece in zip(pieces(np.arange(500), cuts), pieces(values, cuts), strict=True):
        parts.update(step.astype(np.int64), piece)
    assert (whole.medians, whole.first_steps) == (parts.medians, parts.first_steps)


def test_a_long_course_stays_small_and_keeps_its_shape() -> None:
    course = Course()
    course.update(np.arange(100_000), np.linspace(0, 1, 100_000))
    assert len(course.medians) <= MAX_BLOCKS
    assert np.allclose(course.medians, (np.array(course.first_steps) + course.size / 2) / 100_000, atol=1e-3)


def test_a_line_ignores_outliers_and_follows_a_trend() -> None:
    values = np.linspace(5, 3, 128)[None]
    values[0, [5, 50, 100]] = 40
    level, scale = line_and_scale(values)
    assert level[0] == pytest.approx(3, abs=0.05)
    assert scale[0] < 0.05


@pytest.mark.parametrize("z", [0.5, 1.0, 3.0, 6.0, 10.0, 30.0])
def test_the_tail_of_the_normal_is_right(z: float) -> None:
    exact = -math.log10(0.5 * math.erfc(z / math.sqrt(2)))
    assert log10_tail(np.array([z]))[0] == pytest.approx(exact, rel=1e-5)


def test_median_of_even_and_odd_rows() -> None:
    np.testing.assert_array_equal(median(np.array([[3.0, 1, 2], [9, 7, 8]])), [2, 8])
    np.testing.assert_array_equal(median(np.array([[4.0, 1, 2, 3]])), [2.5])


@dataclass
class Inner:
    values: Floats = field(default_factory=lambda: np.array([1.0, np.nan, -np.inf]))
    name: str = "nan"


@dataclass
class Outer:
    tracks: dict[str, Inner] = field(default_factory=dict)
    pairs: list[tuple[int, float]] = field(default_factory=list)
    best: float = float("inf")
    missing: int | None = None


def test_state_goes_through_strict_json() -> None:
    outer = Outer({"loss": Inner()}, [(1, 2.5), (2, float("nan"))])
    back = load(Outer, json.loads(json.dumps(dump(outer), allow_nan=False)))
    np.testing.assert_array_equal(back.tracks["loss"].values, outer.tracks["loss"].values)
    assert back.tracks["loss"].name == "nan"
    assert back.pairs[0] == (1, 2.5)
    assert math.isnan(back.pairs[1][1])
    assert (back.best, back.missing) == (float("inf"), None)


def test_what_is_no_state_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot be kept as state"):
        dump({"f": print})
