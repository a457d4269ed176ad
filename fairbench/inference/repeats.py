"""A whole run: what its hold-out repeats or folds, which share rows, say together.

Repeated hold-outs train on rows that other repeats test, and test rows that others test. The
variance of their mean is therefore not a J-th of theirs but (1/J + tested/trained) of it (Nadeau
and Bengio 2003, Machine Learning 52, equation 9). What is estimated is the expectation over new
training sets of that size. Folds of one partition test every row once: the mean over them is judged
as one test set (Bayle et al. 2020, NeurIPS 33), and what is estimated is the error of these very
fits. Both are averages of signed quantities, of counts and of rates; what folds them, such as the
largest gap, is taken of averages and never averaged itself, as chance widens the gap of any repeat.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairbench.inference.ranking import posterior_draws

Array = NDArray[np.float64]


def mean_table_draws(
    tables: Array, test_share: float, *, draws: int, generator: np.random.Generator
) -> Array:
    """Draw the expectation of confusion tables of which there is one a repeat.

    Parameters
    ----------
    tables : (J, ...) counts of every repeat, J at least 2; the last axes are cells.
    test_share : the share of the rows that a repeat tests; 0 for repeats that are independent.

    Returns
    -------
    (draws, ...) shares of cells around their means, from a multivariate Student t with J - 1
    degrees of freedom and the corrected covariance of the repeats: the margin of any linear
    quantity, such as a difference of accuracies, is the Bayesian correlated t-test (Corani and
    Benavoli 2015). Cells below 0, of which there are some where they are rare, are cut off at 0.
    """
    repeats, shape = len(tables), tables.shape[1:]
    flat = np.asarray(tables, float).reshape(repeats, -1)
    drawn = posterior_draws(flat, test_share, draws=draws, generator=generator)
    return np.maximum(drawn, 0).reshape(draws, *shape)


_LEAST = 0.5


def no_narrower(draws: Array, counted: Array) -> Array:
    """Return draws stretched to at least half the spread that the counts alone would give.

    A few repeats may differ by nothing although they test few rows, and would then say that all is
    certain. Half the spread binds by chance in one case of a hundred, with ten repeats.

    Parameters
    ----------
    draws : (T, m) of m quantities.
    counted : (T', m) draws of the same quantities from the effective counts of all repeats.
    """
    centre = np.median(draws, axis=0)
    spread, least = _spread(draws), _LEAST * _spread(counted)
    with np.errstate(invalid="ignore", divide="ignore"):
        stretched: Array = centre + (draws - centre) * (least / spread)
    # Draws without any spread cannot be stretched: they become those of the counts, half as wide.
    moved = centre + _LEAST * (counted - np.median(counted, axis=0))
    found = np.where(spread >= least, draws, stretched)
    return np.where(spread > 0, found, moved[np.arange(len(draws)) % len(moved)])


def _spread(draws: Array) -> Array:
    """Return half the distance between the 16 % and the 84 % quantile, (T, m) -> (m,)."""
    ends = np.quantile(draws, (0.16, 0.84), axis=0)
    half: Array = (ends[1] - ends[0]) / 2
    return half
