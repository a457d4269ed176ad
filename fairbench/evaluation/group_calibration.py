"""Calibration by group: whether scores agree with how often the known labels are positive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.inference.active.intervals import lasting_level
from fairbench.inference.beta import Beta
from fairbench.inference.means import Moments, outcome_limits
from fairbench.inference.rates import Limits
from fairbench.inference.stratified import strata_sizes, stratified_error, weights

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
BINS = 10
# Fewer labels make a difference of means, let alone a diagram, say next to nothing.
FEWEST_LABELS = 10


@dataclass(frozen=True, eq=False)
class Bin:
    """Labelled rows of similar scores: their number, mean score, and share of positive labels.

    The interval of the share is that of a Beta(1, 1) prior.
    """

    size: int
    score: float
    share: float
    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class GroupCalibration:
    """The scores of a group against its labels.

    Attributes
    ----------
    labels : how many there are. score, share : mean score and share of positives of those rows.
    excess, lower, upper : mean score minus share, with its interval; NaN of too few labels, and of
        too few of the rarer one.
    fit : how often labels as strange as these are foreseen from how the other groups' scores are
        calibrated (`fairbench.inference.few_labels.check`); NaN where that is not asked.
    """

    attribute: str
    group: str
    labels: int
    score: float = float("nan")
    share: float = float("nan")
    excess: float = float("nan")
    lower: float = float("nan")
    upper: float = float("nan")
    bins: Sequence[Bin] = ()
    fit: float = float("nan")


def group_calibrations(
    attribute: str,
    groups: pd.Series,
    score: Floats,
    label: Floats,
    *,
    strata: Codes | None = None,
    whenever: bool = False,
    level: float = 0.95,
) -> Iterator[GroupCalibration]:
    """Yield the calibration of every group of an attribute.

    Parameters
    ----------
    groups : (n,) categorical. score, label : (n,) of all rows, labels NaN where unknown.
    strata : (n,) which rows were chosen among one another for labelling, where that was not at
        random among all; labels then weigh as many rows as they stand for.
    whenever : whether intervals are to hold whenever one stops labelling.
    """
    known = np.flatnonzero(~np.isnan(label))
    arms = np.zeros(len(score), np.int64) if strata is None else strata
    names, codes = groups.cat.categories, groups.cat.codes.to_numpy(np.int64)
    sizes, ends = strata_sizes(codes, arms), None
    score, label, arms, codes = score[known], label[known], arms[known], codes[known]
    if strata is None:
        ends = _ends(score, label, codes, len(names), level)
    for g, name in enumerate(names):
        own = codes == g
        labels = int(own.sum())
        reach = float(lasting_level(level, labels)) if whenever else level
        found = GroupCalibration(attribute, str(name), labels)
        if labels >= FEWEST_LABELS:
            found = _measured(found, score[own], label[own], arms[own], sizes[g], reach)
        if ends is not None:
            found = replace(found, lower=float(ends.lower[g]), upper=float(ends.upper[g]))
        yield found


def _ends(
    score: Floats, label: Floats, codes: NDArray[np.int64], groups: int, level: float
) -> Limits:
    """Return mean scores less shares of label 1 of groups (G,), of labels known by chance.

    Where one label is rare, it is its share that is uncertain, which a normal interval misses.
    """
    away, other = score - label, score - (1 - label)
    by_label = Moments.by_label(away, other, label.astype(np.intp), codes, groups)
    return outcome_limits(by_label.take(np.arange(2 * groups).reshape(-1, 2)), level=level)


def _measured(
    group: GroupCalibration,
    score: Floats,
    label: Floats,
    stratum: NDArray[np.int64],
    sizes: NDArray[np.int64],
    level: float,
) -> GroupCalibration:
    """Return a group with its means, and in bins, of labels (n,) of strata of `sizes` (S,)."""
    cell = stratum * BINS + np.minimum((score * BINS).astype(np.int64), BINS - 1)
    columns = (None, score, label, (score - label) ** 2)
    flat = [np.bincount(cell, values, minlength=sizes.size * BINS) for values in columns]
    sums = np.reshape(flat, (len(columns), sizes.size, BINS)).astype(np.float64)
    labels, scores, positives, squares = sums.sum(axis=2)
    weight = weights(sizes, labels.astype(np.int64))
    size, mean, share = np.stack([labels, scores, positives]) @ weight
    excess = float((mean - share) / size)
    error = stratified_error(labels, scores - positives, squares, sizes)
    half = NormalDist().inv_cdf((1 + level) / 2) * error
    present = sums[0].any(axis=0)
    in_bins = sums[:, :, present]
    of_bins, score_of, positives_of = np.einsum("s,csb->cb", weight, in_bins[:3])
    # Kish: as many equally weighted labels as would be as uncertain.
    effective, shares = of_bins**2 / (weight**2 @ in_bins[0]), positives_of / of_bins
    posterior = Beta(1 + shares * effective, 1 + (1 - shares) * effective)
    bins = zip(
        in_bins[0].sum(axis=0), score_of / of_bins, shares, *posterior.interval(level), strict=True
    )
    return replace(
        group,
        score=float(mean / size),
        share=float(share / size),
        excess=excess,
        lower=excess - half,
        upper=excess + half,
        bins=[Bin(int(labels), *map(float, rest)) for labels, *rest in bins],
    )
