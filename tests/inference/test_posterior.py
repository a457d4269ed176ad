"""Posteriors of shares, of confusion counts, and of what follows from them: exact marginals."""

import numpy as np
import pytest
from scipy import integrate, stats

from fairbench.data.columns import UNKNOWN, MulticlassScores
from fairbench.inference import posterior as posteriors
from fairbench.inference.gaps import cells_of
from fairbench.metrics.registry import accuracy, confusion


@pytest.mark.parametrize(("level", "low", "high"), [(0.95, 25, 975), (0.5, 250, 750)])
def test_central_interval_returns_order_statistics_and_nan_of_a_column_with_one(level, low, high):
    samples = np.random.default_rng(0).permutation(1001).astype(float)
    columns = np.stack([samples, 1000 - samples, samples, samples], axis=1).reshape(1001, 2, 2)
    columns[7, 1, 1] = np.nan
    before = columns.copy()
    ends = np.array(posteriors.central_interval(columns, level))
    np.testing.assert_array_equal(ends.reshape(2, 4).T, [[low, high]] * 3 + [[np.nan] * 2])
    np.testing.assert_array_equal(columns, before)


# Beta posteriors against scipy, quadrature and closed forms.

SHAPES = [(1.0, 1.0), (5.0, 2.0), (0.5, 0.5), (30.0, 1.0), (1.998, 0.002), (400.0, 90.0)]
ALL = posteriors.Beta(*np.array(SHAPES).T)


def test_moments_and_quantiles_are_those_of_scipy():
    oracle = stats.beta(ALL.successes, ALL.failures)
    np.testing.assert_allclose(ALL.mean, oracle.mean())
    np.testing.assert_allclose(ALL.variance, oracle.var())
    np.testing.assert_allclose(ALL.interval(0.9), oracle.interval(0.9), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("point", [0.0, 0.3, 0.95, 1.0])
def test_expected_distance_from_a_point_against_quadrature(point):
    for shape, error in zip(SHAPES, ALL.absolute_error(point), strict=True):
        oracle = stats.beta(*shape)
        ends = (oracle.cdf, 0, point), (oracle.sf, point, 1)
        assert error == pytest.approx(sum(integrate.quad(*e, limit=200)[0] for e in ends), abs=1e-8)


def test_priors_are_worth_their_strength():
    np.testing.assert_array_equal(posteriors.uniform(3).successes, [1, 1, 1])
    prior = posteriors.centred([0.2, 1.0], 10.0)
    after = prior.after(np.array([8, 0]), np.array([2, 0]))
    expected = [[10, 10], [0.2, 0.999], [0.5, 0.999]]
    np.testing.assert_allclose([prior.strength, prior.mean, after.mean], expected)


# Draws of confusion tables: their exact distributions, priors and sizes.

DRAWN_COUNTS = np.array([[40.0, 7, 11, 22], [12.4, 3.3, 0, 5.3]])
MANY_DRAWS = 20000


@pytest.mark.parametrize("alpha", [1, 0.5, 0])
def test_quantiles_of_every_cell_are_those_of_its_beta_distribution(alpha):
    draw, whole = np.random.default_rng(0), DRAWN_COUNTS.sum(axis=-1, keepdims=True)
    tables = posteriors.table_draws(DRAWN_COUNTS, MANY_DRAWS, draw, alpha=alpha)
    a = DRAWN_COUNTS + alpha
    assert (tables[:, a == 0] == 0).all()
    for level in (0.025, 0.25, 0.5, 0.975):
        cut = stats.beta(a, whole + 4 * alpha - a).ppf(level)
        below = (tables / whole < cut).mean(axis=0)[a > 0]
        assert (abs(below - level) < 5 * np.sqrt(level * (1 - level) / MANY_DRAWS)).all()


def test_predictive_is_dirichlet_multinomial():
    counts, draw = DRAWN_COUNTS[:1], np.random.default_rng(1)
    tables = posteriors.table_draws(counts, MANY_DRAWS, draw, predictive=True)[:, 0]
    exact = stats.dirichlet_multinomial(counts[0] + 1, int(counts.sum()))
    np.testing.assert_array_equal(tables, np.round(tables))
    error = np.sqrt(exact.var() / MANY_DRAWS)
    assert (np.abs(tables.mean(axis=0) - exact.mean()) < 5 * error).all()
    np.testing.assert_allclose(tables.var(axis=0), exact.var(), rtol=0.06)


def test_predictive_rounds_a_size_that_is_no_whole_number_at_random():
    counts, generator = np.array([[1.5, 2.0, 0.5, 1.25]]), np.random.default_rng(2)
    tables = posteriors.table_draws(counts, MANY_DRAWS, generator, predictive=True)
    sizes = tables.sum(axis=-1)
    assert set(np.unique(sizes)) == {5.0, 6.0}
    assert abs(sizes.mean() - 5.25) < 5 * np.sqrt(0.25 * 0.75 / MANY_DRAWS)


@pytest.mark.parametrize("predictive", [False, True])
def test_posterior_tables_keep_sizes_and_leading_axes_and_draw_nothing_of_an_empty_group(
    predictive,
):
    counts = np.arange(48).reshape(2, 6, 4) * (np.arange(6) != 2)[:, None]
    for alpha in (1.0, 0.0):
        tables = posteriors.table_draws(
            counts, 50, np.random.default_rng(3), alpha=alpha, predictive=predictive
        )
        assert tables.shape == (50, 2, 6, 4)
        sizes = np.tile(counts.sum(axis=-1), (50, 1, 1))
        np.testing.assert_allclose(np.nansum(tables, axis=-1), sizes)


# Dirichlet posteriors of confusion matrices: counts of true classes, priors, costs.

SHARES = np.array([[0.7, 0.2, 0.1], [0.5, 0.2, 0.3], [0.1, 0.8, 0.1], [0.3, 0.4, 0.3]])
POOL = MulticlassScores(
    np.array([0, 2, 1, UNKNOWN]), SHARES.argmax(axis=1), SHARES.max(axis=1), tuple("abc"), SHARES
)


def test_true_classes_are_counted_in_the_row_of_the_predicted_one():
    by_prediction = posteriors.confusion_posterior(POOL, posteriors.uninformative_prior(3))
    np.testing.assert_array_equal(by_prediction, [[2, 1, 2], [1, 2, 1], [1, 1, 1]])


def test_score_prior_is_the_mean_distribution_of_the_rows_predicted_so():
    prior = posteriors.prior_from_scores(POOL, strength=10)
    np.testing.assert_allclose(prior.sum(axis=1), 10)
    np.testing.assert_allclose(prior[0], 10 * (0.99 * SHARES[:2].mean(axis=0) + 0.01 / 3))
    np.testing.assert_allclose(prior[2], 10 / 3)


COSTS = np.array([[0.0, 1, 1, 7], [2, 0, 2, 2], [5, 1, 0, 1], [5, 1, 3, 0]])


@pytest.mark.parametrize("costs", [COSTS, 1 - np.eye(4)])
def test_cost_against_whole_confusion_matrices(costs):
    """Cells of equal cost are merged in draws; the moments are those without merging."""
    generator = np.random.default_rng(1)
    posterior = generator.gamma(2.0, size=(4, 4)) + 0.1
    mean, variance = posteriors.expected_cost(posterior, costs)
    draws = posteriors.cost_draws(posterior, costs, 40000, generator)
    matrices = posteriors.posterior_draws(posterior, 40000, generator, alpha=0.0)
    plain = (matrices * costs.T).sum(axis=-1)
    for sample in (draws, plain):
        error = 5 * np.sqrt(variance / len(sample))
        assert (np.abs(sample.mean(axis=0) - mean) < error).all()
        np.testing.assert_allclose(sample.var(axis=0), variance, rtol=0.06)
    ends = (np.quantile(sample, [0.1, 0.9], axis=0) for sample in (draws, plain))
    np.testing.assert_allclose(*ends, atol=0.08)
    if costs is not COSTS:
        right = np.diagonal(posterior)
        wrong = posteriors.Beta(posterior.sum(axis=1) - right, right)
        np.testing.assert_allclose([mean, variance], [wrong.mean, wrong.variance])


# The reliability diagram, and the ECE's posterior.


def test_counts_scores_and_priors_of_bins():
    score, correct = np.array([0.1, 0.35, 0.45, 0.5, 1.0]), np.array([0, 1, np.nan, 0, 1])
    diagram = posteriors.reliability_diagram(score, correct, bins=2)
    for found, expected in (
        (diagram.weight, [0.8, 0.2]), (diagram.score, [0.35, 1.0]), (diagram.labels, [3, 1]),
        (diagram.accuracy.successes, [0.7 + 1, 1.998 + 1]),
    ):  # fmt: skip
        np.testing.assert_allclose(found, [expected])
    middle = posteriors.reliability_diagram(score, correct, bins=2, strength=4, midpoints=True)
    np.testing.assert_allclose(middle.accuracy.failures, [[3 + 2, 1]])


def test_draws_have_the_closed_form_as_their_mean():
    generator = np.random.default_rng(2)
    score, group = generator.beta(4, 1.5, 400), generator.integers(3, size=400)
    correct = np.where(np.arange(400) < 150, generator.random(400) < score, np.nan)
    diagram = posteriors.reliability_diagram(score, correct, group, n_groups=4)
    draws = diagram.calibration_error_draws(20000, generator)
    off = np.abs(draws.mean(axis=0) - diagram.expected_calibration_error())
    assert (off < 5 * draws.std(axis=0) / np.sqrt(len(draws)))[:3].all()
    assert np.isnan(diagram.expected_calibration_error()[3])
    assert np.isnan(draws[:, 3]).all()


# Posteriors of accuracy.


def test_labelled_rows_are_counted_by_group_and_the_prior_has_the_mean_score_of_all_rows():
    correct, group = np.array([1, 1, 0, np.nan, 0, 1]), np.array([0, 0, 0, 0, 1, 1])
    posterior = posteriors.accuracy_posterior(correct, group, posteriors.uniform(3))
    counted = posterior.successes, posterior.failures
    np.testing.assert_array_equal(counted, [[3, 2, 1], [2, 2, 1]])
    prior = posteriors.score_prior(np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.3]), group, 3, strength=10)
    np.testing.assert_allclose([prior.mean, prior.strength], [[0.75, 0.4, 0.5], [10] * 3])


# Ranks and probabilities of being extreme, by hand.


def test_order_and_interval():
    draws = np.array([[0.1, 0.3, 0.2]] * 9 + [[0.4, 0.3, 0.2]])
    result = posteriors.ranks(draws)
    expected = {
        "first": [0.1, 0.9, 0], "mean": [2.8, 1.1, 2.1], "lower": [1, 1, 2], "upper": [3, 2, 3],
    }  # fmt: skip
    for name, values in expected.items():
        np.testing.assert_allclose(result[name], values)
    smallest = posteriors.ranks(draws, largest=False)
    np.testing.assert_allclose(smallest["first"], [0.9, 0, 0.1])


# Joint tables of two algorithms: their margins, and what pairing does to the variance.

JOINT = np.array([[6, 1, 1, 2, 2, 0, 1, 4]])  # so few that the prior matters
JOINT_DRAWS = 40000


def test_margins_are_each_algorithms_own_confusion():
    draw = np.random.default_rng(0)
    (target, *predictions), group = draw.integers(2, size=(3, 500)), draw.integers(3, size=500)
    joint = cells_of(target, *predictions, group, groups=4)
    for mine, prediction in zip(posteriors.margins(joint), predictions, strict=True):
        expected = confusion(target, prediction, group, n_groups=4)
        np.testing.assert_array_equal(mine, expected.reshape(4, -1))


def test_variances_of_a_difference_are_the_closed_forms_paired_or_not():
    """A - B is the difference of two Dirichlet sums: A right and B wrong, minus the reverse."""
    alone, many = posteriors.margins(JOINT), JOINT_DRAWS
    drawn = (
        posteriors.paired_draws(JOINT, many, np.random.default_rng(1)),
        posteriors.independent_draws(*alone, many, np.random.default_rng(2)),
    )
    weights = JOINT[0] + 0.5
    whole = weights.sum()
    # Cells are (target, A, B): A alone is right in 001 and 110, B alone in 010 and 101.
    p, q = weights[[0b001, 0b110]].sum() / whole, weights[[0b010, 0b101]].sum() / whole
    paired = (p + q - (p - q) ** 2) / (whole + 1)
    right, whole = np.array([counts[0, [0, 3]].sum() + 2 for counts in alone]), JOINT.sum() + 4
    independent = (right * (whole - right) / whole**2 / (whole + 1)).sum()
    for (first, second), variance in zip(drawn, (paired, independent), strict=True):
        values = (accuracy(first) - accuracy(second))[:, 0]
        np.testing.assert_allclose(values.var(), variance, rtol=5 * np.sqrt(2 / many))
        assert abs(values.mean() - (p - q)) < 5 * np.sqrt(variance / many)


def test_predictive_margins_are_counts_of_the_same_rows():
    first, second = posteriors.paired_draws(JOINT, 100, np.random.default_rng(5), predictive=True)
    assert (first.sum(axis=-1) == JOINT.sum()).all()
    np.testing.assert_array_equal(first[..., 2:].sum(axis=-1), second[..., 2:].sum(axis=-1))
