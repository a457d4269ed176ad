"""Calibration by group: whether scores agree with how often the known labels are positive."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from statistics import NormalDist

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.inference.active.intervals import lasting_level
from fairbench.inference.beta import Beta
from fairbench.inference.means import Moments, by_group, outcome_limits
from fairbench.inference.rates import Limits
from fairbench.inference.stratified import strata_sizes, stratified_error, weights

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


def _nothing(_level: float) -> tuple[float, float]:
    return float("nan"), float("nan")


@dataclass(frozen=True, eq=False)
class GroupCalibration:
    """The scores of a group against its labels.

    Attributes
    ----------
    labels : how many there are.
    score, share : mean score and share of positives of those rows.
    excess, lower, upper : mean score minus share, with its interval; NaN of too few labels, and of
        too few of the rarer one.
    fit : how often labels as strange as these are foreseen from how the other groups' scores are
        calibrated (`fairbench.inference.few_labels.check`); NaN where that is not asked.
    at : level -> the interval of the excess.
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
    at: Callable[[float], tuple[float, float]] = field(default=_nothing, repr=False)


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
    groups : (n,) categorical.
    score, label : (n,) of all rows, labels NaN where unknown.
    strata : (n,) which rows were chosen among one another for labelling, where that was not at
        random among all; labels then weigh as many rows as they stand for.
    whenever : whether intervals are to hold whenever one stops labelling.
    """
    labelled = np.flatnonzero(~np.isnan(label))
    arms = np.zeros(len(score), np.int64) if strata is None else strata
    names = groups.cat.categories
    codes = groups.cat.codes.to_numpy(np.int64)
    sizes = strata_sizes(codes, arms)
    score, label, arms, codes = score[labelled], label[labelled], arms[labelled], codes[labelled]
    at_random = None if strata is not None else _excesses(score, label, codes, len(names))
    order = by_group(codes, len(names))
    number = np.bincount(codes, minlength=len(names)).tolist()
    score, label, arms = score[order], label[order], arms[order]
    for g, (name, labels) in enumerate(zip(names, number, strict=True)):
        rows = slice(sum(number[:g]), sum(number[: g + 1]))
        calibration = GroupCalibration(attribute, str(name), labels)
        if labels >= FEWEST_LABELS:
            reach = float(lasting_level(level, labels)) if whenever else level
            calibration, error = _measured(
                calibration, score[rows], label[rows], arms[rows], sizes[g], reach
            )
            calibration = replace(
                calibration, at=_normal(calibration.excess, error, labels if whenever else 0)
            )
        if at_random is not None:
            calibration = replace(calibration, at=partial(_of_one, at_random, g))
        lower, upper = calibration.at(level)
        yield replace(calibration, lower=lower, upper=upper)


def _excesses(
    score: Floats, label: Floats, codes: NDArray[np.int64], groups: int
) -> Callable[[float], Limits]:
    """Return the function of a level that gives the limits (G,) of labels known by chance.

    They are of mean scores less shares of label 1. Where one label is rare, it is its share that is
    uncertain, which a normal interval misses.
    """
    away = score - label
    other = score - (1 - label)
    by_label = Moments.by_label(away, other, label.astype(np.intp), codes, groups)
    paired = by_label.take(np.arange(2 * groups).reshape(-1, 2))
    return cache(lambda level: outcome_limits(paired, level=level))


def _of_one(of_all: Callable[[float], Limits], group: int, level: float) -> tuple[float, float]:
    limits = of_all(level)
    return float(limits.lower[group]), float(limits.upper[group])


def _normal(value: float, error: float, labels: int) -> Callable[[float], tuple[float, float]]:
    """Return the normal interval of a value by level; of `labels`, if any, whenever one stops."""

    def at_level(level: float) -> tuple[float, float]:
        reach = float(lasting_level(level, labels)) if labels else level
        half = NormalDist().inv_cdf((1 + reach) / 2) * error
        return value - half, value + half

    return at_level


def _measured(
    group: GroupCalibration,
    score: Floats,
    label: Floats,
    stratum: NDArray[np.int64],
    sizes: NDArray[np.int64],
    level: float,
) -> tuple[GroupCalibration, float]:
    """Return a group with its means, and in bins, of labels (n,) of strata of `sizes` (S,).

    Returns
    -------
    The group, and the standard error of its excess.
    """
    cell = stratum * BINS + np.minimum((score * BINS).astype(np.int64), BINS - 1)
    columns = (None, score, label, (score - label) ** 2)
    flat = [np.bincount(cell, values, minlength=sizes.size * BINS) for values in columns]
    sums = np.reshape(flat, (len(columns), sizes.size, BINS)).astype(np.float64)
    labels, scores, positives, squares = sums.sum(axis=2)
    weight = weights(sizes, labels.astype(np.int64))
    size, mean, share = np.stack([labels, scores, positives]) @ weight
    excess = float((mean - share) / size)
    error = stratified_error(labels, scores - positives, squares, sizes)
    present = sums[0].any(axis=0)
    in_bins = sums[:, :, present]
    of_bins, score_of, positives_of = np.einsum("s,csb->cb", weight, in_bins[:3])
    # Kish: as many equally weighted labels as would be as uncertain.
    effective = of_bins**2 / (weight**2 @ in_bins[0])
    shares = positives_of / of_bins
    posterior = Beta(1 + shares * effective, 1 + (1 - shares) * effective)
    bins = zip(
        in_bins[0].sum(axis=0), score_of / of_bins, shares, *posterior.interval(level), strict=True
    )
    means = float(mean / size), float(share / size)
    drawn = [Bin(int(labels), *map(float, numbers)) for labels, *numbers in bins]
    measured = replace(group, score=means[0], share=means[1], excess=excess, bins=drawn)
    return measured, float(error)
