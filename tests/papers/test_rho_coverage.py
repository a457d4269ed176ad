"""What the coverage study rests on: its fits, its populations, and Bayle et al.'s interval."""

import numpy as np
from sklearn.linear_model import LogisticRegression

from fairbench.components.papers.uncertainty_matters.rho_coverage import (
    FOLDS,
    Sample,
    bayle_interval,
    cross_validated,
    fit,
    replicate,
)


def test_batched_fits_are_scikit_learns():
    data = Sample.draw(300, np.random.default_rng(0))
    used = np.random.default_rng(1).random((3, 300)) < 0.6
    model = LogisticRegression(fit_intercept=False, tol=1e-10, max_iter=500)
    for mine, rows in zip(fit(data.X, data.target, used), used, strict=True):
        expected = model.fit(data.X[rows], data.target[rows]).coef_[0]
        np.testing.assert_allclose(mine, expected, atol=1e-5)


def test_every_row_is_predicted_by_a_model_that_did_not_see_it():
    data = Sample.draw(200, np.random.default_rng(2))
    part = np.arange(0, 200, 2)
    ((predicted, fold),) = cross_validated(data, [part], slice(None), np.random.default_rng(3))
    assert np.bincount(fold).tolist() == [10] * FOLDS
    for k in (0, FOLDS - 1):
        used = np.zeros((1, 200), bool)
        used[0, part[fold != k]] = True
        beta = fit(data.X, data.target, used)[0]
        held_out = part[fold == k]
        np.testing.assert_array_equal(predicted[fold == k], data.X[held_out] @ beta > 0)


def test_bayle_interval_covers_a_mean_of_independent_values():
    draw, covered = np.random.default_rng(4), 0
    fold = np.arange(200) % FOLDS
    for _ in range(500):
        low, high = bayle_interval(draw.normal(1, 2, size=200), fold)
        covered += low <= 1 <= high
    assert abs(covered / 500 - 0.95) < 5 * np.sqrt(0.95 * 0.05 / 500)


def test_replications_count_every_row_and_are_reproducible():
    one, other = replicate(100, 3), replicate(100, 3)
    assert one.joint.sum() == 100
    assert one.ratio > 0
    np.testing.assert_array_equal(one.joint, other.joint)
    assert one.bayle == other.bayle
