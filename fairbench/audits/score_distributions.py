"""How the scores of each group are distributed, and how far apart their means are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.columns import codes_of
from fairbench.evaluation.predictions import Parts
from fairbench.inference.means import around, loss_limits
from fairbench.inference.rates import Limits, difference_limits
from fairbench.inference.survey import Design

Floats = NDArray[np.float64]
QUANTILES = (0.1, 0.5, 0.9)
_BINS = 24
_NAN = (float("nan"),) * 3


@dataclass(frozen=True)
class GroupScores:
    """The scores of a group.

    Attributes
    ----------
    mean : with its interval. difference : the mean less that of the reference group, with its
        interval; NaN of that group itself. Ends are NaN of too few rows.
    quantiles : those that a tenth, half and nine tenths of the scores are at most.
    density : share of the scores in each of the bins between `edges`, which all groups have.
    """

    attribute: str
    group: str
    rows: int
    mean: tuple[float, float, float]
    difference: tuple[float, float, float]
    quantiles: tuple[float, ...]
    edges: Sequence[float]
    density: Sequence[float]


def score_distributions(
    score: Floats, groups: Mapping[str, pd.Series], design: Design | None = None
) -> list[GroupScores]:
    """Return the scores of every group that has rows; the reference of an attribute is first."""
    edges = _edges(score)
    bins = np.clip(np.searchsorted(edges, score, side="right") - 1, 0, _BINS - 1)
    return [
        each
        for name, labels in groups.items()
        for each in _of_attribute(score, name, labels, design, edges, bins)
    ]


def _edges(score: Floats) -> Floats:
    low, high = float(score.min()), float(score.max())
    if low >= 0 and high <= 1 and high - low > 0.5:
        low, high = 0.0, 1.0
    return np.linspace(low, high if high > low else low + 1, _BINS + 1)


def _of_attribute(
    score: Floats,
    attribute: str,
    labels: pd.Series,
    design: Design | None,
    edges: Floats,
    bins: NDArray[np.intp],
) -> list[GroupScores]:
    codes, names = codes_of(labels)
    if len(names) < len(labels.cat.categories):
        labels = labels.cat.remove_unused_categories()
    means, correlation = _means(score, attribute, labels, design)
    shared = 0.0 if correlation is None else correlation[:, 0]
    differences = difference_limits(means, means.take([0]), shared)
    weight = None if design is None else design.weight
    cells = np.bincount(codes * _BINS + bins, weight, len(names) * _BINS)
    density = cells.reshape(-1, _BINS)
    density = density / density.sum(axis=1, keepdims=True)
    found = []
    for g, name in enumerate(names):
        mine = codes == g
        found.append(
            GroupScores(
                attribute,
                name,
                int(mine.sum()),
                means.at(g),
                differences.at(g) if g else _NAN,
                _quantiles(score[mine], None if weight is None else weight[mine]),
                edges.tolist(),
                density[g].tolist(),
            )
        )
    return found


def _means(
    values: Floats, attribute: str, labels: pd.Series, design: Design | None
) -> tuple[Limits, Floats | None]:
    """Return the means of groups (G,) with intervals, and the correlations of their errors."""
    parts = Parts.of(len(values), {attribute: labels}, design)
    flat = parts.rows(values)
    mean, (moments, totals) = parts.mean_of(flat), parts.moments(flat)
    found = around(mean, loss_limits(moments, least=0.0, most=1.0))
    shared = None
    if parts.sample is not None and totals is not None:
        shared = parts.sample.correlation(totals)[1:, 1:]
    return found.take(slice(1, None)), shared


def _quantiles(score: Floats, weight: Floats | None) -> tuple[float, ...]:
    if weight is None:
        return tuple(map(float, np.quantile(score, QUANTILES)))
    order = np.argsort(score, kind="stable")
    share = np.cumsum(weight[order]) / max(weight.sum(), 1e-300)
    places = np.minimum(np.searchsorted(share, QUANTILES), len(score) - 1)
    return tuple(map(float, score[order][places]))
