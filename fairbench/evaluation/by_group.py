"""Measures by group in plain columns, of which audits make their tables.

Adverse impact (:func:`impact_ratios_of`), shares of the places of a ranking
(:func:`shares_of_places`), rates at many thresholds (:class:`ScoredRows`), distributions of scores
(:func:`score_distributions`), calibration (:func:`group_calibrations`) and predictions of several
classes (:func:`estimates_by_group`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.arrays import Codes, Floats
from fairbench.data.columns import MulticlassScores, tally
from fairbench.data.groups import codes_of
from fairbench.evaluation.predictions import AllGroups
from fairbench.evaluation.table import records
from fairbench.inference import gaps, posterior
from fairbench.inference.gaps import exposure_weights, top_weights, weighted_shares
from fairbench.inference.means import Moments, around, by_group, loss_limits, outcome_limits
from fairbench.inference.rates import Limits, difference_limits, lasting_level, rate_limits
from fairbench.inference.survey import Design, SurveyCounts, strata_sizes, stratified_error, weights
from fairbench.metrics.group import counts_at
from fairbench.metrics.registry import FN, FP, TN, TP, Rate, selection_rate

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
    """Return the impact ratios of the groups of one attribute that have rows.

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
    rates = at(level)
    if given:
        reference_index = list(names).index(reference)
        ratios, below = gaps.ratios_to_group(
            rates, reference_index, level=level, correlation=correlation
        )
    else:
        highest = may_be_compared_with(rows)
        wider = at(gaps.wider_level(level, highest))
        ratios, below, top = gaps.ratios_to_highest(
            rates, wider, highest, level=level, correlation=correlation
        )
        reference_index = int(top)
    columns = {
        "attribute": attribute,
        "group": names,
        "rows": rows,
        **_limit_columns(rates, "rate", "rate_"),
        "reference": names[reference_index],
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


# Each group's share of the positions of a ranking, in plain columns.

TOP, EXPOSURE = "top", "exposure"
_LONG = ("value", "lower", "upper", "n")
_LENGTHS = 40  # of the first places


def shares_of_places(
    score: Floats,
    groups: Mapping[str, pd.Series],
    lists: Codes | None,
    top: float,
    *,
    error_rate: float = 0.05,
) -> pd.DataFrame:
    """Return the share of a ranking's positions that each group of each attribute gets.

    Parameters
    ----------
    score : (n,) scores; the highest comes first.
    groups : attribute -> (n,) categorical labels.
    lists : (n,) the list that each row is in, if there are several.
    top : how many positions count as the top, or which share of all positions.
    error_rate : the probability that any row of the table is wrong to be `surely` true.

    Returns
    -------
    A row for each attribute, kind and group. kind : `TOP`, the top positions, or `EXPOSURE`, all
    positions weighted by how much they are seen. of_rows : the group's share of all rows. share :
    its share of the positions. ratio : share over of_rows, 1 if they are equal. below : the
    probability that the ratio is under four fifths. surely : whether the ratio differs from 1,
    simultaneously for all rows of the table.
    """
    list_codes = np.zeros(len(score), np.intp) if lists is None else lists
    kinds = {
        TOP: top_weights(score, list_codes, top),
        EXPOSURE: exposure_weights(score, list_codes),
    }
    questions = len(kinds) * sum(len(labels.cat.categories) for labels in groups.values())
    tables = []
    for attribute, labels in groups.items():
        codes, names = codes_of(labels)
        for kind, weight in kinds.items():
            measure = partial(weighted_shares, weight, codes, len(names), lists=lists)
            shares, of_rows, ratios, below = measure()
            _, _, wider, _ = measure(level=1 - error_rate / questions)
            # The errors' correlation depends on the level a little, and so does what is wider.
            lower = np.minimum(ratios.lower, wider.lower)
            upper = np.maximum(ratios.upper, wider.upper)
            about = {"attribute": attribute, "group": names, "kind": kind}
            counts = {"rows": np.bincount(codes), "of_rows": of_rows.value}
            share = _limit_columns(shares, "share", "share_")
            ratio = _limit_columns(ratios, "ratio", "ratio_")
            sure = {"below": below, "surely": (lower > 1) | (upper < 1)}
            tables.append(pd.DataFrame(about | counts | share | ratio | sure))
    return pd.concat(tables, ignore_index=True)


def in_long_form(shares: pd.DataFrame) -> pd.DataFrame:
    """Return shares and ratios, of what `shares_of_places` returns, one per row.

    Returns
    -------
    metric, such as ``top_share``, attribute, group, value, lower, upper and n, the group's rows.
    """
    tables = []
    for name in ("share", "ratio"):
        columns = dict(zip((name, f"{name}_lower", f"{name}_upper", "rows"), _LONG, strict=True))
        long = shares.rename(columns=columns).assign(metric=shares["kind"] + f"_{name}")
        tables.append(long[["metric", "attribute", "group", *_LONG]])
    return pd.concat(tables).sort_index(kind="stable")


def shares_by_length(
    score: Floats, codes: Codes, groups: int, lists: Codes | None
) -> tuple[Floats, Limits]:
    """Return the groups' shares of the top positions, for tops of different lengths.

    Parameters
    ----------
    score : (n,) scores; the highest comes first.
    codes : (n,) the group 0 .. G - 1 of each row.
    lists : (n,) which list a row is in, where there are several.

    Returns
    -------
    The lengths (L,) of the top, up to that of the longest list, and the shares (L, G).
    """
    list_codes = np.zeros(len(score), np.intp) if lists is None else lists
    spread = np.round(np.geomspace(1, np.bincount(list_codes).max(), _LENGTHS))
    lengths = np.unique(np.asarray(spread, np.float64))
    tops = [top_weights(score, list_codes, length) for length in lengths]
    shares = [weighted_shares(top, codes, groups, lists=lists)[0] for top in tops]
    return lengths, Limits(*np.stack(shares, axis=1))


def _rows(columns: Mapping[str, Any]) -> list[Row]:
    """Return columns as rows of plain values."""
    return list(pd.DataFrame(columns).to_dict("records"))


def _limit_columns(limits: Limits, name: str, prefix: str = "") -> dict[str, Floats]:
    """Return the columns of values, called `name`, and of both limits."""
    return dict(zip((name, f"{prefix}lower", f"{prefix}upper"), limits, strict=True))


# Rates of groups, with intervals, at many thresholds of their scores.


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows with scores.

    Attributes
    ----------
    score : (n,) the scores.
    label : (n,) the labels; None unless every row has one.
    design : weights and clusters of the rows; None if they are a simple random sample.
    low_is_selected : whether rows with scores up to the threshold are selected, rather than those
        above it. This concerns the selection rate alone: a prediction of label 1 always is a score
        above the threshold.
    """

    score: Floats
    label: Floats | None = None
    design: Design | None = None
    low_is_selected: bool = False

    def subset(self, chosen: NDArray[np.bool_]) -> ScoredRows:
        """Return the rows of a mask."""
        label = None if self.label is None else self.label[chosen]
        design = None if self.design is None else self.design.take(chosen)
        return ScoredRows(self.score[chosen], label, design, self.low_is_selected)

    def limits(
        self, rates: Sequence[Rate], codes: Codes, thresholds: Floats, *, level: float = 0.95
    ) -> list[gaps.GroupLimits]:
        """Return rates of groups, (K, G) each, at thresholds (K,).

        Parameters
        ----------
        codes : (n,) the groups, each of which has rows.
        """
        if self.design is not None:
            return [self._survey_limits(rate, codes, thresholds, level) for rate in rates]
        by_prediction = counts_at(thresholds, self.label, self.score, codes)
        by_selection = by_prediction
        if self.low_is_selected:
            by_selection = by_prediction[..., [FP, TN, TP, FN]]  # predictions exchanged
        counts = [by_selection if rate is selection_rate else by_prediction for rate in rates]
        return [
            gaps.GroupLimits.of(rate.successes(of_rate), rate.size(of_rate), level=level)
            for rate, of_rate in zip(rates, counts, strict=True)
        ]

    def _survey_limits(
        self, rate: Rate, codes: Codes, thresholds: Floats, level: float
    ) -> gaps.GroupLimits:
        """Return one rate of weighted or clustered rows, with its limits, at the thresholds."""
        assert self.design is not None
        flipped = self.low_is_selected and rate is selection_rate
        label = np.zeros(len(codes)) if self.label is None else self.label
        groups = codes.max() + 1
        surveys = []
        for threshold in thresholds:
            cell = (2 * label + ((self.score > threshold) != flipped)).astype(np.intp)
            surveys.append(SurveyCounts.of(cell, codes, self.design, groups=groups))
        pointwise, simultaneous = (
            Limits(*map(np.stack, zip(*(s.limits(rate, level=at) for s in surveys), strict=True)))
            for at in (level, gaps.simultaneous_level(level, groups))
        )
        correlations = np.stack([survey.correlation(rate) for survey in surveys])
        return gaps.GroupLimits(pointwise, simultaneous, correlations)


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
    attribute: str,
    groups: pd.Series,
    score: Floats,
    label: Floats,
    *,
    strata: Codes | None = None,
    anytime_valid: bool = False,
) -> Iterator[Row]:
    """Yield the calibration of every group of an attribute.

    Parameters
    ----------
    groups : (n,) categorical labels.
    score : (n,) the scores of all rows.
    label : (n,) the labels of all rows, NaN where unknown.
    strata : (n,) the sampling stratum of each row, if rows were not chosen for labelling at random
        among all; labels are then weighted by the rows that they stand for.
    anytime_valid : whether intervals hold whenever labelling is stopped.

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
        about = {"attribute": attribute, "group": str(name), "labels": labels}
        measured = dict.fromkeys(("score", "share", "excess"), _NAN[0])
        bins: list[Row] = []
        at: Callable[[float], tuple[float, float]] = _normal(*_NAN[:2], 0)
        if labels >= FEWEST_LABELS:
            level = float(lasting_level(_LEVEL, labels)) if anytime_valid else _LEVEL
            measured, error, bins = _measure(score[rows], label[rows], arms[rows], sizes[g], level)
            at = _normal(measured["excess"], error, labels if anytime_valid else 0)
        if all_excesses is not None:
            at = partial(lambda group, level: all_excesses(level).at(group)[1:], g)
        lower, upper = at(_LEVEL)
        interval = {"lower": lower, "upper": upper}
        yield {**about, **measured, **interval, "bins": bins, "fit": _NAN[0], "at": at}


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


def _normal(value: float, error: float, labels: int) -> Callable[[float], tuple[float, float]]:
    """Return the normal interval of a value by level; anytime-valid if `labels` is given."""

    def at_level(level: float) -> tuple[float, float]:
        normal_level = float(lasting_level(level, labels)) if labels else level
        half_width = NormalDist().inv_cdf((1 + normal_level) / 2) * error
        return value - half_width, value + half_width

    return at_level


def _measure(
    score: Floats,
    label: Floats,
    stratum: NDArray[np.int64],
    sizes: NDArray[np.int64],
    level: float,
) -> tuple[dict[str, float], float, list[Row]]:
    """Return a group's score, share and excess, the standard error of that, and its bins.

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
    means = {"score": float(total_score / size), "share": float(total_positives / size)}
    return {**means, "excess": excess}, float(error), _bins(sums, weight, level)


def _bins(sums: Floats, weight: Floats, level: float) -> list[Row]:
    """Return the bins that have labels, from sums over labels of 1, score, label ... (4, S, BINS).

    Parameters
    ----------
    weight : (S,) how many rows a label of each stratum stands for.
    """
    in_bins = sums[:, :, sums[0].any(axis=0)]
    size, score, positives = np.einsum("s,csb->cb", weight, in_bins[:3])
    effective = size**2 / (weight**2 @ in_bins[0])
    share = positives / size
    known = posterior.Beta(1 + share * effective, 1 + (1 - share) * effective)
    limits = Limits(share, *known.interval(level))
    labels = {"size": in_bins[0].sum(axis=0).astype(int), "score": score / size}
    return _rows({**labels, **_limit_columns(limits, "share")})


# Predictions of several classes, measured by group or by predicted class, in plain columns.

DRAWS = 4000
_MISTAKES = 10
_METRICS = {
    "accuracy": "accuracy",
    "calibration": "expected_calibration_error",
    "cost": "expected_cost",
}
# The columns of an estimate. ``extreme`` is the probability that it is the worst of all, if it has
# a posterior; the ranks are the interval of its rank, 1 being the worst. Both NaN for everyone.
_ESTIMATE = ("value", "lower", "upper", "extreme", "worst_rank", "best_rank")


def counts_of(scores: MulticlassScores, groups: pd.Series) -> pd.DataFrame:
    """Return the rows, labels and right predictions of the groups that have rows."""
    by_group = pd.Series(scores.correct).groupby(groups.array, observed=True)
    return by_group.agg(rows="size", labels="count", right="sum")


def estimates_by_group(
    scores: MulticlassScores,
    groups: pd.Series,
    generator: np.random.Generator,
    *,
    strength: float,
    informed: bool = False,
    frequentist: bool = True,
    costs: Floats | None = None,
) -> list[dict[str, Any]]:
    """Return accuracy, calibration error and cost of the groups that have rows.

    The accuracy is estimated from the labels alone, unless scores are its prior. Other quantities
    are posterior means.

    Parameters
    ----------
    groups : (n,) categorical labels.
    strength : the number of labels that a prior counts as.
    informed : whether scores are the prior.
    frequentist : whether intervals of accuracies come from the labels alone; ignored if `informed`.
    costs : (C, C) the costs of mistakes, if groups are the predicted classes.

    Returns
    -------
    A mapping for each group: its name, rows, labels, and ``accuracy``, ``calibration`` and
    ``cost``. Each of these is None or a mapping of value, lower, upper, extreme (the probability
    that it is the worst), worst_rank and best_rank.
    """
    names = groups.cat.categories
    code = groups.cat.codes.to_numpy(np.int64)
    n = len(names)
    counts = counts_of(scores, groups)
    kept = names.get_indexer(counts.index)
    diagram = posterior.reliability_diagram(
        scores.confidence, scores.correct, code, n_groups=n, strength=strength
    )
    error = diagram.calibration_error_draws(DRAWS, generator)[:, kept]
    calibration = _draw_estimates(diagram.expected_calibration_error()[kept], error)
    cost: Sequence[Mapping[str, Any] | None] = [None] * len(kept)
    if costs is not None:
        shares = posterior.uninformative_prior(n, strength=strength)
        if informed:
            shares = posterior.prior_from_scores(scores, strength=strength)
        mistakes = posterior.confusion_posterior(scores, shares)
        draws = posterior.cost_draws(mistakes, costs, DRAWS, generator)[:, kept]
        cost = _draw_estimates(posterior.expected_cost(mistakes, costs)[0][kept], draws)
    limits = rate_limits(counts["right"], counts["labels"])
    if informed or not frequentist:
        prior = posterior.uniform(n, strength)
        if informed:
            prior = posterior.score_prior(scores.confidence, code, n, strength=strength)
        known = posterior.accuracy_posterior(scores.correct, code, prior)
        draws = known.draws(DRAWS, generator)[:, kept]
        limits = Limits(known.mean[kept], *posterior.central_interval(draws))
    # Ranks come from the labels alone.
    above = gaps.GroupLimits.of(counts["right"], counts["labels"]).leads > 0
    worst = 1 + above.sum(axis=1)
    best = len(kept) - above.sum(axis=0)
    accuracy = _estimates(limits, worst_rank=worst, best_rank=best)
    table = counts.drop(columns="right").rename_axis("name").reset_index()
    return records(table.assign(accuracy=accuracy, calibration=calibration, cost=cost))


def estimates_in_long_form(
    estimates: Mapping[str, Sequence[Mapping[str, Any]]],
) -> Iterator[dict[str, Any]]:
    """Yield every estimate of what `estimates_by_group` returns, one per row.

    Parameters
    ----------
    estimates : attribute, empty of everyone -> the rows of its groups.

    Yields
    ------
    metric, attribute, group, value, lower, upper, n, the group's labels, and rows.
    """
    for attribute, of_groups in estimates.items():
        for of_group, (quantity, metric) in itertools.product(of_groups, _METRICS.items()):
            if estimate := of_group[quantity]:
                yield {
                    "metric": metric,
                    "attribute": attribute,
                    "group": of_group["name"] if attribute else "",
                    **{name: estimate[name] for name in Limits._fields},
                    "n": of_group["labels"],
                    "rows": of_group["rows"],
                }


def _draw_estimates(mean: Floats, draws: Floats) -> list[dict[str, Any]]:
    """Return the estimates of groups by draws (T, G); the group with the largest is the worst."""
    order = posterior.ranks(draws, largest=True)
    ranked = {"extreme": "first", "worst_rank": "lower", "best_rank": "upper"}
    columns = {column: order[name] for column, name in ranked.items()}
    return _estimates(Limits(mean, *posterior.central_interval(draws)), **columns)


def _estimates(limits: Limits, **order: Floats) -> list[dict[str, Any]]:
    """Return the estimates of groups, with what is known of their order if there are several."""
    columns = limits._asdict() | (order if len(limits.value) > 1 else {})
    return records(pd.DataFrame(columns, columns=list(_ESTIMATE), dtype=float))


def frequent_mistakes(scores: MulticlassScores) -> list[dict[str, Any]]:
    """Return the most frequent mistakes, with their shares of those predicted so.

    Returns
    -------
    Of each: target, prediction, count, and share: value, lower and upper.
    """
    n = len(scores.classes)
    classes = np.array(scores.classes, object)
    counts = posterior.confusion_posterior(scores, np.zeros((n, n)))
    mistakes = counts * (1 - np.eye(n))
    cells = np.argsort(-mistakes, axis=None, kind="stable")[:_MISTAKES]
    predicted, true = np.divmod(cells[mistakes.flat[cells] > 0], n)
    number_wrong = mistakes[predicted, true]
    total = counts.sum(axis=1)[predicted]
    lower, upper = posterior.Beta(1 + number_wrong, 1 + total - number_wrong).interval()
    share = Limits(number_wrong / total, lower, upper)
    mistakes = pd.DataFrame({"target": classes[true], "prediction": classes[predicted]})
    return records(mistakes.assign(count=number_wrong.astype(int), share=_estimates(share)))


def reliability_bins(scores: MulticlassScores, strength: float) -> pd.DataFrame:
    """Return the bins of the reliability diagram of all rows.

    Parameters
    ----------
    strength : how many labels the prior of a bin is worth.

    Returns
    -------
    A row for each bin: share_of_rows, score (their mean), labels, accuracy, lower and upper.
    """
    diagram = posterior.reliability_diagram(scores.confidence, scores.correct, strength=strength)
    lower, upper = diagram.accuracy.interval()
    columns = {"share_of_rows": diagram.weight, "score": diagram.score, "labels": diagram.labels}
    columns |= {"accuracy": diagram.accuracy.mean, "lower": lower, "upper": upper}
    return pd.DataFrame({name: values[0] for name, values in columns.items()})
