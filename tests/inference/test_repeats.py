"""Whole runs: repeats that share rows are averaged with the corrected variance."""

import numpy as np
import pytest
from scipy import stats

from fairbench.inference.repeats import mean_table_draws, no_narrower

SHARE, DRAWS = 0.2, 40_000


def test_linear_quantities_of_drawn_tables_are_the_corrected_t():
    generator = np.random.default_rng(0)
    tables = generator.multinomial(400, np.full(8, 1 / 8), size=10).reshape(10, 2, 4) / 400
    drawn = mean_table_draws(tables, SHARE, draws=DRAWS, generator=generator)
    accuracy = drawn[..., [0, 3]].sum(axis=(-1, -2))
    own = tables[..., [0, 3]].sum(axis=(-1, -2))
    scale = np.sqrt((1 / 10 + SHARE / (1 - SHARE)) * own.var(ddof=1))
    for level in (0.025, 0.2, 0.5, 0.975):
        exact = own.mean() + scale * stats.t.ppf(level, 9)
        below = (accuracy < exact).mean()
        assert below == pytest.approx(level, abs=5 * np.sqrt(level * (1 - level) / DRAWS))


def test_cells_are_never_below_zero():
    tables = np.array([[0.0, 1.0], [0.3, 0.7]])
    assert (mean_table_draws(tables, 0.5, draws=500, generator=np.random.default_rng(1)) >= 0).all()


def test_repeats_that_all_agree_are_not_certain():
    generator = np.random.default_rng(2)
    counted = generator.normal(0, 1, (5000, 2))
    draws = np.column_stack([np.full(4000, 0.1), generator.normal(3, 2, 4000)])
    found = no_narrower(draws, counted)
    assert found[:, 0].std() == pytest.approx(0.5, rel=0.1)
    assert found[:, 0].mean() == pytest.approx(0.1, abs=0.05)
    np.testing.assert_array_equal(found[:, 1], draws[:, 1])


def test_draws_that_vary_too_little_are_stretched_around_their_median():
    generator = np.random.default_rng(3)
    counted, draws = generator.normal(0, 1, (5000, 1)), generator.normal(2, 0.1, (5001, 1))
    found = no_narrower(draws, counted)
    assert found.std() == pytest.approx(0.5, rel=0.1)
    assert np.median(found) == pytest.approx(np.median(draws))
