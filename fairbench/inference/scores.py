"""Intervals of areas under curves, calibration errors, rank correlations: closed forms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from fairbench.core.arrays import Codes, Floats
from fairbench.inference import means
from fairbench.inference.rates import Limits, last_holding, quantile
from fairbench.inference.survey import Design, Sampled, sums

RARE_ROWS = 10  # the fewest rows of either label of an area that has an interval
RARE_CLUSTERS = 5  # with fewer effective clusters of a label, its rows count as so many
RANK_ROWS = 20  # the fewest rows of a rank correlation that has an interval
_USUAL = 0.25  # the variance of a bin's count of labels from which on its noise is a normal one's


@dataclass(frozen=True, eq=False)
class Areas:
    """Areas under ROC curves, arrays of one shape.

    Attributes
    ----------
    area : the areas; NaN where there is only one label.
    positives, negatives : numbers of rows with label 1 and 0. Of weighted or clustered rows they
        are effective numbers: at least those of clusters (Kish), and no more where there are under
        :data:`RARE_CLUSTERS` of them.
    variance : DeLong's variances; NaN where a label has under two rows.
    units : effective numbers of clusters behind the variance, where rows are clustered.
    totals : (P,) sums of linearised scores by cluster and group, where rows were sampled.
    """

    area: Floats
    positives: Floats
    negatives: Floats
    variance: Floats
    units: Floats | None = None
    totals: Floats | None = None

    @classmethod
    def of(
        cls,
        target: Floats,
        score: Floats,
        codes: Codes,
        groups: int,
        *,
        design: Design | None = None,
        order: NDArray[np.intp] | None = None,
    ) -> Areas:
        """Return the areas (G,) of rows (n,) in groups 0 .. G - 1, with DeLong's variances.

        Parameters
        ----------
        design : how the rows were sampled: pairs of rows count by the product of their weights.
        order : the rows by group, and by score in a group, where that is known.

        Notes
        -----
        DeLong, DeLong and Clarke-Pearson (1988), by ranks (Sun and Xu 2014): the variance is that
        of the placements, the share of the other label's rows that each row beats, ties counting
        half. Of clusters it is that of their sums.
        """
        order = np.lexsort((score, codes)) if order is None else order
        label = target[order] > 0.5
        weight = np.ones(len(order)) if design is None else design.weight[order]
        sorted_score, sizes = score[order], np.bincount(codes, minlength=groups)
        # Blocks of rows of the same score and group, (B,), and the weight of each label in them.
        group_ends = np.cumsum(sizes)
        starts_block = np.ones(len(order), bool)
        np.not_equal(sorted_score[1:], sorted_score[:-1], out=starts_block[1:])
        starts_block[group_ends[group_ends < len(order)]] = True
        first = np.flatnonzero(starts_block)
        block_mass = np.add.reduceat(np.stack([~label, label]) * weight, first, axis=1)
        group = np.searchsorted(group_ends, first, side="right")
        mass = sums(block_mass, group, groups)
        # The share of the other label's weight that the rows of each label beat, (2, B).
        below = np.cumsum(block_mass, axis=1) - block_mass / 2
        below -= (np.cumsum(mass, axis=1) - mass)[:, group]
        with np.errstate(invalid="ignore", divide="ignore"):
            share_below = below / mass[:, group]
            placement = np.stack([1 - share_below[1], share_below[0]])
            area = np.bincount(group, block_mass[1] * placement[1], groups) / mass[1]
            area = np.where(mass[0] > 0, area, np.nan)
            influence = (placement - area[group]) / mass[:, group]
        if design is None:
            with np.errstate(invalid="ignore", divide="ignore"):
                squares = sums(block_mass * influence**2, group, groups)
                by_label = squares * (mass / (mass - 1))
            variance = np.where((mass > 1).all(axis=0), by_label.sum(axis=0), np.nan)
            return cls(area=area, positives=mass[1], negatives=mass[0], variance=variance)
        scores = np.empty(len(order))
        block = np.repeat(np.arange(len(first)), np.diff(first, append=len(order)))
        scores[order] = weight * influence[label.astype(np.intp), block]
        cell = 2 * codes
        cell[order] += label
        return _sampled_areas(area, scores, cell, design)

    def limits(self, level: means.Level = 0.95) -> Limits:
        """Return areas with their intervals, NaN under :data:`RARE_ROWS` rows of a label.

        Notes
        -----
        From the lower of both lower limits to the higher of both upper limits of two intervals:
        DeLong's on the logit scale, which holds for any scores but not near 1, where it is too
        short, and Newcombe's (2006, "Confidence intervals for an effect size measure based on the
        Mann-Whitney statistic", part 2, method 5), which holds there, and where the area is 1.
        """
        area = self.area
        with np.errstate(invalid="ignore", divide="ignore"):
            half_width = _quantile(level, self.units) * np.sqrt(self.variance) / (area * (1 - area))
            centre = special.logit(area)
        has_logit = (area > 0) & (area < 1) & np.isfinite(half_width)
        lower_delong = np.where(has_logit, special.expit(centre - half_width), area)
        upper_delong = np.where(has_logit, special.expit(centre + half_width), area)
        lower_newcombe, upper_newcombe = _newcombe(self, level)
        enough = np.minimum(self.positives, self.negatives) >= RARE_ROWS
        lower, upper = np.fmin(lower_delong, lower_newcombe), np.fmax(upper_delong, upper_newcombe)
        return Limits(area, np.where(enough, lower, np.nan), np.where(enough, upper, np.nan))


def _sampled_areas(area: Floats, scores: Floats, cell: Codes, design: Design) -> Areas:
    """Return areas of sampled rows from linearised scores (n,) and cells of group and label."""
    groups = len(area)
    cells = Sampled.of(design, cell, 2 * groups)
    sample = Sampled.of(design, cell // 2, groups)
    share = cells.totals(cells.share)[cells.pair] if cells.clustered else cells.share
    with np.errstate(invalid="ignore", divide="ignore"):
        # As with the cluster left out, of the rows of a label: the jackknife's variance.
        scores = scores * np.sqrt(1 - 1 / cells.units)[cell] / (1 - share)
    totals = sample.totals(scores)
    variance = sums(totals**2, sample.group, groups)
    several = (cells.units > 1).reshape(-1, 2).all(axis=1) & (sample.units > 1)
    rows = 1 / np.maximum(sums(cells.share**2, cell, 2 * groups), 1e-300)
    with np.errstate(invalid="ignore", divide="ignore"):
        effect = sums(scores**2, sample.codes, groups) / variance
    size = np.fmax(np.minimum(rows, rows * np.repeat(effect, 2)), cells.size)
    # Of very few clusters it is not known how alike their rows are.
    size = np.where(cells.size < RARE_CLUSTERS, cells.size, size)
    negatives, positives = np.where(cells.units > 0, size, 0.0).reshape(-1, 2).T
    variance = np.where(several, variance, np.nan)
    units = _units(cells, sample, scores) if design.clustered else None
    return Areas(area, positives, negatives, variance, units, totals)


def _units(cells: Sampled, sample: Sampled, scores: Floats) -> Floats:
    """Return the effective numbers of clusters (G,) behind the variances.

    Either label's part of a variance has one degree of freedom less than that label has effective
    clusters (Kish), and their sum those of Satterthwaite (1946, "An approximate distribution of
    estimates of variance components"), but no more than a group's clusters leave.
    """
    part = sums(cells.totals(scores) ** 2, cells.group, len(cells.units)).reshape(-1, 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        of_labels = part**2 / np.maximum(cells.size.reshape(-1, 2) - 1, 0)
        freedom = part.sum(axis=1) ** 2 / of_labels.sum(axis=1)
    return np.fmin(freedom + 1, sample.size)


def _quantile(level: means.Level, units: Floats | None = None) -> Floats:
    """Return the normal quantiles of two-sided intervals, or Student's of so many clusters."""
    tail = (1 + np.asarray(level)) / 2
    if units is None:
        return np.asarray(special.ndtri(tail))
    return np.asarray(special.stdtrit(np.maximum(units - 1, 1), tail))


def _newcombe(estimates: Areas, level: means.Level) -> Floats:
    """Return the furthest areas on either side whose own normal interval would reach the one found.

    Both ends, (2, ...), are found by bisection, to seven digits.
    """
    m, n, area = estimates.positives, estimates.negatives, estimates.area
    rows, many = _quantile(level, estimates.units) ** 2 / np.maximum(m * n, 1), (m + n) / 2 - 1

    def reached(p: Floats) -> NDArray[np.bool_]:
        spread = (1 - p) / (2 - p) + p / (1 + p)
        return (area - p) ** 2 <= p * (1 - p) * (1 + many * spread) * rows

    outermost = np.stack([np.zeros_like(area), np.ones_like(area)])
    return last_holding(reached, np.stack([area, area]), outermost, 24)


@dataclass(frozen=True, eq=False)
class Bins:
    """Reliability diagrams of groups.

    Attributes
    ----------
    size : (..., B) numbers of rows in each bin; of weighted rows, effective ones.
    positives : (..., B) numbers of rows with label 1.
    score : (..., B) mean scores.
    share : (..., B) shares of the weight, where rows are weighted.
    """

    size: Floats
    positives: Floats
    score: Floats
    share: Floats | None = None

    @cached_property
    def weight(self) -> Floats:
        """The share of its group's rows in each bin; 0 in a group of none."""
        if self.share is not None:
            return self.share
        total = self.size.sum(axis=-1, keepdims=True)
        return self.size / np.maximum(total, 1)

    @cached_property
    def away(self) -> Floats:
        """The share of label 1 minus the mean score; 0 in an empty bin."""
        rows = np.maximum(self.size, 1)
        return np.where(self.size > 0, self.positives / rows - self.score, 0.0)

    @cached_property
    def error(self) -> Floats:
        """The standard error of that, under a rate between the observed and the mean score."""
        rate = (self.positives + 2 * self.score) / (self.size + 2)
        return np.sqrt(rate * (1 - rate) / np.maximum(self.size, 1))

    def plug_in(self) -> Floats:
        """Return plug-in expected calibration errors (...), which are biased upwards."""
        return _or_undefined(self, (self.weight * np.abs(self.away)).sum(axis=-1))

    def limits(self, *, level: means.Level = 0.95) -> Limits:
        """Return debiased expected calibration errors, with intervals that reach 0 if these may.

        The estimand is the error of the population in the same bins. The lower limit is the plug-in
        error less its largest plausible bias, and less the distances to the limits of the bins'
        rates, combined as independent errors. The upper limit is the largest error of a population
        that is compatible with so small a plug-in error. The plug-in error always lies inside, too.
        """
        z, weight, away = _quantile(level), self.weight, self.away
        lower, upper = _wilson(self, z[..., None])
        low = np.where(away > 0, self.score + away - lower, upper - self.score - away)
        error = self.plug_in()
        surely = np.clip(np.abs(away) - low, 0, None) / np.maximum(self.error, 1e-6)
        bias = (weight * self.error * _folded_bias(surely)).sum(axis=-1)
        down = np.sqrt(((weight * low) ** 2).sum(axis=-1) + z**2 * _between(self, error))
        value = _debiased_error(self)
        lower = np.minimum(error - bias - down, value)
        upper = np.maximum(_largest(self, error, level), np.maximum(error, value))
        return Limits(value, _or_undefined(self, lower), _or_undefined(self, upper))


def _debiased_error(bins: Bins) -> Floats:
    """Return expected calibration errors (...) less their bias; they may be under 0.

    If scores are calibrated, a bin's rate is on average sqrt(2 / pi) standard errors away from its
    mean score. This bias is subtracted in part: the larger the observed distances are (the sum of
    their squares in standard errors is about the number of bins if scores are calibrated), the less
    is subtracted, since there is hardly any bias where rates are far from scores.

    Notes
    -----
    In the spirit of Ferro and Fricker (2012) and Kumar, Liang and Ma (2019), who remove the bias of
    squared errors.
    """
    bias = np.sqrt(2 / np.pi) * (bins.weight * bins.error).sum(axis=-1)
    used = (bins.size > 0).sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        strength = np.where(bins.error > 0, (bins.away / bins.error) ** 2, 0.0).sum(axis=-1)
        share = np.fmin(1, ((used + np.sqrt(2 * used)) / strength) ** 2)
    return bins.plug_in() - share * bias


def _between(bins: Bins, error: Floats) -> Floats:
    """Return the variance of errors due to the random numbers of rows in the bins."""
    variance = (bins.weight * bins.away**2).sum(axis=-1) - error**2
    return variance.clip(0) / np.maximum(bins.size.sum(axis=-1), 1)


def _largest(bins: Bins, error: Floats, level: means.Level) -> Floats:
    """Return the largest errors of a population that are compatible with the observed errors.

    Notes
    -----
    Noise makes the distances of rates from scores look larger; the larger a distance, the smaller
    this bias. The mean absolute value of a normal variable is convex in its mean, so that of all
    distances with the same sum, equal ones of k standard errors each look smallest (Jensen). The
    result is for the largest k with which the observed error is not significantly too small. Its
    standard error includes one more row with the largest possible distance: if labels are nearly
    always the same, the others, and rare scores, may not have occurred.
    """
    rows = bins.size.sum(axis=-1)
    noise_of_bins = bins.weight * bins.error
    # Labels so rare that they hardly occur in a bin make less noise than a normal variable.
    usual = np.clip((bins.size * bins.error) ** 2 / _USUAL, 0, 1)
    noise, normal = (noise_of_bins * usual).sum(axis=-1), (noise_of_bins**2 * usual).sum(axis=-1)
    unseen, reach = (1 - error) / (rows + 1), _quantile(level, rows + 1)
    fixed = (noise_of_bins**2).sum(axis=-1) + _between(bins, error) + unseen**2

    def allowed(k: Floats) -> Floats:
        added = _folded_bias(k)
        less = (k + added) ** 2 - k**2  # of the variance of 1
        return error - noise * added + unseen + reach * np.sqrt(fixed - normal * less)

    most = np.full_like(error, 40.0)
    return allowed(last_holding(lambda k: noise * k <= allowed(k), np.zeros_like(error), most, 30))


def _wilson(bins: Bins, z: Floats) -> tuple[Floats, Floats]:
    """Return Wilson's limits of the bins' rates, which are quick to compute for many bins."""
    n = np.maximum(bins.size, 1e-300)
    centre = (bins.positives + z**2 / 2) / (n + z**2)
    reach = np.sqrt(bins.positives * (1 - bins.positives / n) + z**2 / 4) * z / (n + z**2)
    return centre - reach, centre + reach


def _folded_bias(distance: Floats) -> Floats:
    """Return E|d + Z| - d of a standard normal Z: the bias of an absolute value."""
    distance = np.minimum(distance, 40.0)  # beyond which nothing is left of the noise
    density = np.exp(-(distance**2) / 2) / np.sqrt(2 * np.pi)
    return 2 * (density - distance * special.ndtr(-distance))


def _or_undefined(bins: Bins, values: Floats) -> Floats:
    """Return values (...), with NaN for groups without rows."""
    return np.where(bins.size.sum(axis=-1) > 0, values, np.nan)


def correlation_limits(value: ArrayLike, size: ArrayLike, *, level: float = 0.95) -> Limits:
    """Return Spearman's correlations with their intervals, NaN under :data:`RANK_ROWS`.

    Notes
    -----
    Bonett and Wright (2000), "Sample size requirements for estimating Pearson, Kendall and Spearman
    correlations": Fisher's transformation, with variance (1 + r^2 / 2) / (n - 3).
    """
    correlation, rows = np.asarray(value, float), np.asarray(size, float)
    with np.errstate(invalid="ignore", divide="ignore"):
        centre = np.arctanh(np.clip(correlation, -1, 1))
        reach = quantile(level) * np.sqrt((1 + correlation**2 / 2) / (rows - 3))
        lower, upper = np.tanh(centre - reach), np.tanh(centre + reach)
    enough = rows >= RANK_ROWS
    return Limits(correlation, np.where(enough, lower, np.nan), np.where(enough, upper, np.nan))


def coverage_area_limits(loss: ArrayLike, uncertainty: ArrayLike, *, level: float = 0.95) -> Limits:
    """Return the area under a risk-coverage curve, with its interval.

    The area is a weighted sum of errors. The row at position k of n has the weight 1/n times the
    sum of 1/k, 1/(k + 1) ... 1/n. The limits of such a sum also hold with few errors, or none.

    Parameters
    ----------
    loss : (n,) whether each row is an error.
    uncertainty : (n,) the uncertainty of each row; the least uncertain rows are kept first.
    level : the level of the interval.

    Notes
    -----
    Fay and Feuer (1997), "Confidence intervals for directly standardized rates: a method based on
    the gamma distribution", with the root mean square of the weights for the unseen error's, as
    Tiwari, Clegg and Zou (2006) take their mean: the largest weight is that of a single row.
    """
    is_error = np.asarray(loss, float)
    u = np.asarray(uncertainty, float)
    n = len(u)
    _, tie = np.unique(u, return_inverse=True)
    n_tied = np.bincount(tie)
    harmonic = np.cumsum(1 / np.arange(n, 0, -1.0))[::-1] / n
    stop = np.cumsum(n_tied)
    summed = np.concatenate([[0.0], np.cumsum(harmonic)])
    weight = ((summed[stop] - summed[stop - n_tied]) / n_tied)[tie]  # the mean over tied rows
    unseen = np.sqrt((weight**2).mean())
    y, v = np.asarray((weight * is_error).sum()), (weight**2 * is_error).sum()
    tail = (1 - level) / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        lower = np.where(y > 0, special.gammaincinv(y**2 / v, tail) * v / y, 0.0)
        above, spread = y + unseen, v + unseen**2
        upper = special.gammaincinv(above**2 / spread, 1 - tail) * spread / above
    return Limits(y, lower, upper)
