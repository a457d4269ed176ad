"""Bounds of groups' rates if groups are known only through a proxy's probabilities.

Nobody's group is recorded, only the probability of each group given, say, a surname or a postcode.
Among people with the same probabilities it is unknown which group those with positive decisions
belong to; the bounds hold for every possible assignment.

Kallus, Mao & Zhou (2022), "Assessing algorithmic fairness with unobserved protected class using
data combination". The bounds are theirs (Fréchet's inequalities among people of equal
probabilities), and sharp for the rate of a group and for the difference of two groups' rates, of
any number of groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.inference.partial.bounds import RateBounds
from fairbench.metrics.rates import Rate

Codes = NDArray[np.int64]

_FOLDS = 2
_ROWS_OF_CELL = 50  # rows on average in a cell of people with about the same probability
_MOST_CELLS = 50
_FEWEST = 20  # rows in a rate's denominator under which no bounds are given


def proxy_bounds(
    group: Floats, success: Floats, failure: Floats, weight: Floats
) -> tuple[Floats, Floats]:
    """Return the least and the largest value (...) that a group's rate may have.

    Parameters
    ----------
    group : (..., Z) the group's probability in each of Z cells of people whose probabilities are
        equal.
    success, failure : (..., Z) the shares of each cell that are in the rate's numerator, and that
        are only in its denominator; at most 1 in sum.
    weight : (..., Z) how many people each cell has.

    Notes
    -----
    In a cell where the group has the probability p and a share s is in the numerator, at least
    max(0, p + s - 1) and at most min(p, s) are both in the group and in the numerator. The most
    successes of the group are possible together with its least failures, and the reverse.
    """

    def least_and_most(share: Floats) -> tuple[Floats, Floats]:
        least = (weight * np.maximum(0, group + share - 1)).sum(axis=-1)
        most = (weight * np.minimum(group, share)).sum(axis=-1)
        return least, most

    least_success, most_success = least_and_most(success)
    least_failure, most_failure = least_and_most(failure)
    with np.errstate(invalid="ignore", divide="ignore"):
        lower = least_success / (least_success + most_failure)
        upper = most_success / (most_success + least_failure)
    return lower, upper


@dataclass(frozen=True, eq=False)
class ProxyRows:
    """Rows whose group is known through probabilities.

    Attributes
    ----------
    group : (n, G) the probability of each group, which sum to 1.
    cell : (n,) which cell of the confusion table (TN, FP, FN, TP) a row is in, 0 .. 3.
    probability_cell : (n, G) for each group, the code of a row's cell; rows of one cell have about
        the same probability of the group.
    fold : (n,) 0 or 1, drawn at random.
    """

    group: Floats
    cell: Codes
    probability_cell: Codes
    fold: Codes

    @classmethod
    def of(cls, group: Floats, label: Codes, decision: Codes, fold: Codes) -> ProxyRows:
        """Return rows with labels and decisions (n,), in cells of about the same probability."""
        most = int(np.clip(len(group) // _ROWS_OF_CELL, 1, _MOST_CELLS))
        return cls(group, 2 * label + decision, cells_of_equal_probability(group, most=most), fold)

    def weighted(self, rate: Rate) -> Floats:
        """Return a rate (G,) with rows counted by their probability of each group.

        It is right if, among people of equal probabilities, outcomes do not depend on the group
        (Chen et al. 2019, "Fairness under unawareness").
        """
        counts = np.stack([np.bincount(self.cell, weights, 4) for weights in self.group.T])
        return rate(counts)

    def bounds(self, rate: Rate) -> RateBounds:
        """Return the least and the largest value (G,) of a rate; NaN of too few rows.

        Notes
        -----
        A bound is a mean over people of the smaller of two numbers, their group's probability and
        their cell's share of successes. Which one is smaller is estimated from the other half of
        the rows, so that noise does not make bounds too narrow: a wrong choice only widens them.
        """
        numerator, denominator = np.array(rate.numerator) > 0, np.array(rate.denominator) > 0
        n_groups = self.group.shape[1]
        if denominator[self.cell].sum() < _FEWEST:
            return RateBounds(*np.full((2, n_groups), np.nan), *np.zeros((2, n_groups)))
        success = numerator[self.cell].astype(float)
        failure = (denominator & ~numerator)[self.cell].astype(float)
        lower, upper = zip(
            *(self._group_bounds(g, success, failure) for g in range(n_groups)), strict=True
        )
        return RateBounds(
            lower=np.array([bound.value for bound in lower]),
            upper=np.array([bound.value for bound in upper]),
            lower_rows=np.array([bound.effective_rows for bound in lower]),
            upper_rows=np.array([bound.effective_rows for bound in upper]),
        )

    def _group_bounds(self, g: int, success: Floats, failure: Floats) -> tuple[_Share, _Share]:
        """Return the lower and the upper bound of the rate of group `g`.

        Parameters
        ----------
        g : the group.
        success, failure : (n,) 1 of rows in the rate's numerator, and of rows that are only in its
            denominator.
        """
        most_success, most_failure = self._at_most(g, success), self._at_most(g, failure)
        # What belongs to the group and is not in a set is at most what is not in the set.
        least_success = self.group[:, g] - self._at_most(g, 1 - success)
        least_failure = self.group[:, g] - self._at_most(g, 1 - failure)
        return _share(least_success, most_failure), _share(most_success, least_failure)

    def _at_most(self, g: int, in_set: Floats) -> Floats:
        """Return (n,) numbers whose mean is at least the share of rows in group `g` and a set."""
        group, cells = self.group[:, g], self.probability_cell[:, g]
        n_cells = int(cells.max()) + 1
        group_is_smaller = np.zeros(len(group), bool)
        for fold in range(_FOLDS):
            learned = self.fold != fold
            excess = np.bincount(cells[learned], (group - in_set)[learned], n_cells)
            group_is_smaller[~learned] = (excess <= 0)[cells[~learned]]
        return np.where(group_is_smaller, group, in_set)


class _Share(NamedTuple):
    """An estimated share, and of how many rows an ordinary rate has the same standard error."""

    value: float
    effective_rows: float


def _share(success: Floats, failure: Floats) -> _Share:
    """Return mean(success) / (mean(success) + mean(failure)) with its effective rows.

    Notes
    -----
    The variance of the ratio v = s / (s + f) of two means over n rows, by linearisation, is
    mean((s_i - v (s_i + f_i))^2) / n / (s + f)^2.
    """
    n_rows = len(success)
    mean_success, mean_failure = max(float(success.mean()), 0.0), max(float(failure.mean()), 0.0)
    whole = mean_success + mean_failure
    if whole <= 0:
        return _Share(float("nan"), 0.0)
    value = mean_success / whole
    variance = float(np.mean((success - value * (success + failure)) ** 2)) / n_rows / whole**2
    # Of a share near 0 or 1, half a row more is not ruled out.
    count = whole * n_rows
    smooth = (value * count + 0.5) / (count + 1)
    variance = max(variance, 0.0) + (smooth * (1 - smooth) - value * (1 - value)) / count
    rows = smooth * (1 - smooth) / max(variance, 1e-300)
    return _Share(value, float(np.clip(rows, 1e-9, count)))


def cells_of_equal_probability(group: Floats, *, most: int) -> Codes:
    """Return for each group (n, G) the cell of every row, of about the same probability.

    Rows of equal probability form one cell. If there are more than `most` distinct probabilities,
    quantiles delimit the cells.
    """
    codes = np.empty(group.shape, np.int64)
    for g, probability in enumerate(group.T):
        distinct, codes[:, g] = np.unique(probability, return_inverse=True)
        if len(distinct) > most:
            edges = np.unique(np.quantile(probability, np.arange(1, most) / most))
            codes[:, g] = np.searchsorted(edges, probability, side="right")
    return codes
