"""Copies of rows are no new rows: intervals of an upsampled test set are too narrow."""

import numpy as np

from fairbench.components.papers.uncertainty_matters.upsampling import (
    Population,
    coverage,
    figure,
    upsampled,
)


def test_intervals_hold_the_truth_until_rows_are_copied():
    population = Population()
    as_it_is, copied = (coverage(population, factor, 600) for factor in (1, 4))
    # Five standard errors of a share of 600 are 0.045 at 95 %.
    assert as_it_is[0] > 0.90
    assert copied[0] < 0.80
    assert copied[1] < 0.7 * as_it_is[1]


def test_copies_keep_the_share_in_the_mean():
    result = np.full(4000, 15)
    copied = upsampled(result, 20, 5, np.random.default_rng(0))
    assert abs(copied.mean() / 100 - 0.75) < 0.005
    assert copied.min() >= 15 and copied.max() <= 15 + 80
    np.testing.assert_array_equal(upsampled(result, 20, 1, np.random.default_rng(0)), result)


def test_the_figure_shows_both():
    left, right = figure(Population(), {1: (0.95, 0.3), 4: (0.7, 0.2)}).axes
    assert [text.get_text() for text in left.get_legend().get_texts()][-1] == "true gap"
    assert right.get_ylim()[1] == 100
