"""Draws of confusion tables: their exact distributions, priors and sizes."""

import numpy as np
import pytest
from scipy import stats

from fairbench.inference.posterior import PRIORS, table_draws

COUNTS = np.array([[40.0, 7, 11, 22], [12.4, 3.3, 0, 5.3]])
DRAWS = 20000


def test_priors_are_those_of_the_paper():
    assert dict(PRIORS) == {"uniform": 1.0, "jeffreys": 0.5, "improper": 0.0}


@pytest.mark.parametrize("alpha", PRIORS.values())
def test_quantiles_of_every_cell_are_those_of_its_beta_distribution(alpha):
    tables = table_draws(COUNTS, DRAWS, np.random.default_rng(0), alpha=alpha)
    shares = tables / COUNTS.sum(axis=-1)[:, None]
    for cell in np.ndindex(COUNTS.shape):
        a, whole = COUNTS[cell] + alpha, COUNTS[cell[0]].sum() + 4 * alpha
        if a == 0:
            assert (shares[:, *cell] == 0).all()
            continue
        for level in (0.025, 0.25, 0.5, 0.975):
            below = (shares[:, *cell] < stats.beta(a, whole - a).ppf(level)).mean()
            assert abs(below - level) < 5 * np.sqrt(level * (1 - level) / DRAWS)


def test_posterior_tables_keep_the_sizes_of_the_groups():
    tables = table_draws(COUNTS, 50, np.random.default_rng(0))
    assert tables.shape == (50, 2, 4)
    np.testing.assert_allclose(tables.sum(axis=-1), np.tile(COUNTS.sum(axis=-1), (50, 1)))


def test_predictive_is_dirichlet_multinomial():
    counts = COUNTS[:1]
    tables = table_draws(counts, DRAWS, np.random.default_rng(1), predictive=True)
    exact = stats.dirichlet_multinomial(counts[0] + 1, int(counts.sum()))
    np.testing.assert_array_equal(tables, np.round(tables))
    error = np.sqrt(exact.var() / DRAWS)
    assert (np.abs(tables[:, 0].mean(axis=0) - exact.mean()) < 5 * error).all()
    np.testing.assert_allclose(tables[:, 0].var(axis=0), exact.var(), rtol=0.06)


def test_predictive_rounds_a_size_that_is_no_whole_number_at_random():
    sizes = table_draws(np.array([[1.5, 2.0, 0.5, 1.25]]), DRAWS, np.random.default_rng(2),
                        predictive=True).sum(axis=-1)  # fmt: skip
    assert set(np.unique(sizes)) == {5.0, 6.0}
    assert abs(sizes.mean() - 5.25) < 5 * np.sqrt(0.25 * 0.75 / DRAWS)


@pytest.mark.parametrize("predictive", [False, True])
def test_group_without_rows_draws_nothing(predictive):
    counts = np.array([[0, 0, 0, 0], [5, 5, 5, 5]])
    for alpha in (1.0, 0.0):
        tables = table_draws(
            counts, 10, np.random.default_rng(3), alpha=alpha, predictive=predictive
        )
        assert not np.nansum(tables[:, 0])
        assert (tables[:, 1].sum(axis=-1) > 0).all()
