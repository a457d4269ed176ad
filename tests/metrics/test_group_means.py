"""Means of groups and their ratios: coverage, closed forms, and means of 0."""

import numpy as np
import pytest

from fairbench.metrics.group_means import GroupMeans

LEVEL = 0.95


def skewed(samples, rows, ratio):
    """Return the means of `samples` pairs of groups of exponential values, (2, samples)."""
    values = np.random.default_rng(0).exponential(size=(2 * rows, samples))
    values[rows:] *= ratio
    return GroupMeans.of(values, np.repeat([0, 1], rows), 2)


def test_means_and_errors_are_numpys():
    draw = np.random.default_rng(0)
    values, group = draw.random((50, 3)), draw.integers(2, size=50)
    result = GroupMeans.of(values, group, 2)
    for g in range(2):
        rows = values[group == g]
        np.testing.assert_allclose(result.mean[g], rows.mean(axis=0))
        np.testing.assert_allclose(result.error[g], rows.std(axis=0, ddof=1) / np.sqrt(len(rows)))


def test_intervals_cover_at_their_level_though_values_are_skewed():
    """20,000 samples of 40 exponential rows a group: within two points, noise is a tenth."""
    means = skewed(20_000, 40, 1.2)
    for (lower, upper), truth in (
        (means.interval(LEVEL), 1.2),
        (means.difference(LEVEL)[1:], 0.2),
        (means.ratio(LEVEL)[1:], 1.2),
    ):
        covered = ((lower[1] <= truth) & (truth <= upper[1])).mean()
        assert covered == pytest.approx(LEVEL, abs=0.02)


def test_the_probability_of_a_ratio_outside_the_band_is_calibrated():
    """With ratios drawn from a flat prior around the edge, it is the share that lie outside."""
    draw = np.random.default_rng(0)
    ratio = np.exp(draw.uniform(-1, 1, 20_000))
    chance = skewed(20_000, 60, ratio).ratio_outside(0.2)[1]
    for low, high in ((0.1, 0.4), (0.4, 0.6), (0.6, 0.9)):
        chosen = (low < chance) & (chance < high)
        share = (np.abs(ratio[chosen] - 1) > 0.2).mean()
        assert share == pytest.approx(chance[chosen].mean(), abs=0.05)


def test_a_mean_of_zero_has_a_ratio_of_zero_outside_every_band():
    result = GroupMeans.of(np.array([[1.0], [2], [0], [0]]), np.array([0, 0, 1, 1]), 2)
    assert result.ratio(LEVEL)[0][1, 0] == 0
    assert result.ratio_outside(0.2)[1, 0] == 1
    assert result.interval(LEVEL)[1][1, 0] == 0


def test_one_row_has_no_interval_and_no_row_no_mean():
    result = GroupMeans.of(np.array([[1.0], [3], [7]]), np.array([0, 0, 1]), 3)
    assert result.size.tolist() == [2, 1, 0]
    np.testing.assert_array_equal(result.mean[:, 0], [2, 7, np.nan])
    lower, upper = result.interval(LEVEL)
    np.testing.assert_array_equal(np.isnan(lower[:, 0]), [False, True, True])
