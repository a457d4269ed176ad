"""Measures by group in plain columns, of which audits make their tables.

Adverse impact (:func:`impact_ratios_of`), distributions of scores (:func:`score_distributions`) and
calibration (:func:`group_calibrations`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.core.text import is_missing_name
from fairbench.data.columns import tally
from fairbench.data.groups import codes_of
from fairbench.evaluation.predictions import AllGroups
from fairbench.inference import gaps, posterior
from fairbench.inference.means import Moments, around, by_group, loss_limits, outcome_limits
from fairbench.inference.rates import Limits, difference_limits, rate_limits
from fairbench.inference.survey import Design, SurveyCounts
from fairbench.metrics.registry import selection_rate

Row: TypeAlias = Mapping[str, Any]  # what is said of a group: plain values by name

# A group of fewer rows, or of a smaller share of them, is compared, and nobody is compared with it.
# No rule says so: 2 % is where rules begin to look at groups, of the data (6 RCNY 5-301(d)) or of a
# labor force (29 CFR 1607.15(A)(1)), and their ratios are over the highest rate of all groups.
FEWEST_ROWS, SMALLEST_SHARE = 10, 0.02
LARGE_ENOUGH = f"of at least {FEWEST_ROWS} rows and {100 * SMALLEST_SHARE:g} % of all"
COMPARED_WITH = (
    f"A group of fewer than {FEWEST_ROWS} rows, or of less than {100 * SMALLEST_SHARE:g} % of all, "
    "is compared with the others, and no other with it, where two groups are larger."
)


def is_given_reference(ratio: Row) -> bool:
    """Say whether a ratio is that of the group that somebody named to compare the others with."""
    return bool(ratio["given"] and ratio["group"] == ratio["reference"])


def impact_ratios_of(
    attribute: str,
    groups: pd.Series,
    selected: NDArray[np.bool_],
    *,
    reference: str = "",
    design: Design | None = None,
    times: NDArray[np.int64] | None = None,
    level: float = 0.95,
) -> list[Row]:
    """Return the impact ratios of the groups of one attribute that have rows, without `MISSING`.

    Returns
    -------
    Of each group: attribute, group and rows; rate, rate_lower and rate_upper, the share selected;
    reference, the group compared with, and whether it was given, as otherwise it is the group
    selected most often, and the interval allows for another group being it in truth; ratio, lower
    and upper, the impact ratio, of a given reference itself 1 without an interval; and below, the
    confidence that the ratio is under four fifths: 0.975 if the interval ends there.

    Parameters
    ----------
    groups : (n,) categorical labels.
    selected : (n,) whether each row is selected.
    reference : the group to compare with; without one, the group selected most often of those of
        at least :data:`FEWEST_ROWS` rows and :data:`SMALLEST_SHARE` of all.
    times : (n,) how often each row comes; once by default.
    """
    # Who states no group is no group: they are compared with nobody, unless somebody asks for it.
    left_out = [is_missing_name(str(name)) and name != reference for name in groups.cat.categories]
    if any(left_out):
        known = np.flatnonzero(~np.array(left_out)[groups.cat.codes])
        groups, selected = groups.iloc[known], selected[known]
        design = None if design is None else design.take(known)
        times = None if times is None else times[known]
    codes, names = codes_of(groups)
    if len(names) < 2:
        return []
    of_selected = selected if times is None else np.where(selected, times, 0)
    rows = tally(codes, times)
    number = np.bincount(codes, of_selected)
    survey = None
    if design is not None:
        survey = SurveyCounts.of(selected.astype(np.intp), codes, design, groups=len(names))

    def at_level(level: float) -> Limits:
        if survey is not None:
            return survey.limits(selection_rate, level=level)
        return rate_limits(number, rows, level=level)

    shared = 0.0 if survey is None else survey.correlation(selection_rate)
    return impact_ratios_at(
        attribute, names, rows, at_level, reference=reference, level=level, correlation=shared
    )


def impact_ratios_at(
    attribute: str,
    names: Sequence[str],
    rows: NDArray[np.intp],
    at: Callable[[float], Limits],
    *,
    reference: str = "",
    level: float = 0.95,
    correlation: Floats | float = 0.0,
) -> list[Row]:
    """Return the impact ratios of groups (G,) whose rates have limits already.

    Parameters
    ----------
    rows : (G,) how many rows each group has, which decides whom others may be compared with.
    at : a function that returns the rates with their limits at a level.
    correlation : (G, G) the correlations of the rates' errors.
    """
    given = reference in names
    about: Any = {"level": level, "correlation": correlation}
    rates = at(level)
    if given:
        place = list(names).index(reference)
        ratios, below = gaps.ratios_to_group(rates, place, **about)
    else:
        ratios, below, top = gaps.ratios_to_highest(at, may_be_compared_with(rows), **about)
        place = int(top)
    columns = {
        "attribute": attribute,
        "group": names,
        "rows": rows,
        **_limit_columns(rates, "rate", "rate_"),
        "reference": names[place],
        "given": given,
        **_limit_columns(ratios, "ratio"),
        "below": below,
    }
    return _rows(columns)


def may_be_compared_with(rows: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Say which groups of so many rows (G,) are large enough that others are compared with them.

    All, where under two are.
    """
    enough: NDArray[np.bool_] = (rows >= FEWEST_ROWS) & (rows >= SMALLEST_SHARE * rows.sum())
    return enough if enough.sum() > 1 else np.ones(len(rows), bool)


def _rows(columns: Mapping[str, Any]) -> list[Row]:
    """Return columns as rows of plain values."""
    return list(pd.DataFrame(columns).to_dict("records"))


def _limit_columns(limits: Limits, name: str, prefix: str = "") -> dict[str, Floats]:
    """Return the columns of values, called `name`, and of both limits."""
    return dict(zip((name, f"{prefix}lower", f"{prefix}upper"), limits, strict=True))


# How the scores of each group are distributed, and how far apart their means are.

QUANTILES = (0.1, 0.5, 0.9)
_BINS = 24
_NAN = (float("nan"),) * 3


def score_distributions(
    score: Floats, groups: Mapping[str, pd.Series], design: Design | None = None
) -> list[Row]:
    """Return the scores of every group that has rows; the reference of an attribute is first.

    Returns
    -------
    Of each group: attribute, group and rows; mean, the mean score and both limits of its interval,
    NaN of too few rows; difference, the mean less that of the reference group, with both limits
    likewise, NaN of the reference group itself; quantiles, the scores that a tenth, half and nine
    tenths of the group's are at most, NaN of a group whose weights are all 0; edges, those of bins,
    the same for all groups; and density, the share of the group's scores in each of these bins.
    """
    low, high = float(score.min()), float(score.max())
    is_share = low >= 0 and high <= 1
    bounds = (0.0, 1.0) if is_share else (-np.inf, np.inf)
    if is_share and high - low > 0.5:
        low, high = bounds
    edges = np.linspace(low, high if high > low else low + 1, _BINS + 1)
    bins = np.clip(np.searchsorted(edges, score, side="right") - 1, 0, _BINS - 1)
    distributions: list[Row] = []
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
            row = {
                "attribute": attribute,
                "group": name,
                "rows": len(rows),
                "mean": means.at(g),
                "difference": differences.at(g) if g else _NAN,
                "quantiles": quantiles.tolist(),
                "edges": edges.tolist(),
                "density": (density / (density.sum() or 1)).tolist(),
            }
            distributions.append(row)
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


# Calibration by group: whether scores agree with how often the known labels are positive.

BINS = 10
_LEVEL = 0.95
# Fewer labels make a difference of means, let alone a diagram, say next to nothing.
FEWEST_LABELS = 10


def group_calibrations(
    attribute: str, groups: pd.Series, score: Floats, label: Floats
) -> Iterator[Row]:
    """Yield the calibration of every group of an attribute.

    Parameters
    ----------
    groups : (n,) categorical labels.
    score : (n,) the scores of all rows.
    label : (n,) the labels of all rows, NaN where unknown.

    Yields
    ------
    attribute, group and labels; score and share, the mean score of the labelled rows and the share
    of positives among them; excess, lower and upper, mean score minus share with its interval, NaN
    with too few labels, or too few of the rarer label; bins, the labelled rows by their scores:
    size, score, share, lower and upper, the interval of a Beta(1, 1) prior; fit, the probability of
    labels at least as extreme as these if this group's scores are calibrated as the other groups'
    are (`fairbench.inference.few_labels`), NaN as it is not computed here; and at, a
    function that returns the interval of the excess at a level.
    """
    labelled = np.flatnonzero(~np.isnan(label))
    names, count = groups.cat.categories, len(groups.cat.categories)
    codes = groups.cat.codes.to_numpy(np.int64)[labelled]
    score, label = score[labelled], label[labelled]
    # If one label is rare, its share dominates the uncertainty of an excess, and a normal interval
    # would be too short.
    of_label, of_other = score - label, score - (1 - label)
    by_label = Moments.by_label(of_label, of_other, label.astype(np.intp), codes, count)
    paired = by_label.take(np.arange(2 * count).reshape(-1, 2))
    excesses = cache(lambda level: outcome_limits(paired, level=level))
    ends = np.cumsum(np.bincount(codes, minlength=count))
    for g, rows in enumerate(np.split(by_group(codes, count), ends[:-1])):
        at = partial(lambda group, level: excesses(level).at(group)[1:], g)
        measured, bins = dict.fromkeys(("score", "share", "excess"), _NAN[0]), list[Row]()
        if len(rows) >= FEWEST_LABELS:
            measured, bins = _measured(score[rows], label[rows])
        about = {"attribute": attribute, "group": str(names[g]), "labels": len(rows)}
        interval = dict(zip(("lower", "upper"), at(_LEVEL), strict=True))
        yield {**about, **measured, **interval, "bins": bins, "fit": _NAN[0], "at": at}


def _measured(score: Floats, label: Floats) -> tuple[dict[str, float], list[Row]]:
    """Return a group's score, share and excess, and its bins, from its labelled rows (n,)."""
    cell = np.minimum((score * BINS).astype(np.int64), BINS - 1)
    cells = np.stack([np.bincount(cell, column, BINS) for column in (None, score, label)])
    size, scores, positives = cells[:, cells[0] > 0]
    known = posterior.Beta(1 + positives, 1 + size - positives)
    limits = Limits(positives / size, *known.interval(_LEVEL))
    bins = {"size": size.astype(int), "score": scores / size, **_limit_columns(limits, "share")}
    mean, share = float(scores.sum() / len(score)), float(positives.sum() / len(score))
    return {"score": mean, "share": share, "excess": mean - share}, _rows(bins)
