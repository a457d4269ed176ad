"""Flags with a controlled share of false ones, and certificates of all groups at once."""

import numpy as np
import pytest
from scipy import stats

from fairbench.inference import flags


def test_tests_of_equal_rates_agree_with_scipy():
    generator = np.random.default_rng(1)
    n, m = generator.integers(1, 200, 60), generator.integers(1, 3000, 60)
    y, z = generator.binomial(n, 0.3), generator.binomial(m, 0.35)
    expected = []
    for a, b, c, d in zip(y, n, z, m, strict=True):
        given = stats.hypergeom(b + d, a + c, b)
        lower = given.cdf(a) - given.pmf(a) / 2
        expected.append(min(1, 2 * min(lower, 1 - lower)))
    assert flags.same_rate(y, n, z, m) == pytest.approx(expected, abs=1e-12)


def test_tests_of_large_and_of_impossible_counts():
    p_values = flags.same_rate(
        [5, 500_000, 0, 0], [10, 10**6, 0, 10], [3, 510_000, 4, 0], [10**6] * 4
    )
    assert p_values[0] < 1e-15
    assert p_values[1] < 1e-30
    assert p_values[2] == 1
    assert p_values[3] == 1
    assert flags.same_rate([], [], [], []).shape == (0,)


def test_tests_of_equal_rates_are_wrong_as_often_as_they_say():
    generator = np.random.default_rng(2)
    y, z = generator.binomial(40, 0.2, 4000), generator.binomial(400, 0.2, 4000)
    assert (flags.same_rate(y, 40, z, 400) < 0.05).mean() < 0.062


def test_floors_agree_with_scipy():
    y, n = np.array([0, 3, 70, 100]), np.array([10, 10, 100, 100])
    given = stats.binom(n, 0.7)
    assert flags.at_least_p_values(y, n, 0.7) == pytest.approx(given.cdf(y) - given.pmf(y) / 2)
    assert flags.at_least_p_values(0, 0, 0.7) == 1


def test_adjusted_p_values_agree_with_scipy():
    p_values = np.random.default_rng(3).random(50) ** 2
    control = stats.false_discovery_control
    assert flags.adjusted_p_values(p_values) == pytest.approx(control(p_values))
    both = flags.adjusted_p_values(p_values.reshape(5, 10), overlapping=True)
    assert both.ravel() == pytest.approx(control(p_values, method="by"))
    with_holes = np.array([np.nan, 0.01, 0.5])
    assert flags.adjusted_p_values(with_holes) == pytest.approx([np.nan, 0.02, 0.5], nan_ok=True)
    assert not flags.flag(np.array([np.nan])).any()


def planted(generator, size, shift):
    """Return counts of 200 groups around a rate of 0.3, the first 20 moved to either side."""
    rates = np.full(200, 0.3)
    rates[:20] += shift * np.resize([1, -1], 20)
    return generator.binomial(size, rates)


@pytest.mark.parametrize(("size", "shift"), [(200, 0.15), (500, 0.1), (60, 0.25)])
def test_at_most_a_tenth_of_the_flags_are_wrong(size, shift):
    generator = np.random.default_rng(4)
    wrong, result, reference = [], [], []
    for _ in range(60):
        y = planted(generator, size, shift)
        named = flags.flag(flags.differs_from_rest(y, np.full(200, size)))
        wrong.append(named[20:].sum() / max(named.sum(), 1))
        result.append(named[:20].mean())
        exact = 2 * np.minimum(stats.binom.cdf(y, size, 0.3), stats.binom.sf(y - 1, size, 0.3))
        reference.append((stats.false_discovery_control(np.minimum(exact, 1)) < 0.1)[:20].mean())
    assert np.mean(wrong) < 0.1 + 2 * np.std(wrong) / np.sqrt(60)
    assert np.mean(result) > 0.8 * np.mean(reference)


def overlapping(generator, people=3000):
    """Return counts (8, G) of 8 metrics in the groups of three attributes and their pairs.

    People of the first attribute's first value have other rates than the rest, in 2 metrics.
    """
    codes = generator.integers(0, 4, (people, 3))
    codes[:, 1] = np.where(generator.random(people) < 0.5, codes[:, 0], codes[:, 1])
    rates = np.full((people, 8), 0.3)
    unlike = codes[:, 0] == 0
    rates[unlike, :2] = 0.4
    noise = generator.random((people, 1)) * 0.5 + generator.random((people, 8)) * 0.5
    outcome = special_rank(noise) < rates
    members = [codes[:, k] == value for k in range(3) for value in range(4)]
    pairs = [a & b for i, a in enumerate(members) for b in members[i // 4 * 4 + 4 :]]
    groups = np.array(members + pairs, float)
    truth = np.array([np.abs(rates[g > 0].mean(0) - rates[g == 0].mean(0)) > 1e-12 for g in groups])
    return outcome.T @ groups.T, groups.sum(axis=1), people, outcome.sum(axis=0), truth.T


def special_rank(noise):
    """Make columns uniform that are half a shared and half an own uniform number."""
    return np.where(noise < 0.5, 2 * noise**2, 1 - 2 * (1 - noise) ** 2)


@pytest.mark.parametrize("dependence", [False, True])
def test_flags_of_overlapping_groups_and_dependent_metrics_hold(dependence):
    generator = np.random.default_rng(5)
    wrong, result = [], []
    for _ in range(30):
        y, n, people, everyone, truth = overlapping(generator)
        p_values = flags.same_rate(y, n, everyone[:, None] - y, people - n)
        named = flags.flag(p_values, overlapping=dependence)
        wrong.append((named & ~truth).sum() / max(named.sum(), 1))
        result.append((named & truth).sum())
    assert np.mean(wrong) < (0.03 if dependence else 0.1) + 2 * np.std(wrong) / np.sqrt(30)
    assert np.mean(result) > 2


def test_certificates_of_all_groups_hold():
    generator = np.random.default_rng(6)
    n = np.resize([30, 200, 1000], 30)
    rates = np.resize([0.75, 0.85, 0.8, 0.95], 30)
    y = generator.binomial(n, rates, (2000, 30))
    bounds = np.array([flags.all_at_least(counts, n).bound for counts in y])
    assert (bounds <= 0.75).mean() > 0.95 - 0.01
    ceilings = np.array([flags.all_at_most(n - counts, n).bound for counts in y])
    assert ceilings == pytest.approx(1 - bounds)
    limits = np.array([flags.lower_limits(counts, n) for counts in y[:500]])
    assert (limits <= rates).all(axis=1).mean() > 0.93
    assert (limits.min(axis=1) < bounds[:500]).all()  # correcting would cost something
    named = np.array([flags.surely_over(counts, n, 0.8) for counts in y[:500]])
    assert (named & (rates <= 0.8)).any(axis=1).mean() < 0.07
    assert ((limits > 0.8) <= named).all()


def test_a_certificate_names_the_group_that_limits_it():
    certificate = flags.all_at_least([90, 0, 950], [100, 0, 1000])
    assert certificate == flags.Certificate(0.0, 1)
    certificate = flags.all_at_least([900, 8, 950], [1000, 10, 1000])
    assert certificate.group == 1
    assert certificate.bound == pytest.approx(stats.beta.ppf(0.05, 8, 3))
