"""What posteriors say of known populations: how often they hold the truth, and of copied rows."""

import numpy as np
from sklearn.linear_model import LogisticRegression

from fairbench.components.papers.uncertainty_matters import simulated


def test_batched_fits_are_scikit_learns():
    data = simulated.Sample.draw(300, np.random.default_rng(0))
    used = np.random.default_rng(1).random((3, 300)) < 0.6
    model = LogisticRegression(fit_intercept=False, tol=1e-10, max_iter=500)
    for mine, rows in zip(simulated.fit(data.X, data.target, used), used, strict=True):
        expected = model.fit(data.X[rows], data.target[rows]).coef_[0]
        np.testing.assert_allclose(mine, expected, atol=1e-5)


def test_every_row_is_predicted_by_a_model_that_did_not_see_it():
    data = simulated.Sample.draw(200, np.random.default_rng(2))
    part = np.arange(0, 200, 2)
    ((predicted, fold),) = simulated.cross_validated(
        data, [part], slice(None), np.random.default_rng(3)
    )
    assert np.bincount(fold).tolist() == [10] * simulated.FOLDS
    for k in (0, simulated.FOLDS - 1):
        used = np.zeros((1, 200), bool)
        used[0, part[fold != k]] = True
        beta = simulated.fit(data.X, data.target, used)[0]
        held_out = part[fold == k]
        np.testing.assert_array_equal(predicted[fold == k], data.X[held_out] @ beta > 0)


def test_bayle_interval_covers_a_mean_of_independent_values():
    draw, covered = np.random.default_rng(4), 0
    fold = np.arange(200) % simulated.FOLDS
    for _ in range(500):
        low, high = simulated.bayle_interval(draw.normal(1, 2, size=200), fold)
        covered += low <= 1 <= high
    assert abs(covered / 500 - 0.95) < 5 * np.sqrt(0.95 * 0.05 / 500)


def test_replications_count_every_row_and_are_reproducible():
    one, other = simulated.replicate(100, 3), simulated.replicate(100, 3)
    assert one.joint.sum() == 100
    assert one.ratio > 0
    np.testing.assert_array_equal(one.joint, other.joint)
    assert one.bayle == other.bayle


def test_intervals_hold_the_truth_until_rows_are_copied():
    population = simulated.Population()
    as_it_is, copied = (simulated.coverage(population, factor, 600) for factor in (1, 4))
    # Five standard errors of a share of 600 are 0.045 at 95 %.
    assert as_it_is[0] > 0.90
    assert copied[0] < 0.80
    assert copied[1] < 0.7 * as_it_is[1]


def test_copies_keep_the_share_in_the_mean():
    result = np.full(4000, 15)
    copied = simulated.upsampled(result, 20, 5, np.random.default_rng(0))
    assert abs(copied.mean() / 100 - 0.75) < 0.005
    assert copied.min() >= 15 and copied.max() <= 15 + 80
    np.testing.assert_array_equal(
        simulated.upsampled(result, 20, 1, np.random.default_rng(0)), result
    )


def test_the_figure_shows_both():
    left, right = simulated.figure(simulated.Population(), {1: (0.95, 0.3), 4: (0.7, 0.2)}).axes
    assert [text.get_text() for text in left.get_legend().get_texts()][-1] == "true gap"
    assert right.get_ylim()[1] == 100
