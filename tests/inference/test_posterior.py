"""The posterior of confusion counts: exact marginals, coverage, and resampled counts."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import integrate, stats

from fairbench.components.papers.black_box.estimation import probability_less
from fairbench.core.arrays import rng
from fairbench.data.columns import UNKNOWN, MulticlassScores
from fairbench.inference.posterior import (
    PRIORS,
    Beta,
    accuracy_posterior,
    central_interval,
    centred,
    confusion_posterior,
    cost_draws,
    expected_cost,
    independent_draws,
    joint_confusion,
    margins,
    paired_draws,
    posterior_draws,
    prior_from_scores,
    ranks,
    reliability_diagram,
    resampled_counts,
    score_prior,
    table_draws,
    uniform,
    uninformative_prior,
)
from fairbench.metrics.group import difference
from fairbench.metrics.probability import reliability
from fairbench.metrics.registry import BINARY, accuracy, confusion, metrics_of, selection_rate

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


# Beta posteriors against scipy, quadrature and closed forms.

SHAPES = [(1.0, 1.0), (5.0, 2.0), (0.5, 0.5), (30.0, 1.0), (1.998, 0.002), (400.0, 90.0)]
ALL = Beta(*np.array(SHAPES).T)


def test_moments_and_quantiles_are_those_of_scipy():
    oracle = stats.beta(ALL.successes, ALL.failures)
    np.testing.assert_allclose(ALL.mean, oracle.mean())
    np.testing.assert_allclose(ALL.variance, oracle.var())
    np.testing.assert_allclose(ALL.interval(0.9), oracle.interval(0.9), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("point", [0.0, 0.3, 0.95, 1.0])
def test_expected_distance_from_a_point_against_quadrature(point):
    for shape, error in zip(SHAPES, ALL.absolute_error(point), strict=True):
        oracle = stats.beta(*shape)
        below = integrate.quad(oracle.cdf, 0, point, limit=200)[0]
        above = integrate.quad(oracle.sf, point, 1, limit=200)[0]
        assert error == pytest.approx(below + above, abs=1e-8)


def test_comparison_of_whole_counts_against_the_closed_form():
    """P(theta_1 < theta_2) is a finite sum for whole parameters (Cook 2005)."""
    from scipy.special import betaln

    a, b, c, d = 4, 3, 6, 2
    i = np.arange(c)
    terms = betaln(a + i, b + d) - np.log(d + i) - betaln(1 + i, d) - betaln(a, b)
    value = probability_less(
        *(Beta(*np.array(parameters, float)) for parameters in ((a, b), (c, d)))
    )
    assert value == pytest.approx(np.exp(terms).sum(), abs=1e-9)


@pytest.mark.parametrize(("margin", "error"), [(0.0, 2e-4), (0.05, 2e-3), (-0.2, 2e-3)])
def test_comparison_against_quadrature(margin, error):
    grid = (np.arange(10000) + 0.5) / 10000
    pairs = Beta(ALL.successes[:, None], ALL.failures[:, None])
    less = probability_less(pairs, ALL, margin=margin)
    quantiles = stats.beta(pairs.successes, pairs.failures).ppf(grid)
    for (i, first), (j, second) in product(enumerate(SHAPES), repeat=2):
        # With a margin, a distribution that is all but a point at 1 is out of its reach.
        if first != second and not (margin and 0.002 in (*first, *second)):
            above = stats.beta(*second).sf(quantiles[i] + margin).mean()
            assert less[i, j] == pytest.approx(above, abs=error)


def test_a_share_is_less_than_its_like_half_of_the_time():
    pairs = Beta(ALL.successes[:4], ALL.failures[:4])
    np.testing.assert_allclose(probability_less(pairs, pairs), 0.5, atol=1e-8)


def test_priors_are_worth_their_strength():
    np.testing.assert_array_equal(uniform(3).successes, [1, 1, 1])
    prior = centred([0.2, 1.0], 10.0)
    np.testing.assert_allclose(prior.strength, 10)
    np.testing.assert_allclose(prior.mean, [0.2, 0.999])
    posterior = prior.after(np.array([8, 0]), np.array([2, 0]))
    np.testing.assert_allclose(posterior.mean, [0.5, 0.999])


# Draws of confusion tables: their exact distributions, priors and sizes.

DRAWN_COUNTS = np.array([[40.0, 7, 11, 22], [12.4, 3.3, 0, 5.3]])
MANY_DRAWS = 20000


def test_priors_are_those_of_the_paper():
    assert dict(PRIORS) == {"uniform": 1.0, "jeffreys": 0.5, "improper": 0.0}


@pytest.mark.parametrize("alpha", PRIORS.values())
def test_quantiles_of_every_cell_are_those_of_its_beta_distribution(alpha):
    tables = table_draws(DRAWN_COUNTS, MANY_DRAWS, np.random.default_rng(0), alpha=alpha)
    shares = tables / DRAWN_COUNTS.sum(axis=-1)[:, None]
    for cell in np.ndindex(DRAWN_COUNTS.shape):
        a, whole = DRAWN_COUNTS[cell] + alpha, DRAWN_COUNTS[cell[0]].sum() + 4 * alpha
        if a == 0:
            assert (shares[:, *cell] == 0).all()
            continue
        for level in (0.025, 0.25, 0.5, 0.975):
            below = (shares[:, *cell] < stats.beta(a, whole - a).ppf(level)).mean()
            assert abs(below - level) < 5 * np.sqrt(level * (1 - level) / MANY_DRAWS)


def test_posterior_tables_keep_the_sizes_of_the_groups():
    tables = table_draws(DRAWN_COUNTS, 50, np.random.default_rng(0))
    assert tables.shape == (50, 2, 4)
    np.testing.assert_allclose(tables.sum(axis=-1), np.tile(DRAWN_COUNTS.sum(axis=-1), (50, 1)))


def test_predictive_is_dirichlet_multinomial():
    counts = DRAWN_COUNTS[:1]
    tables = table_draws(counts, MANY_DRAWS, np.random.default_rng(1), predictive=True)
    exact = stats.dirichlet_multinomial(counts[0] + 1, int(counts.sum()))
    np.testing.assert_array_equal(tables, np.round(tables))
    error = np.sqrt(exact.var() / MANY_DRAWS)
    assert (np.abs(tables[:, 0].mean(axis=0) - exact.mean()) < 5 * error).all()
    np.testing.assert_allclose(tables[:, 0].var(axis=0), exact.var(), rtol=0.06)


def test_predictive_rounds_a_size_that_is_no_whole_number_at_random():
    sizes = table_draws(np.array([[1.5, 2.0, 0.5, 1.25]]), MANY_DRAWS, np.random.default_rng(2),
                        predictive=True).sum(axis=-1)  # fmt: skip
    assert set(np.unique(sizes)) == {5.0, 6.0}
    assert abs(sizes.mean() - 5.25) < 5 * np.sqrt(0.25 * 0.75 / MANY_DRAWS)


@pytest.mark.parametrize("predictive", [False, True])
def test_group_without_rows_draws_nothing(predictive):
    counts = np.array([[0, 0, 0, 0], [5, 5, 5, 5]])
    for alpha in (1.0, 0.0):
        tables = table_draws(
            counts, 10, np.random.default_rng(3), alpha=alpha, predictive=predictive
        )
        assert not np.nansum(tables[:, 0])
        assert (tables[:, 1].sum(axis=-1) > 0).all()


# Dirichlet posteriors of confusion matrices: counts of true classes, priors, costs.

SHARES = np.array([[0.7, 0.2, 0.1], [0.5, 0.2, 0.3], [0.1, 0.8, 0.1], [0.3, 0.4, 0.3]])
POOL = MulticlassScores(
    np.array([0, 2, 1, UNKNOWN]),
    SHARES.argmax(axis=1),
    SHARES.max(axis=1),
    ("a", "b", "c"),
    SHARES,
)


def test_true_classes_are_counted_in_the_row_of_the_predicted_one():
    by_prediction = confusion_posterior(POOL, uninformative_prior(3))
    np.testing.assert_array_equal(by_prediction, [[2, 1, 2], [1, 2, 1], [1, 1, 1]])


def test_score_prior_is_the_mean_distribution_of_the_rows_predicted_so():
    prior = prior_from_scores(POOL, strength=10)
    np.testing.assert_allclose(prior.sum(axis=1), 10)
    np.testing.assert_allclose(prior[0], 10 * (0.99 * SHARES[:2].mean(axis=0) + 0.01 / 3))
    np.testing.assert_allclose(prior[2], 10 / 3)


COSTS = np.array([[0.0, 1, 1, 7], [2, 0, 2, 2], [5, 1, 0, 1], [5, 1, 3, 0]])


@pytest.mark.parametrize("costs", [COSTS, 1 - np.eye(4)])
def test_cost_against_whole_confusion_matrices(costs):
    """Cells of equal cost are merged in draws; the moments are those without merging."""
    generator = np.random.default_rng(1)
    posterior = generator.gamma(2.0, size=(4, 4)) + 0.1
    mean, variance = expected_cost(posterior, costs)
    draws = cost_draws(posterior, costs, 40000, generator)
    plain = np.einsum("tkj,jk->tk", posterior_draws(posterior, 40000, generator, alpha=0.0), costs)
    for sample in (draws, plain):
        error = 5 * np.sqrt(variance / len(sample))
        assert (np.abs(sample.mean(axis=0) - mean) < error).all()
        np.testing.assert_allclose(sample.var(axis=0), variance, rtol=0.06)
    np.testing.assert_allclose(
        np.quantile(draws, [0.1, 0.9], axis=0), np.quantile(plain, [0.1, 0.9], axis=0), atol=0.08
    )
    if costs is not COSTS:
        right = np.diagonal(posterior)
        wrong = Beta(posterior.sum(axis=1) - right, right)
        np.testing.assert_allclose(mean, wrong.mean)
        np.testing.assert_allclose(variance, wrong.variance)


# The reliability diagram, and the ECE's posterior against quadrature, draws and simulation.


def pool(rows, generator, *, labels=None, n_groups=1, excess=0.0):
    """Return scores, groups, and labels of `labels` rows, right less often than scored."""
    score = generator.beta(4, 1.5, rows)
    correct = (generator.random(rows) < score * (1 - excess)).astype(float)
    correct[generator.permutation(rows)[rows if labels is None else labels :]] = np.nan
    return score, correct, generator.integers(n_groups, size=rows)


def test_counts_scores_and_priors_of_bins():
    score, correct = np.array([0.1, 0.35, 0.45, 0.5, 1.0]), np.array([0, 1, np.nan, 0, 1])
    diagram = reliability_diagram(score, correct, bins=2)
    np.testing.assert_allclose(diagram.weight, [[0.8, 0.2]])
    np.testing.assert_allclose(diagram.score, [[0.35, 1.0]])
    np.testing.assert_array_equal(diagram.labels, [[3, 1]])
    np.testing.assert_allclose(diagram.accuracy.successes, [[0.7 + 1, 1.998 + 1]])
    middle = reliability_diagram(score, correct, bins=2, strength=4, midpoints=True)
    np.testing.assert_allclose(middle.accuracy.failures, [[3 + 2, 1]])


def test_posterior_mean_of_the_error_against_quadrature():
    score, correct, _ = pool(300, np.random.default_rng(1), labels=60)
    diagram = reliability_diagram(score, correct, bins=5)
    total = 0.0
    for w, s, a, b in zip(
        diagram.weight[0],
        diagram.score[0],
        diagram.accuracy.successes[0],
        diagram.accuracy.failures[0],
        strict=True,
    ):
        density = stats.beta(a, b).pdf
        total += (
            w * integrate.quad(lambda t, s=s, f=density: abs(t - s) * f(t), 0, 1, points=[s])[0]
        )
    assert diagram.expected_calibration_error()[0] == pytest.approx(total, abs=1e-7)


def test_draws_have_the_closed_form_as_their_mean():
    generator = np.random.default_rng(2)
    score, correct, group = pool(400, generator, labels=150, n_groups=3)
    diagram = reliability_diagram(score, correct, group, n_groups=4)
    draws = diagram.calibration_error_draws(20000, generator)
    mean = diagram.expected_calibration_error()
    error = 5 * draws.std(axis=0)[:3] / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - mean)[:3] < error).all()
    assert np.isnan(mean[3])
    assert np.isnan(draws[:, 3]).all()


def test_with_many_labels_it_is_the_plain_error():
    score, correct, _ = pool(50000, np.random.default_rng(3), excess=0.2)
    plain = reliability(correct, score, bins=10).expected_calibration_error()
    diagram = reliability_diagram(score, correct)
    assert diagram.expected_calibration_error()[0] == pytest.approx(plain, abs=2e-3)


def test_intervals_cover_the_population_where_the_prior_holds():
    """Bins' accuracies are drawn from the prior itself, so that coverage is exact."""
    generator, worlds, covered = np.random.default_rng(4), 600, 0
    score = generator.beta(4, 1.5, 250)
    prior = reliability_diagram(score, np.full(250, np.nan), bins=5)
    cell = np.clip(np.ceil(score * 5).astype(int) - 1, 0, 4)
    for truth in prior.accuracy.draws(worlds, generator)[:, 0]:
        correct = (generator.random(250) < truth[cell]).astype(float)
        correct[100:] = np.nan
        draws = reliability_diagram(score, correct, bins=5).calibration_error_draws(400, generator)
        lower, upper = np.quantile(draws, [0.05, 0.95])
        covered += lower <= prior.weight[0] @ np.abs(truth - prior.score[0]) <= upper
    assert covered / worlds == pytest.approx(0.9, abs=5 * np.sqrt(0.09 / worlds))


# Posteriors of accuracy: counting, priors, and coverage over simulated populations.

CORRECT = np.array([1, 1, 0, np.nan, 0, 1])
GROUP = np.array([0, 0, 0, 0, 1, 1])


def test_labelled_rows_are_counted_by_group():
    posterior = accuracy_posterior(CORRECT, GROUP, uniform(3))
    np.testing.assert_array_equal(posterior.successes, [3, 2, 1])
    np.testing.assert_array_equal(posterior.failures, [2, 2, 1])


def test_score_prior_has_the_mean_score_of_all_rows():
    score = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.3])
    prior = score_prior(score, GROUP, 3, strength=10)
    np.testing.assert_allclose(prior.mean, [0.75, 0.4, 0.5])
    np.testing.assert_allclose(prior.strength, 10)


@pytest.mark.parametrize("strength", [2.0, 10.0])
def test_intervals_cover_accuracies_drawn_from_the_prior(strength):
    generator = np.random.default_rng(0)
    prior = score_prior(np.full(4000, 0.8), np.arange(4000), 4000, strength=strength)
    truth = prior.draws(1, generator)[0]
    group = np.repeat(np.arange(4000), 12)
    correct = (generator.random(len(group)) < truth[group]).astype(float)
    lower, upper = accuracy_posterior(correct, group, prior).interval(0.9)
    covered = ((lower <= truth) & (truth <= upper)).mean()
    assert covered == pytest.approx(0.9, abs=4 * np.sqrt(0.09 / 4000))


# Ranks and probabilities of being extreme, against quadrature for three arms.

ARMS = Beta(np.array([8.0, 7.0, 12.0]), np.array([4.0, 2.0, 3.0]))
ARM_DRAWS = ARMS.draws(40000, np.random.default_rng(0))
ERROR = 5 * 0.5 / np.sqrt(len(ARM_DRAWS))


def arm(g):
    return stats.beta(ARMS.successes[g], ARMS.failures[g])


def test_probability_of_being_least_accurate_against_quadrature():
    result = ranks(ARM_DRAWS, m=2, largest=False)
    for g in range(3):
        others = [arm(h) for h in range(3) if h != g]
        least, most = (
            integrate.quad(lambda t, g=g, o=o, n=n: arm(g).pdf(t) * getattr(o[0], n)(t)
                           * getattr(o[1], n)(t), 0, 1)[0]
            for o, n in ((others, "sf"), (others, "cdf"))
        )  # fmt: skip
        assert result["first"][g] == pytest.approx(least, abs=ERROR)
        assert result["among"][g] == pytest.approx(1 - most, abs=ERROR)
    assert result["first"].sum() == pytest.approx(1)
    assert result["among"].sum() == pytest.approx(2)


def test_expected_rank_is_one_plus_the_arms_that_are_probably_before():
    pairs = Beta(ARMS.successes[:, None], ARMS.failures[:, None])
    before = probability_less(ARMS, pairs)
    np.fill_diagonal(before, 0)
    np.testing.assert_allclose(
        ranks(ARM_DRAWS, largest=False)["mean"], 1 + before.sum(axis=1), atol=2 * ERROR
    )


def test_order_and_interval():
    draws = np.array([[0.1, 0.3, 0.2]] * 9 + [[0.4, 0.3, 0.2]])
    result = ranks(draws)
    np.testing.assert_allclose(result["first"], [0.1, 0.9, 0])
    np.testing.assert_allclose(result["mean"], [2.8, 1.1, 2.1])
    np.testing.assert_array_equal(result["lower"], [1, 1, 2])
    np.testing.assert_array_equal(result["upper"], [3, 2, 3])
    np.testing.assert_allclose(ranks(draws, largest=False)["first"], [0.9, 0, 0.1])


# Joint tables of two algorithms: their margins, and what pairing does to the variance.

JOINT = np.array([[60, 5, 6, 9, 12, 4, 5, 39]])
JOINT_DRAWS = 40000


@pytest.mark.parametrize("n_classes", [2, 3])
def test_margins_are_each_algorithms_own_confusion(n_classes):
    draw = np.random.default_rng(0)
    target, first, second = draw.integers(n_classes, size=(3, 500))
    group = draw.integers(3, size=500)
    joint = joint_confusion(target, first, second, group, n_groups=4, n_classes=n_classes)
    assert joint.shape == (4, n_classes**3)
    for mine, prediction in zip(margins(joint), (first, second), strict=True):
        expected = confusion(target, prediction, group, n_groups=4, n_classes=n_classes)
        np.testing.assert_array_equal(mine, expected.reshape(4, -1))


def accuracy_difference(tables):
    first, second = tables
    return (accuracy(first) - accuracy(second))[:, 0]


def test_paired_variance_is_the_closed_form():
    """A - B is the difference of two Dirichlet sums: A right and B wrong, minus the reverse."""
    values = accuracy_difference(paired_draws(JOINT, JOINT_DRAWS, np.random.default_rng(1)))
    weights = JOINT[0] + 0.5
    whole = weights.sum()
    # Cells are (target, A, B): A alone is right in 001 and 110, B alone in 010 and 101.
    p, q = weights[[0b001, 0b110]].sum() / whole, weights[[0b010, 0b101]].sum() / whole
    variance = (p + q - (p - q) ** 2) / (whole + 1)
    assert abs(values.mean() - (p - q)) < 5 * np.sqrt(variance / JOINT_DRAWS)
    np.testing.assert_allclose(values.var(), variance, rtol=5 * np.sqrt(2 / JOINT_DRAWS))


def test_independent_variance_is_the_sum_of_the_betas():
    first, second = margins(JOINT)
    draws = independent_draws(first, second, JOINT_DRAWS, np.random.default_rng(2))
    variance = 0.0
    for counts in (first, second):
        right, whole = counts[0, [0, 3]].sum() + 2, counts.sum() + 4
        variance += right * (whole - right) / whole**2 / (whole + 1)
    values = accuracy_difference(draws)
    np.testing.assert_allclose(values.var(), variance, rtol=5 * np.sqrt(2 / JOINT_DRAWS))
    paired = accuracy_difference(paired_draws(JOINT, JOINT_DRAWS, np.random.default_rng(1)))
    assert paired.var() < values.var()


def test_each_algorithm_alone_has_the_same_posterior_paired_or_not():
    paired = paired_draws(JOINT, JOINT_DRAWS, np.random.default_rng(3))
    alone = independent_draws(*margins(JOINT), JOINT_DRAWS, np.random.default_rng(4))
    for one, other in zip(paired, alone, strict=True):
        error = 5 * one.std(axis=0) / np.sqrt(JOINT_DRAWS / 2)
        assert (np.abs(one.mean(axis=0) - other.mean(axis=0)) < error).all()
        np.testing.assert_allclose(one.std(axis=0), other.std(axis=0), rtol=0.03)


def test_predictive_margins_are_counts_of_the_same_rows():
    first, second = paired_draws(JOINT, 100, np.random.default_rng(5), predictive=True)
    assert (first.sum(axis=-1) == JOINT.sum()).all()
    positives = first[..., 2:].sum(axis=-1)
    np.testing.assert_array_equal(positives, second[..., 2:].sum(axis=-1))
