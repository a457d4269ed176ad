"""Rates of many groups estimated together: against exact integration, and in simulations."""

from math import comb

import numpy as np
import pytest
from scipy import special, stats

import fairbench
from fairbench.evaluation import many_groups
from fairbench.inference import pooled
from fairbench.inference.pooled import pool


def exactly(y, n):
    """Integrate the model of one attribute over a fine grid of overall level and spread.

    Returns the posterior means (G,) and the distribution functions.
    """
    everyone = (y.sum() + 0.5) / (n.sum() + 1)
    levels = special.logit(everyone) + np.linspace(-4, 4, 121)
    level, log_spread = map(np.ravel, np.meshgrid(levels, np.linspace(np.log(0.003), 2, 90)))
    strength = np.exp(-2 * log_spread) / (everyone * (1 - everyone))
    a, b = ((strength * special.expit(sign * level))[:, None] for sign in (1, -1))
    like = special.betaln(a + y, b + n - y) - special.betaln(a, b) + np.log1p(-pooled.EXCEPTION)
    alone = special.betaln(y + 0.5, n - y + 0.5) - special.betaln(0.5, 0.5)
    alone += np.log(pooled.EXCEPTION)
    either = np.logaddexp(like, alone)
    log = either.sum(axis=1) + pooled._spread_prior(log_spread)
    log += (special.log_expit(level) + special.log_expit(-level)) / 2
    weights = special.softmax(log)
    kept = weights > 1e-8 * weights.max()
    a, b, apart = a[kept], b[kept], np.exp(alone - either)[kept]
    weights = weights[kept] / weights[kept].sum()
    mean = weights @ ((1 - apart) * (a + y) / (a + b + n) + apart * (y + 0.5) / (n + 1))

    def below(rate):
        like = (1 - apart) * special.betainc(a + y, b + n - y, rate)
        return weights @ (like + apart * special.betainc(y + 0.5, n - y + 0.5, rate))

    return mean, below


@pytest.mark.parametrize(
    ("sizes", "rate", "spread"),
    [
        ([30] * 20, 0.3, 0.3),
        ([0, 1, 3, 5, 20, 50, 200, 2000], 0.3, 0.5),
        ([50] * 10, 0.02, 0.5),
        ([100] * 6, 0.4, 1.5),
        ([5000] * 10, 0.3, 0.05),
    ],
)
def test_agrees_with_exact_integration(sizes, rate, spread):
    generator, n = np.random.default_rng(3), np.array(sizes)
    rates = special.expit(special.logit(rate) + spread * generator.standard_normal(len(n)))
    y = generator.binomial(n, rates)
    mean, below = exactly(y, n)
    posterior = pool(y, n, generator, draws=4000)
    lower, upper = posterior.interval()
    assert np.abs(posterior.mean - mean).max() < 0.1 * (upper - lower).max()
    for end, share in ((lower, 0.025), (upper, 0.975)):
        np.testing.assert_allclose(below(end), share, atol=0.012)


def test_zero_counts_empty_groups_and_certain_rates_have_answers():
    generator = np.random.default_rng(0)
    for y, n in (([0] * 5, [20] * 5), ([20, 20], [20, 20]), ([0, 0], [0, 0]), ([3], [4])):
        posterior = pool(y, n, generator)
        lower, upper = posterior.interval()
        assert ((lower >= 0) & (upper <= 1) & (lower <= posterior.mean)).all()
        assert (posterior.mean <= upper).all()
        assert np.isfinite(posterior.surprise).all()
        assert posterior.worst().sum() == pytest.approx(1)
    nothing = pool([0, 0], [0, 0], generator)
    assert (nothing.surprise == 1).all()
    assert (np.subtract(*nothing.interval()[::-1]) > 0.9).all()


def test_an_empty_group_is_where_its_attributes_point():
    generator = np.random.default_rng(1)
    sex, race = np.divmod(np.arange(10), 5)
    n = np.full(10, 400)
    y = np.round(n * special.expit(-1.0 + 1.5 * sex + 0.2 * race)).astype(int)
    y[9] = n[9] = 0
    posterior = pool(y, n, generator, attributes=np.column_stack([sex, race]))
    lower, upper = posterior.interval(0.9)
    assert lower[9] < special.expit(1.3) < upper[9]
    assert np.subtract(*pool(y, n, generator).interval(0.9)[::-1])[9] > 1.5 * (upper - lower)[9]


def test_the_predictive_check_finds_the_exception_and_little_else():
    rng = np.random.default_rng(7)
    found = []
    for _ in range(60):
        logit = special.logit(0.3) + 0.3 * rng.standard_normal(20) + 2 * (np.arange(20) == 0)
        y = rng.binomial(60, special.expit(logit))
        found.append(pool(y, np.full(20, 60), rng, draws=100).surprise < 0.01)
    exception, *others = np.mean(found, axis=0)
    assert exception > 0.85
    assert np.mean(others) < 0.025


def test_groups_that_differ_are_ranked_and_the_worst_is_named():
    posterior = pool([100, 150, 480], [500, 500, 600], np.random.default_rng(9))
    assert posterior.worst()[0] > 0.99
    assert posterior.worst(largest=True)[2] > 0.99
    np.testing.assert_array_equal(posterior.ranks(), [[1, 2, 3]] * 2)
    assert (posterior.gap_below(0.1), posterior.gap_below(0.9)) == (0, 1)


def test_many_groups_are_estimated_as_few_are(monkeypatch):
    generator = np.random.default_rng(4)
    codes = np.array(np.unravel_index(np.arange(60), (5, 4, 3))).T
    sizes = generator.integers(0, 80, 60)
    successes = generator.binomial(sizes, generator.beta(2, 3, 60))
    result = []
    for large in (1, 1000):
        monkeypatch.setattr(pooled, "_LARGE", large)
        result.append(pool(successes, sizes, np.random.default_rng(0), attributes=codes).draws)
    np.testing.assert_allclose(*result, rtol=1e-6)


# Flags with a controlled share of false ones, and certificates of all groups at once.


def test_tests_of_equal_rates_are_twice_the_smaller_tail_of_fishers():
    y, n, z, m = 7, 12, 9, 30
    ways = np.array([comb(n, k) * comb(m, y + z - k) for k in range(n + 1)], float)
    at, below = ways[y] / 2, ways[:y].sum()
    expected = 2 * min(below + at, ways.sum() - below - at) / ways.sum()
    assert pooled.same_rate(y, n, z, m) == pytest.approx(expected)
    assert pooled.same_rate(y + 0.2, n - 0.4, z, m) == pytest.approx(expected)
    both = pooled.differs_from_rest([[y, z]], [[n, m]])
    assert both == pytest.approx(np.full((1, 2), expected))
    # Of large, empty and impossible counts.
    counts = [5, 500_000, 0, 0, 0], [10, 10**6, 0, 10, 0], [3, 510_000, 4, 0, 0], [*[10**6] * 4, 0]
    p_values = pooled.same_rate(*counts)
    assert p_values[0] < 1e-15 and p_values[1] < 1e-30
    assert p_values[2:] == pytest.approx([1, 1, 1])
    assert pooled.same_rate([], [], [], []).shape == (0,)


def test_adjusted_p_values_agree_with_scipy():
    p_values = np.random.default_rng(3).random(50) ** 2
    control = stats.false_discovery_control
    assert pooled.adjusted_p_values(p_values) == pytest.approx(control(p_values))
    both = pooled.adjusted_p_values(p_values.reshape(5, 10), overlapping=True)
    assert both.ravel() == pytest.approx(control(p_values, method="by"))
    with_holes = np.array([np.nan, 0.01, 0.5])
    assert pooled.adjusted_p_values(with_holes) == pytest.approx([np.nan, 0.02, 0.5], nan_ok=True)
    assert np.isnan(pooled.adjusted_p_values(np.array([np.nan]))).all()


def test_certificates_of_all_groups_hold():
    generator = np.random.default_rng(6)
    n = np.resize([30, 200, 1000], 30)
    y = generator.binomial(n, np.resize([0.75, 0.85, 0.8, 0.95], 30), (2000, 30))
    bounds = np.array([many_groups._all_at_least(counts, n)[0] for counts in y])
    assert (bounds <= 0.75).mean() > 0.95 - 0.01
    ceiling = fairbench.pooled(n - y[0], n, draws=100).attrs["at_most"]["bound"]
    assert ceiling == pytest.approx(1 - bounds[0])


def test_a_certificate_names_the_group_that_limits_it():
    assert many_groups._all_at_least([90, 0, 950], [100, 0, 1000]) == (0.0, 1)
    bound, group = many_groups._all_at_least([900, 8, 950], [1000, 10, 1000])
    assert (bound, group) == (pytest.approx(stats.beta.ppf(0.05, 8, 3)), 1)
