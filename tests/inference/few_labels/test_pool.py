"""Gauss rules and expected counts against sums over rows; the pool's noise against simulation."""

import numpy as np
import pytest

from fairbench.inference.few_labels.calibration import BETA
from fairbench.inference.few_labels.pool import (
    Pool,
    draw_positives,
    gauss_rule,
    plug_in,
    plug_in_draws,
)
from fairbench.inference.few_labels.table import PartlyLabelled
from fairbench.metrics.rates import FN, TP
from tests.inference.few_labels.pools import labelled, pool


def test_gauss_rule_integrates_polynomials_of_its_degree():
    values = np.random.default_rng(0).normal(size=1000)
    points, weights = gauss_rule(values, 6)
    assert len(points) == 6
    for degree in range(12):
        scale = (np.abs(values) ** degree).sum()
        assert abs(weights @ points**degree - (values**degree).sum()) < 1e-10 * scale
    assert abs(weights @ points**12 - (values**12).sum()) > 1e-3 * (values**12).sum()


@pytest.mark.parametrize("values", [[], [0.3], [1.0, 1.0, 1.0, 2.0]])
def test_few_distinct_values_are_kept_as_they_are(values):
    points, weights = gauss_rule(np.array(values), 3)
    np.testing.assert_array_equal(np.repeat(points, weights.astype(int)), sorted(values))


def expected(table, theta, shown):
    """Return means and variances of positives per cell, one row after the other."""
    design = BETA.design(table.score, table.group, table.n_groups)
    p = 1 / (1 + np.exp(-(BETA.flat_coefficients(theta) @ design)))
    hidden = np.setdiff1d(np.arange(len(table.score)), shown)
    cell = (table.group * 2 + table.prediction)[hidden]
    indicator = cell[:, None] == np.arange(2 * table.n_groups)
    p = p[:, hidden]
    return p @ indicator, (p * (1 - p)) @ indicator


@pytest.mark.parametrize("rows", [40, 5000])
def test_expected_counts_are_sums_over_rows(rows):
    generator = np.random.default_rng(1)
    table = pool(generator, rows=rows, groups=3)
    theta = BETA.from_normals(generator.standard_normal((200, BETA.normals(3))), 3).reshape(200, -1)
    shown = generator.permutation(rows)[:20]
    cell = (table.group * 2 + table.prediction)[shown]
    design = BETA.design(table.score[shown], table.group[shown], 3)
    coefficients = BETA.flat_coefficients(theta)
    mean, variance, size = Pool.of(table, BETA).unlabelled(coefficients, design, cell)
    exact = expected(table, theta, shown)
    np.testing.assert_allclose(mean, exact[0], atol=1e-5 * rows)
    np.testing.assert_allclose(variance, exact[1], atol=1e-5 * rows)
    assert size.sum() == rows - 20


@pytest.mark.parametrize("size", [3, 20, 400])
def test_noise_has_the_moments_of_a_sum_of_unequal_coins(size):
    generator = np.random.default_rng(2)
    p = generator.beta(2, 1, size)
    mean, variance = p.sum(), (p * (1 - p)).sum()
    draws = draw_positives(
        np.full((40_000, 1), mean), np.full((40_000, 1), variance), np.array([size]), generator
    )
    assert abs(draws.mean() - mean) < 5 * np.sqrt(variance / 40_000)
    assert draws.var() == pytest.approx(variance, rel=0.1 if size > 10 else 0.3)
    assert draws.min() >= 0
    assert draws.max() <= size


def test_cells_without_unlabelled_rows_have_no_noise():
    nothing = np.zeros((5, 1))
    draws = draw_positives(nothing, nothing, np.zeros(1), np.random.default_rng(0))
    np.testing.assert_array_equal(draws, 0)


def test_plug_in_adds_scores():
    table = PartlyLabelled.of([0.1, 0.4, 0.9, 0.8], ["a", "a", "a", "b"])
    np.testing.assert_allclose(plug_in(table), [[1.5, 0.1, 0.5, 0.9], [0, 0.2, 0, 0.8]])


def test_plug_in_draws_scatter_as_labels_do_where_scores_are_true():
    generator = np.random.default_rng(3)
    table = pool(generator, rows=600)
    draws = plug_in_draws(table, generator, draws=4000)
    positives = draws[..., FN] + draws[..., TP]
    actual = [
        labelled(table, np.zeros((2, 3)), generator, BETA).counts()[:, FN:].sum(axis=1)
        for _ in range(1000)
    ]
    np.testing.assert_allclose(positives.std(axis=0), np.std(actual, axis=0), rtol=0.12)
    np.testing.assert_allclose(positives.mean(axis=0), np.mean(actual, axis=0), atol=2)
