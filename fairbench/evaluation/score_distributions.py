"""How the scores of each group are distributed, and how far apart their means are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fairbench.core.arrays import Floats
from fairbench.data.groups import codes_of
from fairbench.evaluation.predictions import AllGroups
from fairbench.inference.means import around, loss_limits
from fairbench.inference.rates import Limits, difference_limits
from fairbench.inference.survey import Design

QUANTILES = (0.1, 0.5, 0.9)
_BINS = 24
_NAN = (float("nan"),) * 3


@dataclass(frozen=True)
class GroupScores:
    """The scores of a group.

    Attributes
    ----------
    mean : the mean score and both limits of its interval, NaN of too few rows.
    difference : the mean less that of the reference group, with both limits likewise; NaN of the
        reference group itself.
    quantiles : the scores that a tenth, half and nine tenths of the group's are at most; NaN of a
        group whose weights are all 0.
    edges : the edges of bins, the same for all groups.
    density : the share of the group's scores in each of these bins.
    """

    attribute: str
    group: str
    rows: int
    mean: tuple[float, float, float]
    difference: tuple[float, float, float]
    quantiles: Sequence[float]
    edges: Sequence[float]
    density: Sequence[float]


def score_distributions(
    score: Floats, groups: Mapping[str, pd.Series], design: Design | None = None
) -> list[GroupScores]:
    """Return the scores of every group that has rows; the reference of an attribute is first."""
    low, high = float(score.min()), float(score.max())
    is_share = low >= 0 and high <= 1
    bounds = (0.0, 1.0) if is_share else (-np.inf, np.inf)
    if is_share and high - low > 0.5:
        low, high = bounds
    edges = np.linspace(low, high if high > low else low + 1, _BINS + 1)
    bins = np.clip(np.searchsorted(edges, score, side="right") - 1, 0, _BINS - 1)
    distributions = []
    for attribute, labels in groups.items():
        means, shared = group_means(score, labels, design, bounds)
        differences = difference_limits(means, means.take([0]), shared)
        codes, names = codes_of(labels)
        for g, name in enumerate(names):
            rows = np.flatnonzero(codes == g)
            values = score[rows]
            weight = None if design is None else design.weight[rows]
            quantiles = np.quantile(values, QUANTILES)
            if weight is not None and weight.any():
                quantiles = np.quantile(values, QUANTILES, weights=weight, method="inverted_cdf")
            elif weight is not None:  # rows that stand for nobody
                quantiles = np.full(len(QUANTILES), np.nan)
            density = np.bincount(bins[rows], weight, _BINS)
            shape = {
                "quantiles": quantiles.tolist(),
                "edges": edges.tolist(),
                "density": (density / (density.sum() or 1)).tolist(),
            }
            less = differences.at(g) if g else _NAN
            distributions.append(
                GroupScores(attribute, name, len(rows), means.at(g), less, **shape)
            )
    return distributions


def group_means(
    values: Floats,
    labels: pd.Series,
    design: Design | None,
    bounds: tuple[float, float] = (-np.inf, np.inf),
) -> tuple[Limits, Floats]:
    """Return the means (G,) of groups that have rows, and how their errors go with the first's.

    Parameters
    ----------
    bounds : the least and the largest value that a mean can have.
    """
    all_groups = AllGroups.of(len(values), {"": labels.cat.remove_unused_categories()}, design)
    (moments, totals) = all_groups.moments(values)
    correlation = np.zeros(len(all_groups) - 1)
    if all_groups.sample is not None and totals is not None:
        correlation = all_groups.sample.correlation(totals)[1:, 1]
    least, most = bounds
    limits = around(all_groups.mean_of(values), loss_limits(moments, least=least, most=most))
    return limits.take(slice(1, None)), correlation
