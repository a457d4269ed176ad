"""Whole runs: what is said of the mean over fits to splits that share rows."""

import numpy as np
import pytest
from scipy import stats

from fairbench.inference.rates import rate_limits
from fairbench.inference.repeats import (
    FOLDS,
    ONE,
    REPEATS,
    SAME,
    RunMeans,
    RunRates,
    Splits,
    _cross_fold_inflation,
    inflation,
    largest_mean_gap,
    mean_limits,
    mean_table_draws,
    no_narrower,
)

SHARE, DRAWS = 0.2, 40_000


def test_linear_quantities_of_drawn_tables_are_the_corrected_t():
    generator = np.random.default_rng(0)
    tables = generator.multinomial(400, np.full(8, 1 / 8), size=10).reshape(10, 2, 4) / 400
    drawn = mean_table_draws(tables, SHARE, draws=DRAWS, generator=generator)
    accuracy, own = (of[..., [0, 3]].sum(axis=(-1, -2)) for of in (drawn, tables))
    scale = np.sqrt((1 / 10 + SHARE / (1 - SHARE)) * own.var(ddof=1))
    for level in (0.025, 0.2, 0.5, 0.975):
        below = (accuracy < own.mean() + scale * stats.t.ppf(level, 9)).mean()
        assert below == pytest.approx(level, abs=5 * np.sqrt(level * (1 - level) / DRAWS))
    few = np.array([[0.0, 1.0], [0.3, 0.7]])
    assert (mean_table_draws(few, 0.5, draws=500, generator=generator) >= 0).all()


def test_repeats_that_agree_are_not_certain_and_are_stretched_around_their_median():
    generator = np.random.default_rng(2)
    counted = generator.normal(0, 1, (5000, 3))
    wide, narrow = generator.normal(3, 2, 4001), generator.normal(2, 0.1, 4001)
    result = no_narrower(np.column_stack([np.full(4001, 0.1), wide, narrow]), counted)
    np.testing.assert_allclose(result[:, [0, 2]].std(axis=0), 0.5, rtol=0.1)
    assert result[:, 0].mean() == pytest.approx(0.1, abs=0.05)
    np.testing.assert_array_equal(result[:, 1], wide)
    assert np.median(result[:, 2]) == pytest.approx(np.median(narrow))


def splits_of(kind, splits):
    return Splits(kind, *((1, 1 / splits) if kind == FOLDS else (splits, SHARE)))


def rates_of(values, rows, kind=REPEATS):
    values = np.array(values)
    return RunRates(values, np.full(values.shape, rows), splits_of(kind, values.shape[1]))


def test_rows_that_hold_outs_test_in_common_count_once():
    """With a fit that does not depend on its rows the variance is that of the rows tested."""
    plain = 1 / 10 + (1 - 1 / 10) * SHARE
    own = Splits(REPEATS, 10, SHARE).variance(np.array(10.0))
    crossed = _cross_fold_inflation((1 - SHARE) ** 2)
    assert own == pytest.approx(plain + (crossed - 1) * (1 - 1 / 10) * SHARE)


def test_folds_are_as_one_test_set_of_fewer_rows():
    # Further partitions of the same rows add none.
    for partitions in (1, 3):
        variance = Splits(FOLDS, partitions, 1 / 10).variance(np.array(10.0 * partitions))
        assert variance == pytest.approx(1.5 / 10)
    for kind in (SAME, ONE):
        assert Splits(kind, 5, SHARE).variance(np.array(5.0)) == 1


@pytest.mark.parametrize("kind", [REPEATS, FOLDS])
def test_rates_have_the_limits_of_their_effective_counts(kind):
    generator = np.random.default_rng(5)
    sizes = generator.integers(20, 60, (2, 5)).astype(float)
    values = generator.binomial(sizes.astype(int), 0.3) / sizes
    values[1, 3], sizes[1, 3] = np.nan, 0
    splits = splits_of(kind, 5)
    limits = RunRates(values, sizes, splits).limits()
    for g, there in enumerate([[0, 1, 2, 3, 4], [0, 1, 2, 4]]):
        mean, count = values[g, there].mean(), np.array(float(len(there)))
        size = count / (1 / sizes[g, there]).sum() / splits.variance(count)
        np.testing.assert_allclose([limit[g] for limit in limits], rate_limits(mean * size, size))


def test_mean_differences_of_rates_are_between_minus_one_and_one():
    """Where a rate is missing in a split, the differences are of the other splits alone."""
    differences = rates_of([[1.0, np.nan, 0.4], [0.0, 0.1, np.nan]], 6.0).differences()
    assert (differences.value[0, 1], differences.value[1, 0]) == (1, -1)
    assert differences.upper[0, 1] == 1 and differences.lower[1, 0] == -1


def test_the_largest_gap_is_that_of_the_mean_differences():
    rates = rates_of([[0.3, 0.5, 0.4], [0.5, 0.3, 0.4]], 50.0)
    gap, signed = largest_mean_gap(rates), rates.differences()
    assert (gap.value, gap.lower) == (pytest.approx(0), 0)
    assert gap.upper == pytest.approx(signed.upper.max())


def test_rates_that_are_defined_in_different_numbers_of_groups_have_one_largest_gap():
    """As 13 groups with positives and 12 with negatives; a pair may share no split at all."""
    wide = rates_of([[0.2, 0.2], [0.9, 0.9], [0.5, 0.5]], 50.0)
    narrow = rates_of([[0.4, 0.4], [0.5, 0.5]], 50.0)
    alone = largest_mean_gap(wide)
    assert np.isfinite(alone).all()
    assert largest_mean_gap(wide, narrow) == alone
    assert largest_mean_gap(narrow, wide).value == alone.value
    apart = rates_of([[0.4, np.nan], [np.nan, 0.5]], 50.0)
    assert np.isnan(largest_mean_gap(apart).value)


def test_the_mean_of_two_rates_varies_as_two_independent_ones():
    first, second = (rates_of(np.array([[0.3, 0.3], [0.5, 0.6]]), 80) for _ in range(2))
    single, mean = first.limits(), RunMeans.of(first, second).limits()
    np.testing.assert_allclose(mean.value, single.value)
    for end in (1, 2):
        away = single[end] - single.value
        np.testing.assert_allclose(mean[end] - mean.value, away / np.sqrt(2))
    gap = largest_mean_gap(RunMeans.of(first, second))
    assert gap.value == pytest.approx(0.25)
    above, below = mean.upper[1] - 0.55, 0.3 - mean.lower[0]
    assert gap.upper == pytest.approx(0.25 + np.hypot(above, below))


def test_means_have_the_intervals_of_their_splits_or_of_how_these_differ():
    values = np.array([[0.2, 0.3, 0.4], [0.2, 0.3, 0.4], [0.2, 0.3, np.nan]])
    lower, upper = values - 0.2, values + 0.6
    lower[1], upper[1] = np.nan, np.nan
    splits = splits_of(REPEATS, 3)
    limits = mean_limits(values, lower, upper, splits)
    half = stats.t.ppf(0.975, 2) * 0.1 * np.sqrt(inflation(3, SHARE))
    shrunk = np.sqrt(splits.variance(np.array(3.0)))
    np.testing.assert_allclose(limits.value, [0.3, 0.3, 0.25])
    np.testing.assert_allclose(limits.lower[:2], 0.3 - half)  # wider than 0.2 * shrunk
    np.testing.assert_allclose(limits.upper[:2], [0.3 + 0.6 * shrunk, 0.3 + half])


def test_folds_that_may_be_no_better_than_chance_have_the_wider_interval():
    values = np.array([[0.5, 0.6, 0.7], [0.8, 0.85, 0.75], [0.5, 0.6, 0.7]])
    lower, upper = values - 0.2, values + 0.2
    lower[2], upper[2] = np.nan, np.nan
    splits = splits_of(FOLDS, 3)
    limits = mean_limits(values, lower, upper, splits, chance=np.full(3, 0.5))
    half = stats.t.ppf(0.975, 2) * 0.1 * np.sqrt(1 / 3 + 1 / 2)
    shrunk = np.sqrt(splits.variance(np.array(3.0)))
    np.testing.assert_allclose(limits.upper, [0.6 + half, 0.8 + 0.2 * shrunk, np.nan])


def test_repeats_that_do_not_differ_say_nothing_of_how_they_vary():
    nothing = np.full(5, np.nan)
    limits = mean_limits(np.ones(5), nothing, nothing, Splits(REPEATS, 5))
    np.testing.assert_array_equal([*limits], [1, np.nan, np.nan])
