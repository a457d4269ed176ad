"""Gauss rules and expected counts against sums over rows; the pool's noise against simulation."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.stats import qmc

from fairbench.components.papers.released_scores import partly_labelled
from fairbench.core.errors import UserError
from fairbench.inference import few_labels
from fairbench.metrics.registry import FN, TP
from tests.inference.few_labels.pools import labelled, pool, quadrature


def drawn(seed, theta=0.0, model=few_labels.BETA, *, groups=2, **options):
    """Return a generator, and a pool whose labels it drew with the same parameters everywhere."""
    generator = np.random.default_rng(seed)
    table = pool(generator, groups=groups, **options)
    theta = np.broadcast_to(theta, (groups, model.size))
    return generator, labelled(table, theta, generator, model)


def test_gauss_rule_integrates_polynomials_of_its_degree():
    values = np.random.default_rng(0).normal(size=1000)
    points, weights = few_labels._gauss_rule(values, 6)
    assert len(points) == 6
    for degree in range(12):
        scale = (np.abs(values) ** degree).sum()
        assert abs(weights @ points**degree - (values**degree).sum()) < 1e-10 * scale
    assert abs(weights @ points**12 - (values**12).sum()) > 1e-3 * (values**12).sum()


@pytest.mark.parametrize("values", [[], [0.3], [1.0, 1.0, 1.0, 2.0]])
def test_few_distinct_values_are_kept_as_they_are(values):
    points, weights = few_labels._gauss_rule(np.array(values), 3)
    np.testing.assert_array_equal(np.repeat(points, weights.astype(int)), sorted(values))


@pytest.mark.parametrize("rows", [40, 5000])
def test_expected_counts_are_sums_over_rows(rows):
    generator, model = np.random.default_rng(1), few_labels.BETA
    table = pool(generator, rows=rows, groups=3)
    normals = generator.standard_normal((200, (2 + 3) * model.size))
    coefficients = model.flat_coefficients(model.from_normals(normals, 3).reshape(200, -1))
    shown, cell = generator.permutation(rows)[:20], table.group * 2 + table.prediction
    hidden = np.setdiff1d(np.arange(rows), shown)
    known, unknown = (model.design(table.score[r], table.group[r], 3) for r in (shown, hidden))
    labels = few_labels._ShownLabels(known, np.zeros(0))
    family = few_labels.PosteriorFamily.of(table, generator)
    mean, variance, size = family.unlabelled(coefficients, labels, cell[shown])
    p = 1 / (1 + np.exp(-(coefficients @ unknown)))
    indicator = cell[hidden, None] == np.arange(6)
    np.testing.assert_allclose(mean, p @ indicator, atol=1e-5 * rows)
    np.testing.assert_allclose(variance, (p * (1 - p)) @ indicator, atol=1e-5 * rows)
    assert size.sum() == rows - 20


@pytest.mark.parametrize("size", [0, 3, 20, 400])
def test_noise_has_the_moments_of_a_sum_of_unequal_coins(size):
    generator = np.random.default_rng(2)
    p = generator.beta(2, 1, size)
    mean, variance = p.sum(), (p * (1 - p)).sum()
    moments = np.full((40_000, 1), mean), np.full((40_000, 1), variance)
    draws = few_labels._draw_positives(*moments, np.array([size]), generator)
    assert abs(draws.mean() - mean) <= 5 * np.sqrt(variance / 40_000)
    assert draws.var() == pytest.approx(variance, rel=0.1 if size > 10 else 0.3)
    assert draws.min() >= 0
    assert draws.max() <= size


def test_plug_in_adds_scores():
    table = partly_labelled([0.1, 0.4, 0.9, 0.8], list("aaab"), reference="a")
    np.testing.assert_allclose(few_labels.plug_in(table), [[1.5, 0.1, 0.5, 0.9], [0, 0.2, 0, 0.8]])


def test_plug_in_draws_scatter_as_labels_do_where_scores_are_true():
    generator, table = drawn(3, rows=600)
    draws = few_labels.plug_in_draws(table, generator, draws=4000)
    positives = draws[..., FN] + draws[..., TP]
    again = (labelled(table, np.zeros((2, 3)), generator, few_labels.BETA) for _ in range(1000))
    actual = [people.counts()[:, FN:].sum(axis=1) for people in again]
    np.testing.assert_allclose(positives.std(axis=0), np.std(actual, axis=0), rtol=0.12)
    np.testing.assert_allclose(positives.mean(axis=0), np.mean(actual, axis=0), atol=2)


# Partly labelled tables: defaults, coding of groups.

SCORE, GROUP = [0.2, 0.7, 0.6, 0.5], ["a", "b", "b", "c"]


def test_defaults():
    table = partly_labelled(SCORE, GROUP, [1, None, 0, np.nan], reference="b")
    assert table.groups == ("b", "a", "c")
    np.testing.assert_array_equal([table.group, table.prediction], [[1, 0, 0, 2], [0, 1, 1, 0]])
    np.testing.assert_array_equal(table.labelled, [0, 2])
    np.testing.assert_array_equal(table.counts(), [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]])
    np.testing.assert_array_equal(table.sizes(), [[0, 2], [1, 0], [1, 0]])


def test_labels_can_be_hidden_and_left_out():
    table = partly_labelled(SCORE, GROUP, [1, 0, 0, 1], reference="c")
    shown = table.showing(np.array([3]))
    assert (table.groups, shown.labelled.tolist()) == (("c", "a", "b"), [3])
    np.testing.assert_array_equal(shown.counts(), table.counts([3]))
    assert not partly_labelled(SCORE, GROUP, reference="a").labelled.size


# The calibration posterior: quadrature, limits, coverage where the model is true.

LONE = replace(few_labels.LLO, spread_sd=None)
OPPOSITE = replace(few_labels.LLO, mean_sd=(1.0, 2.0), signed=True)


MODELS = product((few_labels.LLO, LONE, OPPOSITE), (0, 6, 60), (0.5, -3.0))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("model", "labels", "slope", "share"),
    [*((*each, None) for each in MODELS), (few_labels.LLO, 30, 0.5, 2.0)],
)
def test_one_group_agrees_with_quadrature(model, labels, slope, share, monkeypatch):
    """Of importance sampling; and of chains, where no share of the draws would be enough."""
    if share:
        monkeypatch.setattr(few_labels, "_SMALLEST_SHARE", share)
    generator, table = drawn(labels, [slope, -1.0], model, groups=1)
    table = table.showing(np.arange(labels))
    posterior = few_labels.CalibrationPosterior.of(table, generator, model=model)
    exact = quadrature(model, table)
    error = exact[:, 1] / np.sqrt(1000)
    assert (np.abs(posterior.theta[:, 0].mean(axis=0) - exact[:, 0]) < 4.5 * error).all()
    np.testing.assert_allclose(posterior.theta[:, 0].std(axis=0), exact[:, 1], rtol=0.12)


def test_counts_keep_the_sizes_of_groups_and_of_all_labels_leave_nothing_open():
    generator, table = drawn(4, groups=3)
    posterior = few_labels.CalibrationPosterior.of(table, generator, draws=128)
    np.testing.assert_allclose(posterior.counts - table.counts(), 0, atol=1e-3)
    posterior = few_labels.CalibrationPosterior.of(
        table.showing(np.arange(12)), generator, draws=256
    )
    sizes = posterior.counts[..., :2] + posterior.counts[..., 2:]
    np.testing.assert_allclose(sizes, [table.sizes()] * 256)


def test_a_batch_gives_the_posterior_of_each_subset():
    generator, table = drawn(6)
    family = few_labels.PosteriorFamily.of(table, generator)
    for rows in (np.arange(5), np.arange(100, 160)):
        posterior = family.posterior(rows, generator)
        alone = few_labels.CalibrationPosterior.of(table.showing(rows), np.random.default_rng(1))
        error = alone.counts.std(axis=0) / np.sqrt(500)
        assert (np.abs(alone.counts.mean(0) - posterior.counts.mean(0)) < 5 * error).all()


def test_groups_that_share_nothing_learn_nothing_from_each_other():
    _, table = drawn(7, 1.0)
    table, beta = table.showing(np.flatnonzero(table.group == 0)), few_labels.BETA
    apart, shared = (
        few_labels.CalibrationPosterior.of(table, np.random.default_rng(0), model=model).theta[:, 1]
        for model in (few_labels.SEPARATE, beta)
    )
    np.testing.assert_allclose(apart.std(axis=0), few_labels.SEPARATE.mean_sd, rtol=0.1)
    assert shared.std(axis=0)[-1] < 0.8 * np.hypot(beta.mean_sd[-1], beta.spread_sd[-1])


def test_inverted_scores_are_drawn_without_chains(monkeypatch):
    generator, model = np.random.default_rng(8), few_labels.BETA
    table = pool(generator, rows=400)
    label = (generator.random(400) > table.score).astype(float)
    labels = few_labels._ShownLabels(model.design(table.score, table.group, 2), label)
    proposal = few_labels._Proposal.of(model, 2, 2048, generator)
    monkeypatch.setattr(few_labels, "_elliptical_slice", None)
    assert few_labels.sample(proposal, labels, generator)[:, 0, 0].mean() < -1


@pytest.mark.thorough
@pytest.mark.parametrize(("columns", "rows"), [(3, 64), (7, 2048)])
def test_multiples_of_irrational_numbers_fill_the_cube_more_evenly_than_chance(columns, rows):
    draws = [np.random.default_rng(seed) for seed in range(9)]
    ours = [qmc.discrepancy(few_labels._kronecker(columns, rows, draw)) for draw in draws]
    chance = [qmc.discrepancy(draw.random((rows, columns))) for draw in draws]
    assert max(ours) < min(chance)
    assert 3 * np.median(ours) < np.median(chance)


@pytest.mark.parametrize("draws", [64, 1000])
def test_draws_fill_a_sobol_set(draws):
    generator = np.random.default_rng(0)
    with pytest.raises(UserError, match=f"draws is {draws}"):
        few_labels.CalibrationPosterior.of(pool(generator), generator, draws=draws)


def test_points_stand_for_as_many_rows_as_there_are_and_are_as_likely():
    generator, table = drawn(10, rows=500)
    rows, model = np.arange(400), few_labels.BETA
    family = few_labels.PosteriorFamily.of(table, generator, label_nodes=few_labels.NODES)
    labels, cell = family.shown(rows)
    assert len(labels.label) < 100
    counts = np.zeros((table.n_groups, 2, 2))
    np.add.at(counts, (cell // 2, labels.label.astype(int), cell % 2), labels.weight)
    np.testing.assert_allclose(counts.reshape(-1, 4), table.counts(rows))
    coefficients = model.flat_coefficients(generator.normal(0, 0.5, (20, 2 * model.size)))
    all_rows, _ = replace(family, label_nodes=None).shown(rows)
    condensed, exact = (of.log_likelihood(coefficients) for of in (labels, all_rows))
    np.testing.assert_allclose(condensed, exact, atol=0.01)
