"""The posterior of confusion counts: exact marginals, coverage, and resampled counts."""

import numpy as np
import pytest
from scipy import stats

from fairbench.core.seeds import rng
from fairbench.inference.posterior import central_interval, posterior_draws, resampled_counts
from fairbench.metrics.group import difference
from fairbench.metrics.rates import selection_rate
from fairbench.metrics.registry import BINARY, metrics_of

RATES = [
    metric.function for metric in metrics_of(BINARY, "rate").values() if len(metric.rates) == 1
]

COUNTS = np.array([[30, 12, 9, 21], [4, 0, 3, 2], [0, 0, 0, 0]])
DRAWS = 20_000


def exact_quantile(rate, counts, alpha, level):
    """Return a quantile of a rate's posterior: sums of Dirichlet cells are Beta distributed."""
    weights = counts + alpha
    top, bottom = np.array(rate.numerator) > 0, np.array(rate.denominator) > 0
    quantile = stats.beta.ppf(level, weights[top].sum(), weights[bottom & ~top].sum())
    if rate.name == "f1_score":  # 2 TP / (2 TP + FP + FN), with TP / (TP + FP + FN) Beta
        return 2 * quantile / (1 + quantile)
    return quantile


@pytest.mark.parametrize("alpha", [1.0, 0.5])
@pytest.mark.parametrize("rate", RATES, ids=lambda rate: rate.name)
def test_marginal_of_every_rate_is_its_beta_distribution(rate, alpha):
    samples = rate(posterior_draws(COUNTS, DRAWS, rng(0, "test", rate.name), alpha=alpha))
    assert samples.shape == (DRAWS, len(COUNTS))
    for group, counts in enumerate(COUNTS):
        for level in (0.025, 0.25, 0.5, 0.9, 0.975):
            below = (samples[:, group] < exact_quantile(rate, counts, alpha, level)).mean()
            assert abs(below - level) < 5 * np.sqrt(level * (1 - level) / DRAWS)


def test_draws_are_probabilities_over_the_last_axis_and_keep_leading_axes():
    counts = np.arange(48).reshape(2, 6, 4)
    draws = posterior_draws(counts, 5, np.random.default_rng(0))
    assert draws.shape == (5, 2, 6, 4)
    assert (draws > 0).all()
    np.testing.assert_allclose(draws.sum(axis=-1), 1)


def test_groups_are_drawn_independently():
    draws = posterior_draws(np.full((2, 4), 10), DRAWS, np.random.default_rng(1))
    correlation = np.corrcoef(selection_rate(draws), rowvar=False)[0, 1]
    assert abs(correlation) < 5 / np.sqrt(DRAWS)


def test_draws_depend_on_the_generator_alone():
    first = posterior_draws(COUNTS, 10, rng(0, "posterior"))
    np.testing.assert_array_equal(first, posterior_draws(COUNTS, 10, rng(0, "posterior")))
    assert not np.array_equal(first, posterior_draws(COUNTS, 10, rng(1, "posterior")))


def difference_interval(counts, generator):
    samples = difference(selection_rate, posterior_draws(counts, 600, generator))[..., 0]
    return central_interval(samples)


def test_interval_of_a_difference_covers_a_fixed_truth():
    replications, size, truth = 1500, np.array([120, 60]), np.array([0.35, 0.55])
    generator = np.random.default_rng(11)
    selected = generator.binomial(size, truth, size=(replications, 2))
    nothing = np.zeros_like(selected)
    counts = np.stack([size - selected, selected, nothing, nothing], axis=-1)
    lower, upper = difference_interval(counts, generator)
    covered = ((lower <= 0.2) & (upper >= 0.2)).mean()
    assert abs(covered - 0.95) < 0.02


def test_interval_covers_truths_drawn_from_the_prior_at_its_nominal_level():
    # Where the truth is a draw from the prior, a Bayesian interval's coverage is exact.
    replications, generator = 2000, np.random.default_rng(12)
    truth = generator.dirichlet(np.ones(4), size=(replications, 2))
    counts = generator.multinomial([25, 8], truth)
    lower, upper = difference_interval(counts, generator)
    value = difference(selection_rate, truth)[..., 0]
    covered = ((lower <= value) & (value <= upper)).mean()
    # 4 standard errors, and up to 0.004 for the quantiles of 600 draws.
    assert abs(covered - 0.95) < 4 * np.sqrt(0.95 * 0.05 / replications) + 0.004
    width = (upper - lower).mean()
    assert 0.2 < width < 0.8


@pytest.mark.parametrize(("level", "low", "high"), [(0.95, 25, 975), (0.5, 250, 750)])
def test_central_interval_returns_order_statistics(level, low, high):
    samples = np.random.default_rng(0).permutation(1001).astype(float)
    columns = np.column_stack([samples, 1000 - samples])
    lower, upper = central_interval(columns, level)
    np.testing.assert_array_equal(lower, [low, low])
    np.testing.assert_array_equal(upper, [high, high])


def test_central_interval_matches_quantiles_of_many_axes():
    samples = np.random.default_rng(1).normal(size=(2001, 3, 2))
    lower, upper = central_interval(samples, 0.9)
    np.testing.assert_allclose(lower, np.quantile(samples, 0.05, axis=0))
    np.testing.assert_allclose(upper, np.quantile(samples, 0.95, axis=0))


def test_central_interval_of_a_column_with_a_nan_is_nan_and_leaves_the_draws_alone():
    samples = np.random.default_rng(2).normal(size=(200, 2))
    samples[7, 0] = np.nan
    before = samples.copy()
    lower, upper = central_interval(samples)
    assert np.isnan([lower[0], upper[0]]).all()
    assert np.isfinite([lower[1], upper[1]]).all()
    np.testing.assert_array_equal(samples, before)


def test_resampled_counts_keep_the_sizes_and_the_mean_shares():
    resampled = resampled_counts(COUNTS, 5000, np.random.default_rng(3))
    assert resampled.shape == (5000, 3, 4)
    assert (resampled.sum(axis=-1) == COUNTS.sum(axis=-1)).all()
    share = COUNTS[0] / COUNTS[0].sum()
    error = np.sqrt(COUNTS[0].sum() * share * (1 - share) / 5000)
    assert (np.abs(resampled[:, 0].mean(axis=0) - COUNTS[0]) < 5 * error).all()
    np.testing.assert_allclose(resampled[:, 0].var(axis=0), 5000 * error**2, rtol=0.1)
    assert (resampled[:, 1, 1] == 0).all()
