"""Shares of groups among the first ranks of a ranking, and of the exposure that ranks give.

If people are drawn independently, their groups are independent given the scores of a ranking. So a
group's share of the first k ranks, or of exposure, is a weighted mean of independent events, whose
limits are those of weighted rates. It is compared with the group's share of all rows, which is
computed from the same events; the correlation of the two errors has a closed form.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fairbench.core.arrays import Codes, Floats
from fairbench.inference.gaps import FOUR_FIFTHS
from fairbench.inference.rates import Limits, probability_ratio_below, ratio_limits
from fairbench.inference.survey import Design, SurveyCounts, sums
from fairbench.metrics.registry import selection_rate

_NEARLY = 0.9999  # the largest correlation whose inverse hyperbolic tangent is taken


def top_weights(score: Floats, lists: Codes, top: float) -> Floats:
    """Return which rows (n,) are among the first of their list: 1, 0, or between where scores tie.

    Parameters
    ----------
    score : (n,) the scores that order a list, the largest first.
    lists : (n,) the list 0 .. L - 1 that each row is in.
    top : how many rows of every list are the first; a number under 1 is a share of the list, of at
        least one row.
    """
    size = np.bincount(lists)
    most = np.maximum(np.round(top * size), 1) if top < 1 else np.minimum(top, size)
    return _over_ties(score, lists, lambda rank, which: (rank <= most[which]).astype(float))


def exposure_weights(score: Floats, lists: Codes) -> Floats:
    """Return the exposure (n,) of each row's rank: 1 / log2(1 + rank), the same for ties.

    The discount of the discounted cumulative gain (Järvelin and Kekäläinen 2002), as Singh and
    Joachims (2018), "Fairness of exposure in rankings", take it.
    """
    return _over_ties(score, lists, lambda rank, _: 1 / np.log2(1 + rank))


def _over_ties(score: Floats, lists: Codes, weight_of: Callable[[Floats, Codes], Floats]) -> Floats:
    """Return the weights of ranks from 1, averaged over the rows of one score in a list."""
    order = np.lexsort((-score, lists))
    sorted_lists, sorted_score = lists[order], score[order]
    list_start = np.searchsorted(sorted_lists, sorted_lists, side="left")
    ranks = (np.arange(len(order)) - list_start + 1).astype(float)
    weights = weight_of(ranks, sorted_lists)
    start = np.r_[True, (np.diff(sorted_lists) != 0) | (np.diff(sorted_score) != 0)]
    tie = np.cumsum(start) - 1
    means = np.bincount(tie, weights) / np.bincount(tie)
    row_weights = np.empty(len(order))
    row_weights[order] = means[tie]
    return row_weights


def weighted_shares(
    weight: Floats,
    codes: Codes,
    groups: int,
    *,
    lists: Codes | None = None,
    level: float = 0.95,
) -> tuple[Limits, Limits, Limits, Floats]:
    """Return the groups' shares of the weight of all ranks, compared with their shares of rows.

    Parameters
    ----------
    weight : (n,) the weights of the rows' ranks, such as those of :func:`top_weights`.
    codes : (n,) the group 0 .. G - 1 of each row.
    groups : G, the number of groups.
    lists : (n,) the list that each row is in, if there are several; lists and not rows are then
        drawn independently.

    Returns
    -------
    shares : (G,) the groups' shares of the weight of ranks, with limits.
    rows : (G,) their shares of all rows, with limits.
    ratios : (G,) the first over the second; 1 if both shares of a group are equal.
    below : (G,) the confidence that a ratio is under four fifths; see
        :func:`fairbench.inference.rates.probability_ratio_below`.
    """
    designs = (
        Design.of(len(weight), weight=weight, clusters=lists),
        Design.of(len(weight), clusters=lists),
    )
    limits: list[list[Limits]] = []
    correlation = []
    for g in range(groups):
        cell = np.where(codes == g, 3, 0).astype(np.intp)
        of_group, scores = [], []
        for design in designs:
            counts = SurveyCounts.of(cell, np.zeros(len(cell), np.intp), design, groups=1)
            of_group.append(counts.limits(selection_rate, level=level))
            away = (codes == g) - of_group[-1].value[0]
            scores.append(design.weight * away / design.weight.sum())
        limits.append(of_group)
        correlation.append(
            _correlation_of_rows(weight, *of_group)
            if lists is None
            else _correlation_of_lists(scores[0], scores[1], lists)
        )
    group_shares, all_rows = (
        Limits(*map(np.concatenate, zip(*of_groups, strict=True)))
        for of_groups in zip(*limits, strict=True)
    )
    shared = np.array(correlation)
    ratios = ratio_limits(group_shares, all_rows, shared)
    below = probability_ratio_below(
        group_shares, all_rows, FOUR_FIFTHS, level=level, correlation=shared
    )
    return group_shares, all_rows, ratios, below


def _correlation_of_rows(weight: Floats, share: Limits, rows: Limits) -> float:
    """Return the correlation of the errors of a weighted share and of the share of rows.

    If events are equally likely at all ranks, it is the root of Kish's effective number of rows
    over their number; half an event is added to each share, as it may be 0 by chance. The
    correlation is limited to that root: otherwise, with nearly equal weights, a share that is large
    by chance would have a correlation of nearly 1, and its ratio no error.
    """
    kish = float(weight.sum() ** 2 / (weight**2).sum())
    spread = [
        p * (1 - p)
        for p in (
            (float(limits.value[0]) * size + 0.5) / (size + 1)
            for limits, size in ((share, kish), (rows, len(weight)))
        )
    ]
    return float(np.sqrt(kish / len(weight) * min(1.0, spread[0] / spread[1])))


def _correlation_of_lists(one: Floats, other: Floats, lists: Codes) -> float:
    """Like :func:`_correlation_of_rows`, where lists and not rows are independent.

    It is the correlation of the sums over lists of the rows' contributions to both errors, `one`
    and `other` (n,).

    A few lists hardly determine it, and too large a correlation would leave no error of the ratio.
    So it is lowered by its own standard error (Fisher 1921), and is -1 with three lists or fewer.
    """
    sums_of_one, sums_of_other = (
        sums(array, lists, int(lists.max()) + 1) for array in (one, other)
    )
    spread = np.sqrt((sums_of_one**2).sum() * (sums_of_other**2).sum())
    freedom = len(sums_of_one) - 3
    if freedom <= 0 or spread <= 0:
        return -1.0 if freedom <= 0 else 0.0
    correlation = np.clip((sums_of_one * sums_of_other).sum() / spread, -_NEARLY, _NEARLY)
    return float(np.tanh(np.arctanh(correlation) - 1 / np.sqrt(freedom)))
