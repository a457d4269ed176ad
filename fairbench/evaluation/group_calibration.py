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
    """The calibration of a group's scores.

    Attributes
    ----------
    labels : how many labels the group has.
    score : the mean score of the labelled rows.
    share : the share of positives among them.
    excess, lower, upper : mean score minus share, with its interval; NaN with too few labels, or
        too few of the rarer label.
    bins : the labelled rows by their scores.
    fit : the probability of labels at least as extreme as these if this group's scores are
        calibrated as the other groups' are (`fairbench.inference.few_labels.check`); NaN if it is
        not computed.
    at : a function that returns the interval of the excess at a level.
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
    anytime_valid: bool = False,
    level: float = 0.95,
) -> Iterator[GroupCalibration]:
    """Yield the calibration of every group of an attribute.

    Parameters
    ----------
    groups : (n,) categorical labels.
    score : (n,) the scores of all rows.
    label : (n,) the labels of all rows, NaN where unknown.
    strata : (n,) the sampling stratum of each row, if rows were not chosen for labelling at random
        among all; labels are then weighted by the rows that they stand for.
    anytime_valid : whether intervals hold whenever labelling is stopped.
    """
    labelled = np.flatnonzero(~np.isnan(label))
    arms = np.zeros(len(score), np.int64) if strata is None else strata
    names = groups.cat.categories
    codes = groups.cat.codes.to_numpy(np.int64)
    sizes = strata_sizes(codes, arms)
    score, label, arms, codes = score[labelled], label[labelled], arms[labelled], codes[labelled]
    all_excesses = None if strata is not None else _excesses(score, label, codes, len(names))
    order = by_group(codes, len(names))
    score, label, arms = score[order], label[order], arms[order]
    n_labels = np.bincount(codes, minlength=len(names)).tolist()
    for g, (name, labels) in enumerate(zip(names, n_labels, strict=True)):
        rows = slice(sum(n_labels[:g]), sum(n_labels[: g + 1]))
        calibration = GroupCalibration(attribute, str(name), labels)
        if labels >= FEWEST_LABELS:
            bin_level = float(lasting_level(level, labels)) if anytime_valid else level
            calibration, error = _measure(
                calibration, score[rows], label[rows], arms[rows], sizes[g], bin_level
            )
            interval = _normal(calibration.excess, error, labels if anytime_valid else 0)
            calibration = replace(calibration, at=interval)
        if all_excesses is not None:
            calibration = replace(calibration, at=partial(_of_group, all_excesses, g))
        lower, upper = calibration.at(level)
        yield replace(calibration, lower=lower, upper=upper)


def _excesses(
    score: Floats, label: Floats, codes: NDArray[np.int64], groups: int
) -> Callable[[float], Limits]:
    """Return a function from a level to the excesses (G,) with limits, for randomly chosen labels.

    An excess is a mean score less the share of label 1. If one label is rare, its share dominates
    the uncertainty, and a normal interval would be too short.
    """
    excess = score - label
    excess_of_other_label = score - (1 - label)
    by_label = Moments.by_label(excess, excess_of_other_label, label.astype(np.intp), codes, groups)
    paired = by_label.take(np.arange(2 * groups).reshape(-1, 2))
    return cache(lambda level: outcome_limits(paired, level=level))


def _of_group(
    all_excesses: Callable[[float], Limits], group: int, level: float
) -> tuple[float, float]:
    """Return the interval of one group's excess at a level."""
    limits = all_excesses(level)
    return float(limits.lower[group]), float(limits.upper[group])


def _normal(value: float, error: float, labels: int) -> Callable[[float], tuple[float, float]]:
    """Return the normal interval of a value by level; anytime-valid if `labels` is given."""

    def at_level(level: float) -> tuple[float, float]:
        normal_level = float(lasting_level(level, labels)) if labels else level
        half_width = NormalDist().inv_cdf((1 + normal_level) / 2) * error
        return value - half_width, value + half_width

    return at_level


def _measure(
    group: GroupCalibration,
    score: Floats,
    label: Floats,
    stratum: NDArray[np.int64],
    sizes: NDArray[np.int64],
    level: float,
) -> tuple[GroupCalibration, float]:
    """Return a group with its means, and in bins, and the standard error of its excess.

    Parameters
    ----------
    score, label, stratum : (n,) the scores, labels and strata of its labelled rows.
    sizes : (S,) how many rows of the group, labelled or not, each stratum has.
    level : the level of the intervals of the bins.

    Notes
    -----
    A label of stratum s stands for w_s = sizes_s / labels_s rows. With n, p and q the numbers of
    labels, sums of scores and numbers of positives by stratum and bin (S, BINS), sums over strata
    are w @ n, w @ p and w @ q. A bin's share w @ q / w @ n is as uncertain as that of
    (w @ n)^2 / (w^2 @ n) labels of equal weight (Kish).
    """
    cell = stratum * BINS + np.minimum((score * BINS).astype(np.int64), BINS - 1)
    columns = (None, score, label, (score - label) ** 2)
    cell_sums = [np.bincount(cell, column, minlength=sizes.size * BINS) for column in columns]
    sums = np.reshape(cell_sums, (len(columns), sizes.size, BINS)).astype(np.float64)
    labels, scores, positives, squares = sums.sum(axis=2)
    weight = weights(sizes, labels.astype(np.int64))
    size, total_score, total_positives = np.stack([labels, scores, positives]) @ weight
    excess = float((total_score - total_positives) / size)
    error = stratified_error(labels, scores - positives, squares, sizes)
    measured = replace(
        group,
        score=float(total_score / size),
        share=float(total_positives / size),
        excess=excess,
        bins=_bins(sums, weight, level),
    )
    return measured, float(error)


def _bins(sums: Floats, weight: Floats, level: float) -> list[Bin]:
    """Return the bins that have labels, from sums over labels of 1, score, label ... (4, S, BINS).

    Parameters
    ----------
    weight : (S,) how many rows a label of each stratum stands for.
    """
    in_bins = sums[:, :, sums[0].any(axis=0)]
    size, score, positives = np.einsum("s,csb->cb", weight, in_bins[:3])
    effective = size**2 / (weight**2 @ in_bins[0])
    share = positives / size
    posterior = Beta(1 + share * effective, 1 + (1 - share) * effective)
    columns = in_bins[0].sum(axis=0), score / size, share, *posterior.interval(level)
    by_bin = zip(*columns, strict=True)
    return [Bin(int(labels), *map(float, numbers)) for labels, *numbers in by_bin]
