"""Scores of predicted probabilities and of claimed standard deviations of a binary label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairbench.core.arrays import Floats


def spearman(a: ArrayLike, b: ArrayLike) -> float:
    """Return Spearman's rank correlation; NaN where either side is constant."""
    if not (np.ptp(np.asarray(a)) > 0 and np.ptp(np.asarray(b)) > 0):
        return float("nan")
    return float(np.corrcoef(_ranks(a), _ranks(b))[0, 1])


def _ranks(values: ArrayLike) -> Floats:
    """Return the rank (n,) of each value, tied ones' mean."""
    _, block, size = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(size) - (size - 1) / 2)[block])


def nll_of_sd(target: ArrayLike, prediction: ArrayLike, sd: ArrayLike) -> Floats:
    """Return each row's negative log-likelihood as FairlyUncertain scores it (App. D.1).

    The sd, clipped to [0, 1/2], stands for the probability p with sqrt(p (1 - p)) = sd on the
    prediction's side of 1/2, clipped to [0.001, 0.999].

    Parameters
    ----------
    target : (n,) labels 0 or 1.
    prediction : (n,) labels or probabilities; above 1/2 counts as 1.
    sd : (n,) claimed standard deviations of the label.
    """
    half_width = np.sqrt(1 - 4 * np.clip(np.asarray(sd, float), 0, 0.5) ** 2) / 2
    side = np.where(np.asarray(prediction, float) > 0.5, 1.0, -1.0)
    return log_loss_rows(target, np.clip(0.5 + side * half_width, 0.001, 0.999))


def log_loss_rows(target: ArrayLike, score: ArrayLike, *, floor: float = 1e-15) -> Floats:
    """Return each row's -[y log p + (1 - y) log(1 - p)], p clipped to [floor, 1 - floor]."""
    y = np.asarray(target, float)
    p = np.clip(np.asarray(score, float), floor, 1 - floor)
    return -(y * np.log(p) + (1 - y) * np.log1p(-p))


def brier_rows(target: ArrayLike, score: ArrayLike) -> Floats:
    """Return each row's squared difference of label and probability."""
    return (np.asarray(target, float) - np.asarray(score, float)) ** 2


@dataclass(frozen=True)
class _Reliability:
    """A reliability diagram: per non-empty bin its size, mean score and share of positives."""

    size: NDArray[np.int64]
    mean_score: Floats
    base_rate: Floats

    def expected_calibration_error(self) -> float:
        """Return the size-weighted mean of |share of positives - mean score|."""
        weights = self.size / self.size.sum()
        return float(weights @ np.abs(self.base_rate - self.mean_score))


def bins_of_width(score: Floats, bins: int) -> NDArray[np.int64]:
    """Return which of `bins` bins of equal width each score is in, the lower end excluded."""
    return np.clip(np.ceil(score * bins).astype(np.int64) - 1, 0, bins - 1)


def reliability(
    target: ArrayLike, score: ArrayLike, *, bins: int = 15, equal_mass: bool = False
) -> _Reliability:
    """Bin the scores and compare them with the labels (Guo et al. 2017).

    Parameters
    ----------
    bins : number of bins, of equal width on [0, 1] (lower end excluded, as usual) or, with
        `equal_mass`, of equal numbers of rows in score order (rows with equal scores are in one
        bin).
    """
    y, p = np.asarray(target, float), np.asarray(score, float)
    one_group = np.zeros(len(y), np.int64)
    cell = bins_of_mass(p, one_group, 1, bins) if equal_mass else bins_of_width(p, bins)
    size = np.bincount(cell, minlength=bins)
    used = size > 0
    mean_score, base_rate = (np.bincount(cell, w, bins)[used] / size[used] for w in (p, y))
    return _Reliability(size[used], mean_score, base_rate)


def bins_of_mass(
    score: Floats,
    codes: NDArray[np.integer],
    groups: int,
    bins: int,
    *,
    weight: Floats | None = None,
    order: NDArray[np.intp] | None = None,
) -> NDArray[np.int64]:
    """Return the bin of each score, with `bins` bins of equal size in each group.

    Rows with equal scores are in one bin, that in which the first of them falls: parts of them
    would not be samples of their own. Tied scores therefore make fewer bins. With weights, bins
    have equal shares of the weight.

    Parameters
    ----------
    order : the row numbers sorted by group, then score, if they are known already.
    """
    order = np.lexsort((score, codes)) if order is None else order
    group, ordered = codes[order], score[order]
    is_first = np.ones(len(order), bool)
    is_first[1:] = (ordered[1:] != ordered[:-1]) | (group[1:] != group[:-1])
    first = np.flatnonzero(is_first)
    if weight is None:
        n_rows = np.bincount(codes, minlength=groups)
        rank_in_group = first - (np.cumsum(n_rows) - n_rows)[group[first]]
        bin_of_block = rank_in_group * bins // np.maximum(n_rows, 1)[group[first]]
    else:
        mass = np.bincount(codes, weight, groups)
        row_weight = weight[order]
        before = (np.cumsum(row_weight) - row_weight)[first]
        before -= (np.cumsum(mass) - mass)[group[first]]
        # Add a little, so that rounding does not put the first row of a bin into the previous one.
        start = (before / mass[group[first]] * bins + 1e-9).astype(np.int64)
        bin_of_block = np.minimum(start, bins - 1)
    index = np.empty(len(codes), np.int64)
    index[order] = np.repeat(bin_of_block, np.diff(first, append=len(order)))
    return index


FEWEST = 100  # rows of a group, below which its calibration error is mostly chance
