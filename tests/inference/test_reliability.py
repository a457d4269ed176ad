"""The reliability diagram, and the ECE's posterior against quadrature, draws and simulation."""

import numpy as np
import pytest
from scipy import integrate, stats

from fairbench.inference.reliability import reliability_diagram
from fairbench.metrics.probability import reliability


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
