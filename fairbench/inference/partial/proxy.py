"""Groups that are known through a proxy's probabilities alone: what follows for their rates.

Nobody's group is recorded, but how probable each group is for a surname or a postcode. Among people
of the same probabilities, who of them was decided upon positively stays unknown; the bounds hold
for every way in which that may be.

Kallus, Mao & Zhou (2022), "Assessing algorithmic fairness with unobserved protected class using
data combination". The bounds are theirs (Fréchet's inequalities among people of equal
probabilities), and sharp for the rate of a group and for the difference of two groups' rates, of
any number of groups.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.inference.partial.ends import Ends
from fairbench.metrics.rates import Rate

Codes = NDArray[np.int64]

_FOLDS = 2
_ROWS_OF_CELL = 50  # of people whose probabilities are alike
_MOST_CELLS = 50
_FEWEST = 20  # rows of a rate that anything is said of


def proxy_bounds(
    group: Floats, success: Floats, failure: Floats, weight: Floats
) -> tuple[Floats, Floats]:
    """Return the least and the largest value (...) that a group's rate may have.

    Parameters
    ----------
    group : (..., Z) the group's probability among people whose probabilities are equal.
    success, failure : (..., Z) the shares of them that are in the rate's numerator, and that are
        only in its denominator; at most 1 in sum.
    weight : (..., Z) how many such people there are.

    Notes
    -----
    At least max(0, p + s - 1) and at most min(p, s) of them are in the group and in the numerator,
    and the most of the one is possible together with the least of the other.
    """
    (least, most), (least_others, most_others) = (
        (
            (weight * np.maximum(0, group + array - 1)).sum(axis=-1),
            (weight * np.minimum(group, array)).sum(axis=-1),
        )
        for array in (success, failure)
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        return least / (least + most_others), most / (most + least_others)


@dataclass(frozen=True, eq=False)
class ProxyRows:
    """Rows whose group is known through probabilities.

    Attributes
    ----------
    group : (n, G) the probability of each group, which sum to 1.
    cell : (n,) which cell of the confusion table (TN, FP, FN, TP) a row is in, 0 .. 3.
    alike : (n, G) for each group, a number that is the same of rows whose probabilities of it are
        alike.
    fold : (n,) 0 or 1, drawn at random.
    """

    group: Floats
    cell: Codes
    alike: Codes
    fold: Codes

    @classmethod
    def of(cls, group: Floats, label: Codes, decision: Codes, fold: Codes) -> ProxyRows:
        """Return rows with labels and decisions (n,), in cells of enough rows that are alike."""
        most = int(np.clip(len(group) // _ROWS_OF_CELL, 1, _MOST_CELLS))
        return cls(group, 2 * label + decision, alike(group, most=most), fold)

    def weighted(self, rate: Rate) -> Floats:
        """Return a rate (G,) with rows counted by their probability of each group.

        It is right if, among people of equal probabilities, outcomes do not depend on the group
        (Chen et al. 2019, "Fairness under unawareness").
        """
        counts = np.stack([np.bincount(self.cell, weights, 4) for weights in self.group.T])
        return rate(counts)

    def ends(self, rate: Rate) -> Ends:
        """Return the least and the largest value (G,) of a rate; NaN of too few rows.

        Notes
        -----
        An end is a mean over people of the smaller of two numbers, their group's probability and
        their cell's share of successes. Which of them is smaller is found from the other half of
        the rows; so no end is too far inside for noise: with any choice at all, bounds only get
        wider.
        """
        top, whole = np.array(rate.numerator) > 0, np.array(rate.denominator) > 0
        if whole[self.cell].sum() < _FEWEST:
            groups = self.group.shape[1]
            return Ends(*np.full((2, groups), np.nan), *np.zeros((2, groups)))
        success = top[self.cell].astype(float)
        failure = (whole & ~top)[self.cell].astype(float)
        columns = [self._group_ends(g, success, failure) for g in range(self.group.shape[1])]
        return Ends(*(np.array(column) for column in zip(*columns, strict=True)))

    def _group_ends(
        self, g: int, success: Floats, failure: Floats
    ) -> tuple[float, float, float, float]:
        largest, largest_others = (self._at_most(g, array) for array in (success, failure))
        # What belongs to the group and is not in a set is at most what is not in the set.
        least, least_others = (
            self.group[:, g] - self._at_most(g, 1 - array) for array in (success, failure)
        )
        lower, lower_rows = _ratio(least, largest_others)
        upper, upper_rows = _ratio(largest, least_others)
        return lower, upper, lower_rows, upper_rows

    def _at_most(self, g: int, inside: Floats) -> Floats:
        """Return (n,) numbers whose mean is at least the share of rows of a group inside a set."""
        group, cells = self.group[:, g], self.alike[:, g]
        size = int(cells.max()) + 1
        smaller = np.zeros(len(group), bool)
        for fold in range(_FOLDS):
            learned = self.fold != fold
            excess = np.bincount(cells[learned], (group - inside)[learned], size)
            smaller[~learned] = (excess <= 0)[cells[~learned]]
        return np.where(smaller, group, inside)


def _ratio(top: Floats, bottom: Floats) -> tuple[float, float]:
    """Return mean(top) / (mean(top) + mean(others)) and of how many rows it is worth as a rate."""
    above, beside = max(float(top.mean()), 0.0), max(float(bottom.mean()), 0.0)
    whole = above + beside
    if whole <= 0:
        return float("nan"), 0.0
    value = above / whole
    error = float(np.mean((top - value * (top + bottom)) ** 2)) / len(top) / whole**2
    # Of a share near 0 or 1, half a row more is not ruled out.
    count = whole * len(top)
    smooth = (value * count + 0.5) / (count + 1)
    error = max(error, 0.0) + (smooth * (1 - smooth) - value * (1 - value)) / count
    return value, float(np.clip(smooth * (1 - smooth) / max(error, 1e-300), 1e-9, count))


def alike(group: Floats, *, most: int) -> Codes:
    """Return numbers (n, G) of cells of rows whose probabilities of a group are alike.

    Equal probabilities are one cell, unless there are more than `most`; then quantiles are.
    """
    codes = np.empty(group.shape, np.int64)
    for g, share in enumerate(group.T):
        values, codes[:, g] = np.unique(share, return_inverse=True)
        if len(values) > most:
            edges = np.unique(np.quantile(share, np.arange(1, most) / most))
            codes[:, g] = np.searchsorted(edges, share, side="right")
    return codes
