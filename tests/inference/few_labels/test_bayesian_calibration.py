"""The calibration posterior: quadrature, limits, coverage where the model is true."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import qmc

from fairbench.core.errors import UserError
from fairbench.inference.few_labels.bayesian_calibration import (
    bayesian_calibration,
    bayesian_calibrations,
)
from fairbench.inference.few_labels.calibration import BETA, LLO, SEPARATE, log_likelihood
from fairbench.inference.few_labels.frequentist import summarise
from fairbench.inference.few_labels.importance import Proposal, kronecker
from fairbench.inference.few_labels.pool import NODES, ShownLabels
from fairbench.inference.few_labels.sampler import sample
from fairbench.metrics.group import difference
from fairbench.metrics.rates import accuracy
from tests.inference.few_labels.pools import labelled, pool, quadrature

LONE = replace(LLO, spread_sd=None)
OPPOSITE = replace(LLO, mean_sd=(1.0, 2.0), signed=True)


@pytest.mark.parametrize(
    "model", [LLO, LONE, OPPOSITE], ids=["hierarchical", "separate", "of either sign"]
)
@pytest.mark.parametrize("labels", [0, 6, 60])
@pytest.mark.parametrize("slope", [0.5, -3.0])
def test_one_group_agrees_with_quadrature(model, labels, slope):
    generator = np.random.default_rng(labels)
    table = labelled(pool(generator, groups=1), np.array([[slope, -1.0]]), generator, model)
    table = table.showing(np.arange(labels))
    posterior = bayesian_calibration(table, generator, model=model)
    exact = quadrature(model, table)
    error = exact[:, 1] / np.sqrt(posterior.parameters.effective_size)
    assert (np.abs(posterior.theta[:, 0].mean(axis=0) - exact[:, 0]) < 4.5 * error).all()
    np.testing.assert_allclose(posterior.theta[:, 0].std(axis=0), exact[:, 1], rtol=0.12)


def test_chains_agree_with_quadrature(monkeypatch):
    monkeypatch.setattr("fairbench.inference.few_labels.sampler._SMALLEST_SHARE", 2.0)
    generator = np.random.default_rng(5)
    table = labelled(pool(generator, groups=1), np.array([[0.5, -1.0]]), generator, LLO)
    table = table.showing(np.arange(30))
    posterior = bayesian_calibration(table, generator, model=LLO)
    assert posterior.parameters.sampler == "elliptical_slice"
    exact = quadrature(LLO, table)
    error = exact[:, 1] / np.sqrt(posterior.parameters.effective_size)
    assert (np.abs(posterior.theta[:, 0].mean(axis=0) - exact[:, 0]) < 4.5 * error).all()
    np.testing.assert_allclose(posterior.theta[:, 0].std(axis=0), exact[:, 1], rtol=0.12)


def covered(table, generator, *, shown, pool_noise):
    """Return whether the interval from `shown` labels holds the pool's true difference."""
    truth = difference(accuracy, table.counts())[0]
    part = table.showing(generator.permutation(len(table.score))[:shown])
    posterior = bayesian_calibration(part, generator, draws=512, pool_noise=pool_noise)
    summary = summarise(difference(accuracy, posterior.counts)[:, 0])
    return summary.lower <= truth <= summary.upper


def coverage(replications, *, shown, pool_noise, seed):
    generator = np.random.default_rng(seed)
    table = pool(generator, rows=400)
    thetas = BETA.from_normals(generator.standard_normal((replications, BETA.normals(2))), 2)
    tables = (labelled(table, theta, generator, BETA) for theta in thetas)
    return np.mean([covered(t, generator, shown=shown, pool_noise=pool_noise) for t in tables])


@pytest.mark.thorough
def test_intervals_cover_where_the_model_is_true():
    # The standard error of 400 replications is 1.1 %.
    assert 0.91 < coverage(400, shown=10, pool_noise=True, seed=10) < 0.99


@pytest.mark.slow
@pytest.mark.parametrize("shown", [10, 40, 200])
def test_intervals_cover_at_their_nominal_level(shown):
    # The standard error of 3000 replications is 0.4 %.
    assert 0.935 < coverage(3000, shown=shown, pool_noise=True, seed=shown) < 0.965


@pytest.mark.thorough
def test_without_pool_noise_intervals_are_too_short():
    assert coverage(200, shown=200, pool_noise=False, seed=1) < 0.88


def test_all_labels_known_leaves_nothing_open():
    generator = np.random.default_rng(3)
    table = labelled(pool(generator), np.zeros((2, 3)), generator, BETA)
    posterior = bayesian_calibration(table, generator, draws=128)
    np.testing.assert_allclose(posterior.counts - table.counts(), 0, atol=1e-3)


def test_counts_keep_the_sizes_of_every_group_and_prediction():
    generator = np.random.default_rng(4)
    table = labelled(pool(generator, groups=3), np.zeros((3, 3)), generator, BETA)
    posterior = bayesian_calibration(table.showing(np.arange(12)), generator, draws=256)
    assert posterior.counts.shape == (256, 3, 4)
    sizes = posterior.counts[..., :2] + posterior.counts[..., 2:]
    np.testing.assert_allclose(sizes, np.broadcast_to(table.sizes(), sizes.shape))


def test_a_batch_gives_the_posterior_of_each_subset():
    generator = np.random.default_rng(6)
    table = labelled(pool(generator), np.zeros((2, 3)), generator, BETA)
    subsets = [np.arange(5), np.arange(100, 160)]
    batch = list(bayesian_calibrations(table, subsets, np.random.default_rng(0)))
    for rows, posterior in zip(subsets, batch, strict=True):
        alone = bayesian_calibration(table.showing(rows), np.random.default_rng(1))
        error = alone.counts.std(axis=0) / np.sqrt(500)
        assert (np.abs(alone.counts.mean(0) - posterior.counts.mean(0)) < 5 * error).all()


def test_groups_that_share_nothing_learn_nothing_from_each_other():
    generator = np.random.default_rng(7)
    table = labelled(pool(generator), np.full((2, 3), 1.0), generator, BETA)
    table = table.showing(np.flatnonzero(table.group == 0))
    apart, shared = (
        bayesian_calibration(table, np.random.default_rng(0), model=model).theta[:, 1].std(axis=0)
        for model in (SEPARATE, BETA)
    )
    np.testing.assert_allclose(apart, SEPARATE.mean_sd, rtol=0.1)
    assert shared[-1] < 0.8 * np.hypot(BETA.mean_sd[-1], BETA.spread_sd[-1])


def test_inverted_scores_are_drawn_without_chains():
    generator = np.random.default_rng(8)
    table = pool(generator, rows=400)
    label = (generator.random(400) > table.score).astype(float)
    design = BETA.design(table.score, table.group, 2)
    drawn = sample(Proposal.of(BETA, 2, 2048, generator), design, label, generator)
    assert drawn.sampler == "importance"
    assert drawn.theta[:, 0].mean() < -1


@pytest.mark.parametrize(("columns", "rows"), [(3, 64), (7, 2048)])
def test_multiples_of_irrational_numbers_fill_the_cube_more_evenly_than_chance(columns, rows):
    fills = (kronecker, lambda width, count, generator: generator.random((count, width)))
    result = [
        [qmc.discrepancy(fill(columns, rows, np.random.default_rng(seed))) for seed in range(9)]
        for fill in fills
    ]
    assert max(result[0]) < min(result[1])
    assert 3 * np.median(result[0]) < np.median(result[1])


@pytest.mark.parametrize("draws", [64, 1000])
def test_draws_fill_a_sobol_set(draws):
    generator = np.random.default_rng(0)
    with pytest.raises(UserError, match=f"draws is {draws}"):
        bayesian_calibration(pool(generator), generator, draws=draws)


@pytest.mark.parametrize("slope", [0.5, 3.0])
def test_points_that_stand_for_labelled_rows_give_the_same_posterior(slope):
    generator = np.random.default_rng(9)
    table = labelled(
        pool(generator, groups=2), np.full((2, 3), [np.log(slope), 0.0, 0.5]), generator, BETA
    )
    subsets = [np.arange(0), np.arange(9), np.arange(300)]
    exact, condensed = (
        list(bayesian_calibrations(table, subsets, np.random.default_rng(0), label_nodes=nodes))
        for nodes in (None, NODES)
    )
    for one, other in zip(exact, condensed, strict=True):
        np.testing.assert_allclose(other.counts.mean(axis=0), one.counts.mean(axis=0), rtol=1e-4)
        np.testing.assert_allclose(other.theta.std(axis=0), one.theta.std(axis=0), rtol=1e-3)


def test_points_stand_for_as_many_rows_as_there_are():
    generator = np.random.default_rng(10)
    table = labelled(pool(generator, rows=500), np.zeros((2, 3)), generator, BETA)
    rows = np.arange(400)
    labels = ShownLabels.of(table, rows, BETA, NODES)
    assert len(labels.label) < 100
    counts = np.zeros((table.n_groups, 2, 2))
    np.add.at(
        counts,
        (labels.cell // 2, labels.label.astype(int), labels.cell % 2),
        labels.weight,
    )
    np.testing.assert_allclose(counts.reshape(-1, 4), table.counts(rows))
    coefficients = BETA.coefficients(generator.normal(0, 0.5, (20, 2, 3))).reshape(20, -1)
    all_rows = ShownLabels.of(table, rows, BETA)
    np.testing.assert_allclose(
        log_likelihood(coefficients, labels.design, labels.label, labels.weight),
        log_likelihood(coefficients, all_rows.design, all_rows.label),
        atol=0.01,
    )
