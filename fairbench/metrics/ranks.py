"""Ranks, and what rests on them; scipy.stats has the same, at half a second's import."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairbench.metrics.registry import BINARY, Metric

Values = NDArray[np.float64]


def average_ranks(values: ArrayLike) -> Values:
    """Return ranks 1 .. n, ties sharing their mean rank."""
    block = tie_blocks(values)
    size = np.bincount(block)
    ranks: Values = (np.cumsum(size) - (size - 1) / 2)[block]
    return ranks


def tie_blocks(values: ArrayLike) -> NDArray[np.int64]:
    """Return, per row, which of the distinct values it has, numbered in increasing order.

    The sort is stable, hence linear in rows that come sorted already.
    """
    array = np.asarray(values, float)
    order = np.argsort(array, kind="stable")
    ordered = array[order]
    block = np.empty(len(array), np.int64)
    block[order] = np.cumsum(np.append([0], ordered[1:] != ordered[:-1]))[: len(array)]
    return block


def mean_over_ties(key: ArrayLike, values: ArrayLike) -> Values:
    """Return, per row, the mean of `values` over the rows with the same `key`."""
    block = tie_blocks(key)
    means: Values = np.bincount(block, weights=np.asarray(values, float)) / np.bincount(block)
    return means[block]


def roc_auc(target: ArrayLike, score: ArrayLike) -> float:
    """Return the area under the ROC curve by the rank-sum statistic; NaN with one class only."""
    y = np.asarray(target).astype(bool)
    positives, negatives = int(y.sum()), int((~y).sum())
    if not (positives and negatives):
        return float("nan")
    rank_sum = average_ranks(score)[y].sum()
    return float((rank_sum - positives * (positives + 1) / 2) / (positives * negatives))


ROC_AUC = Metric(
    name="roc_auc",
    label="ROC AUC",
    sentence="The chance that somebody with label 1 has a higher score than somebody with label 0.",
    task=BINARY,
    better="higher",
    needs=("score",),
    interval="auc",
    function=roc_auc,
    undefined="only one class in {part}",
    shown=("everyone",),
)


def spearman(a: ArrayLike, b: ArrayLike) -> float:
    """Return Spearman's rank correlation; NaN where either side is constant."""
    if np.ptp(np.asarray(a)) == 0 or np.ptp(np.asarray(b)) == 0:
        return float("nan")
    return float(np.corrcoef(average_ranks(a), average_ranks(b))[0, 1])
