"""Calibration by group: whether scores agree with how often the known labels are positive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from fairbench.audits.findings import EXCESS, LARGE, NOT_MEASURED, OPEN, Finding
from fairbench.audits.table import AuditTable
from fairbench.core.seeds import rng
from fairbench.inference.active.intervals import lasting_level
from fairbench.inference.beta import Beta
from fairbench.inference.few_labels.check import unlike
from fairbench.inference.means import Moments, outcome_limits
from fairbench.inference.rates import Limits
from fairbench.inference.stratified import strata_sizes, stratified_error, weights

Floats = NDArray[np.float64]

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


ALARMS = 0.01  # of audits whose scores are calibrated alike, about the share with an alarm


def least_alike(found: Sequence[GroupCalibration]) -> list[GroupCalibration]:
    """Return the groups whose labels fit least how the scores of other groups are calibrated.

    Those of an attribute whose groups surely differ, and of it the least probable, which may be
    several. However many groups are asked about, there is an alarm without cause in 3 % of audits
    at most.
    """
    asked = [scores for scores in found if not np.isnan(scores.fit)]
    least: dict[str, float] = {}
    for scores in asked:
        least[scores.attribute] = min(scores.fit, least.get(scores.attribute, 1.0))
    return [
        scores
        for scores in asked
        if scores.fit == least[scores.attribute] and scores.fit * len(asked) < ALARMS
    ]


def calibrations(
    table: AuditTable, asked: Sequence[str] = (), *, seed: int = 0, level: float = 0.95
) -> Iterator[GroupCalibration]:
    """Yield the calibration of every group of every attribute; nothing without scores or labels.

    Where rows were chosen by group, labels weigh as many rows as they stand for; where labelling
    may stop because of them, intervals hold whenever it does.

    Parameters
    ----------
    asked : the attributes whose groups' labels are compared with those of other groups.
    """
    known = table.known
    if table.score is None or not len(known):
        return
    score, label, sampling = table.score[known], table.label[known], table.sampling
    arms = np.zeros(len(table), np.int64) if sampling is None else sampling.codes
    for attribute, groups in table.groups.items():
        names, codes = groups.cat.categories, groups.cat.codes.to_numpy(np.int64)
        sizes, ends = strata_sizes(codes, arms), None
        if sampling is None:
            ends = _ends(score, label, codes[known], len(names), level)
        fits = np.full(len(names), np.nan)
        if attribute in asked:
            generator = rng(seed, "calibrated alike", attribute)
            fits = unlike(score, label.astype(np.int64), codes[known], len(names), generator)
        for g, name in enumerate(names):
            own = codes[known] == g
            labels, reach = int(own.sum()), level
            if sampling is not None and sampling.whenever:
                reach = float(lasting_level(level, labels))
            scores = GroupCalibration(attribute, str(name), labels, fit=float(fits[g]))
            if labels >= FEWEST_LABELS:
                scores = _measured(
                    scores, score[own], label[own], arms[known][own], sizes[g], reach
                )
            if ends is not None:
                scores = replace(scores, lower=float(ends.lower[g]), upper=float(ends.upper[g]))
            yield scores


def excess_findings(
    shown: Sequence[GroupCalibration], judged: Sequence[GroupCalibration]
) -> Iterator[Finding]:
    """Yield of whom scores are too high or too low on average.

    Parameters
    ----------
    shown : with 95 % intervals. judged : the same with intervals at the level of verdicts.
    """
    for scores, wider in zip(shown, judged, strict=True):
        measured = not np.isnan(wider.lower)
        off = measured and wider.lower * wider.upper > 0
        yield Finding(
            EXCESS,
            scores.attribute,
            "mean score less share of label 1",
            LARGE if off else OPEN if measured else NOT_MEASURED,
            (scores.group,),
            value=scores.excess,
            lower=scores.lower,
            upper=scores.upper,
            n=scores.labels,
            needs="" if measured else "there are too few labels, or of one kind",
        )


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
