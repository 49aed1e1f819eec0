import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poise.records import Column, Floats
from poise.stats.baseline import BLOCK, EARLY, WINDOW, Baseline


def wild_stream(seed: int, rows: int) -> Floats:
    """Log-normal rows with gaps, NaN, outliers, a level shift and some negative stretches."""
    rng = np.random.default_rng(seed)
    values = np.exp(rng.standard_normal(rows) * rng.choice([0.01, 0.3, 1.5]))
    values[rng.integers(0, rows, rows // 30)] = np.nan
    values[rng.integers(0, rows, rows // 30)] *= 1e3
    if seed % 3 == 0:
        values[rows // 2 :] *= 5
    if seed % 2:
        values -= 1.0
    return values


def judge(values: Floats, cuts: list[int], two_sided: bool = False) -> tuple[Floats, Baseline]:
    baseline = Baseline(two_sided=two_sided)
    edges = [0, *sorted(cuts), len(values)]
    column = Column(np.arange(len(values)), values)
    parts = [baseline.update(column.slice(a, b)).z for a, b in zip(edges, edges[1:], strict=False)]
    return np.concatenate(parts), baseline


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.lists(st.integers(0, 600), max_size=30), st.booleans())
def test_any_cut_gives_the_same_judgement(seed: int, cuts: list[int], two_sided: bool) -> None:
    values = wild_stream(seed, 600)
    whole, a = judge(values, [], two_sided)
    parts, b = judge(values, cuts, two_sided)
    np.testing.assert_array_equal(whole, parts)
    assert a.adopted == b.adopted


@pytest.mark.parametrize("seed", range(12))
def test_single_rows_equal_one_long_piece(seed: int) -> None:
    values = wild_stream(seed, 900)
    whole, a = judge(values, [])
    single, b = judge(values, list(range(1, 900)))
    np.testing.assert_array_equal(whole, single)
    assert a.adopted == b.adopted
    assert (a.level, a.scale, a.log, a.row) == (b.level, b.scale, b.log, b.row)


def test_row_by_row_equals_the_definition_done_the_slow_way() -> None:
    values = np.exp(0.1 * np.random.default_rng(1).standard_normal(400))
    values[300] = 9.0
    z, _ = judge(values, [])

    accepted: list[float] = []
    level = scale = np.nan
    for row, value in enumerate(values):
        if row in EARLY or (row % BLOCK == 0 and row > EARLY[0]):
            window = np.log(accepted[-WINDOW:])
            n = len(window)
            third = max(1, n // 3)
            slope = (np.median(window[-third:]) - np.median(window[:third])) / (n - third)
            rest = window - slope * np.arange(1 - n, 1)
            level, mad = np.median(rest), 1.4826 * np.median(np.abs(rest - np.median(rest)))
            if abs(slope) * n < 2 * mad:
                level, mad = np.median(window), 1.4826 * np.median(np.abs(window - np.median(window)))
            weight = 8 * (1 - n / WINDOW)
            scale = np.hypot(mad, 0.05 * np.sqrt(weight / (n + weight))) * (1 + 4 / n)
        expected = (np.log(value) - level) / scale
        assert z[row] == pytest.approx(expected, nan_ok=True, rel=1e-9)
        if not expected > 5:
            accepted.append(value)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([1e-6, 1e-3, 37.0, 1e6]))
def test_the_scale_of_a_signal_does_not_matter(seed: int, factor: float) -> None:
    values = wild_stream(seed, 500)
    np.testing.assert_allclose(judge(values, [])[0], judge(values * factor, [])[0], rtol=1e-6, atol=1e-6)


def test_a_spike_does_not_raise_its_own_threshold() -> None:
    values = np.exp(0.05 * np.random.default_rng(2).standard_normal(600))
    values[200:260] = 5.0
    z, _ = judge(values, [])
    assert z[200:260].min() > 25
    assert np.abs(z[280:]).max() < 6


def test_a_new_level_is_adopted_after_128_rows_and_not_before() -> None:
    values = np.exp(0.05 * np.random.default_rng(3).standard_normal(800))
    values[300:] *= 3
    z, baseline = judge(values, [])
    assert baseline.adopted == [300 + WINDOW - 1]
    assert z[300 : 300 + WINDOW].min() > 5
    assert np.abs(z[300 + WINDOW :]).max() < 6


def test_a_falling_trend_widens_nothing_and_raises_nothing() -> None:
    rows = np.arange(2000)
    values = 8 * np.exp(-rows / 400) * np.exp(0.01 * np.random.default_rng(4).standard_normal(2000))
    z, _ = judge(values, [])
    assert np.nanmax(z) < 4.5


def test_healthy_log_normal_norms_stay_below_six_sigma() -> None:
    values = np.exp(0.5 * np.random.default_rng(5).standard_normal(100_000))
    z, _ = judge(values, [])
    assert np.nanmax(z) < 6.5


def test_non_finite_rows_are_not_learnt_from() -> None:
    values = np.exp(0.05 * np.random.default_rng(6).standard_normal(300))
    dirty = np.insert(values, 150, [np.nan, np.inf, np.nan])
    z, baseline = judge(dirty, [])
    assert np.isnan(z[[150, 152]]).all()
    assert np.isfinite(baseline.accepted).all()


def test_a_constant_signal_has_a_scale_from_its_printed_digits() -> None:
    column = Column(np.arange(300), np.full(300, 0.5), resolution=0.005)
    baseline = Baseline()
    baseline.update(column)
    assert baseline.scale == pytest.approx(0.01, rel=1e-6)
