"""How many independent rows a sample is worth whose rows belong together or weigh unequally.

K fold counts that share a correlation rho have the variance of 1 / (1 + (K - 1) rho) as many
independent rows: the shrinkage (Barrainkua et al. 2024, section 4; :func:`effective_counts`). Rows
of unequal weight, or of clusters, have an effective size (:class:`Design`). Few labels with scores
count for more labels without (:class:`LabelledRows`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from fairbench.core.arrays import Codes, Floats, divide
from fairbench.core.errors import UserError
from fairbench.data.in_memory import as_array, check_exact
from fairbench.inference.rates import Limits, rate_limits
from fairbench.metrics.registry import Rate, accuracy, selection_rate

PRIOR = 0.5  # how much of a cluster a variance is mixed with that sees few events


def effective_counts(fold_counts: NDArray[Any], shrinkage: float | Floats) -> Floats:
    """Return (..., C) effective counts of (K, ..., C) counts of K folds (Definition 2.2).

    Parameters
    ----------
    shrinkage : one number, or an array that broadcasts against the sum (per group: (G, 1)).
    """
    return np.asarray(fold_counts, float).sum(axis=0) * shrinkage


def shrinkage(rho: float | Floats, folds: int) -> Floats:
    """Return 1 / (1 + (K - 1) rho), with rho clipped to [-1/K, 1].

    Under the lower end the variance would vanish or turn negative; there the shrinkage is K.
    """
    return np.asarray(1 / (1 + (folds - 1) * _clip_correlation(rho, folds)))


def _clip_correlation(rho: float | Floats, folds: int) -> Floats:
    """Return rho within [-1/K, 1], where the variance of a mean of K folds stays positive."""
    return np.clip(rho, -1 / folds, 1)


def mean_shrinkage(folds: int) -> float:
    """Return the shrinkage averaged over rho in [0, 1/K]: 0.713 for ten folds."""
    width = (folds - 1) / folds
    return float(np.log1p(width) / width)


def overestimated_variance(halves: Floats) -> Floats:
    """Return the conservative variance of a metric from J half-splits, (J, 2, ...) -> (...).

    ``halves[j]`` are the metric's estimates from the two disjoint halves of split j;
    Var_over = (1 / 2J) sum_j (theta_j - theta_j^c)^2.
    """
    return ((halves[:, 0] - halves[:, 1]) ** 2).mean(axis=0) / 2


def variance_ratio(halves: Floats, reference: Floats, *, pooled: bool = False) -> Floats:
    """Return r_s = Var_over(A1) / Var_over(A0), one for each objective and group s (equation 3).

    Parameters
    ----------
    halves, reference : (J, 2, ...) estimates of the learner and of the reference learner on the
        same half-splits, the last axes objectives and groups.
    pooled : return the mean over objectives and groups, as for a correlation that is the same in
        all groups.

    Returns
    -------
    A ratio whose two variances are 0 or undefined is NaN, and left out of the mean.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = overestimated_variance(halves) / overestimated_variance(reference)
    return np.asarray(np.nanmean(ratio)) if pooled else ratio


def relative_rho(ratio: float | Floats, folds: int) -> Floats:
    """Return rho_rel = ((r - 1) + r (K - 1) rho_0) / (K - 1), the reference's rho_0 being 1/K.

    It is what makes the learner's variance r times the reference's (equation 3; the paper's text
    prints r upside down in one place).
    """
    ratio = np.asarray(ratio, float)
    return _clip_correlation(((ratio - 1) + ratio * (folds - 1) * (1 / folds)) / (folds - 1), folds)


def mean_relative_shrinkage(ratio: float | Floats, folds: int) -> Floats:
    """Return the shrinkage averaged over rho in [0, rho_rel] (rho_rel up).

    It reproduces the areas of the paper's Table 12.1, to 1 % in the mean.
    """
    inflation = (folds - 1) * relative_rho(ratio, folds)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(inflation == 0, 1.0, np.log1p(inflation) / inflation)


def half_splits(
    rows: int, splits: int, generator: np.random.Generator
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Yield `splits` random halvings of `rows` rows, each as two disjoint sorted arrays."""
    for _ in range(splits):
        order = generator.permutation(rows)
        yield np.sort(order[: rows // 2]), np.sort(order[rows // 2 : rows // 2 * 2])


def effective_size(
    rate: ArrayLike,
    variance: ArrayLike,
    *,
    rows: ArrayLike,
    kish: ArrayLike,
    share: ArrayLike,
    units: ArrayLike,
    level: float = 0.95,
) -> Floats:
    """Return how many equally weighted, independent rows would tell as much about a rate.

    Parameters
    ----------
    rate : weighted rates p, of any shape; the others broadcast with it.
    variance : sums over clusters of squared linearised scores.
    rows : how many rows n the rate rests on.
    kish : Kish's effective number of these rows, (sum w)^2 / sum w^2.
    share : the weighted mean share of a cluster: sum over clusters of their weight squared, over
        the whole weight squared (1 / n where nothing is clustered or weighted).
    units : in how many clusters these rows are.

    Notes
    -----
    p (1 - p) / variance, with three guards. Where few rows are events, the variance sees too few of
    their clusters to be relied on (with no event it is 0): it is mixed with half an event whose
    whole cluster shares it, the worst case. The size is at most Kish's, as the weights of the
    events that did not happen are not seen. And it is reduced by the squared ratio of t quantiles
    for the few clusters that the variance is known from (Korn and Graubard 1998). Of rows of equal
    weight without clusters it is n exactly.
    """
    p, n, units = np.asarray(rate, float), np.asarray(rows, float), np.asarray(units, float)
    share = np.asarray(share, float)
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = (p * (1 - p) + PRIOR * share) / n
        effect = (np.asarray(variance, float) + PRIOR * share**2) / expected
        size = np.minimum(n / effect, kish)
        tail = (1 + level) / 2
        t = special.stdtrit(np.maximum([n - 1, units - 1], 1), tail)
        size = size * (t[0] / t[1]) ** 2
    return np.where(n > 0, size, 0.0)


# Estimates from rows that count unequally (survey weights) or that come in clusters.
#
# Everything rests on linearised scores (Taylor linearisation): the contribution of each row to
# the error of an estimate. Their sums by cluster give the variance, and products of two
# estimates' sums give their covariance, by which the comparison of groups that share clusters is
# corrected. Without clusters every row is a cluster of its own.
#
# Binder (1983), "On the variances of asymptotically normal estimators from complex surveys"; Lohr
# (2010), "Sampling: design and analysis", chapters 5 and 9.

# Variances are raised to this floor before a division, so that an estimate without any variance has
# a correlation of 0 and not NaN. Variances other than 0 are far larger.
_SMALLEST_VARIANCE = 1e-300


@dataclass(frozen=True, eq=False)
class Design:
    """How rows were sampled.

    Attributes
    ----------
    weight : (n,) how many people each row stands for, as a share of the largest such number.
    unit : (n,) the cluster of each row, 0 .. units - 1; where there are no clusters, every row is
        one.
    units : the number of clusters.
    clustered : whether any two rows are in one cluster.
    """

    weight: Floats
    unit: Codes
    units: int
    clustered: bool

    @classmethod
    def of(
        cls, rows: int, *, weight: ArrayLike | None = None, clusters: ArrayLike | None = None
    ) -> Design:
        """Return the design of `rows` rows, equally weighted and unclustered by default.

        Raises
        ------
        UserError : unequal lengths, weights that are negative, not finite or all zero, or a
            missing cluster.
        """
        checked = np.ones(rows) if weight is None else _checked_weight(weight, rows)
        if clusters is None:
            return cls(checked, np.arange(rows), rows, clustered=False)
        unit, units = _checked_clusters(clusters, rows)
        return cls(checked, unit, units, clustered=units < rows)

    @classmethod
    def given(
        cls, rows: int, weight: ArrayLike | None = None, clusters: ArrayLike | None = None
    ) -> Design | None:
        """Return how rows were sampled; None where rows have equal weights and no clusters."""
        if weight is None and clusters is None:
            return None
        design = cls.of(rows, weight=weight, clusters=clusters)
        return design if design.weighted or design.clustered else None

    @property
    def weighted(self) -> bool:
        """Whether rows count unequally."""
        return bool((self.weight != self.weight[0]).any())

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.weight)

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Design:
        """Return the design of some of the rows alone, in that order."""
        weight = self.weight[rows]
        if not self.clustered:
            # Every row is its own cluster, numbered as it comes: totals by cluster are the rows'.
            return Design(weight, np.arange(len(weight)), len(weight), clustered=False)
        units, unit = np.unique(self.unit[rows], return_inverse=True)
        return Design(weight, unit, len(units), clustered=True)

    def totals(self, scores: Floats) -> Floats:
        """Return the sums by cluster (..., units) of values of rows (..., n)."""
        if not self.clustered:
            return np.asarray(scores, float)
        return sums(scores, self.unit, self.units)

    def repeated(self, times: int) -> Design:
        """Return the design of all rows several times over, one after the other.

        It is used where rows are in a group of each of several attributes; clusters stay what they
        are.
        """
        weight = np.tile(self.weight, times)
        if not self.clustered:
            return Design(weight, np.arange(len(weight)), len(weight), clustered=False)
        return Design(weight, np.tile(self.unit, times), self.units, clustered=True)


def _checked_weight(weight: ArrayLike, rows: int) -> Floats:
    """Return weights (n,) divided by the largest, or raise a UserError if they are no weights."""
    try:
        values = np.asarray(as_array(weight), float)
    except (TypeError, ValueError) as error:
        raise UserError(f"sample_weight is not numeric: {error}") from error
    if values.shape != (rows,):
        raise UserError(f"sample_weight has shape {values.shape}; it must be one number a row")
    bad = ~np.isfinite(values) | (values < 0)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise UserError(f"sample_weight is {values[row]:g} in row {row}; it must be 0 or more")
    if not values.any():
        raise UserError("sample_weight is 0 in every row: nobody is left to speak of")
    return values / values.max()


def _checked_clusters(clusters: ArrayLike, rows: int) -> tuple[Codes, int]:
    """Return the code of each row's cluster, and the number of clusters.

    Raises
    ------
    UserError : clusters of another shape than (n,), or a missing one.
    """
    import pandas as pd

    marks = as_array(clusters)
    if marks.shape != (rows,):
        raise UserError(f"clusters has shape {marks.shape}; it must be one mark a row")
    check_exact(marks, "clusters")
    missing = pd.isna(marks)
    if missing.any():
        raise UserError(f"clusters is missing in row {int(np.flatnonzero(missing)[0])}")
    unit, distinct = pd.factorize(marks)
    return unit.astype(np.intp), len(distinct)


@dataclass(frozen=True, eq=False)
class Sampled:
    """How the rows of G groups were sampled, for estimates of every group.

    Attributes
    ----------
    codes : (n,) the group of each row, 0 .. G - 1.
    share : (n,) the share of its group's weight that each row has, NaN in a group without any.
    pair : (n,) the pair of a cluster and a group that each row is in, 0 .. P - 1.
    unit, group : (P,) the cluster and the group of each pair.
    units : (G,) numbers of clusters that have rows of each group.
    clustered : whether any cluster has several rows.
    """

    codes: Codes
    share: Floats
    pair: Codes
    unit: Codes
    group: Codes
    units: Floats
    clustered: bool

    @classmethod
    def of(cls, design: Design, codes: NDArray[np.integer[Any]], groups: int) -> Sampled:
        """Return how rows in groups 0 .. G - 1 were sampled."""
        share = divide(design.weight, np.bincount(codes, design.weight, groups)[codes])
        groups_of = codes.astype(np.intp, copy=False)
        pair, unit, group = _pairs(design, groups_of, groups)
        units = np.bincount(group, minlength=groups).astype(float)
        return cls(groups_of, share, pair, unit, group, units, design.clustered)

    def means(self, values: Floats) -> Floats:
        """Return the weighted means (..., G) of values (..., n)."""
        return sums(self.share * values, self.codes, len(self.units))

    def totals(self, scores: Floats) -> Floats:
        """Return the sums by pair (..., P) of linearised scores (..., n)."""
        return sums(scores, self.pair, len(self.unit)) if self.clustered else scores

    def linearised(self, values: Floats) -> tuple[Floats, Floats]:
        """Return weighted means (..., G) of values (..., n), and sums (..., P) of their scores."""
        mean = self.means(values)
        return mean, self.totals(self.share * (values - mean[..., self.codes]))

    def pseudo_values(self, value: Floats, totals: Floats) -> Floats:
        """Return the jackknife's pseudo-values (..., P) of values (..., G).

        There is one pseudo-value for each cluster and group. An interval of a mean of independent
        losses, applied to pseudo-values, is an interval of the value. With equal weights and
        without clusters the pseudo-values of a mean are the losses themselves.
        """
        units, share = self.units[self.group], self.totals(self.share)
        stretch = np.where(units > 1, divide(units - 1, 1 - share), 1.0)
        return value[..., self.group] + stretch * totals

    @cached_property
    def size(self) -> Floats:
        """Kish's effective numbers (G,) of clusters: as many of equal weight give that variance."""
        share = self.totals(self.share)
        with np.errstate(divide="ignore"):
            kish = 1 / np.bincount(self.group, share**2, len(self.units))
        return np.where(self.units > 0, kish, 0.0)

    def product(self, first: Floats, second: Floats) -> Floats:
        """Return the correlations (..., G) of two estimates' errors, from totals (..., P)."""
        covariance, first_variance, second_variance = (
            sums(a * b, self.group, len(self.units))
            for a, b in ((first, second), (first, first), (second, second))
        )
        variances = np.maximum(first_variance * second_variance, _SMALLEST_VARIANCE)
        correlation = covariance / np.sqrt(variances)
        return np.asarray(np.clip(correlation, -1, 1))

    def correlation(self, totals: Floats) -> Floats:
        """Return the correlations (G, G) of groups' errors, 0 of groups that share no clusters."""
        count = len(self.units)
        if not self.clustered:
            return np.zeros((count, count))
        return _shared_correlation(np.nan_to_num(totals), self.unit, self.group, count)


def _shared_correlation(
    scores: Floats, unit: Codes, group: Codes, groups: int, variance: Floats | None = None
) -> Floats:
    """Return the correlations (G, G) of errors, from scores of pairs of a cluster and a group.

    The variances (G,) are those of the scores, if they are not given.
    """
    from scipy.sparse import csr_matrix

    shape = (int(unit.max(initial=0)) + 1, groups)
    matrix = csr_matrix((scores, (unit, group)), shape)
    product: Floats = (matrix.T @ matrix).toarray()
    variance = np.diag(product) if variance is None else variance
    spread = np.sqrt(np.maximum(variance, _SMALLEST_VARIANCE))
    return np.asarray(np.clip(product / np.outer(spread, spread), -1, 1))


def _pairs(design: Design, group: Codes, groups: int) -> tuple[Codes, Codes, Codes]:
    """Return each row's pair of a cluster and a group (n,), and both of every pair (P,)."""
    if not design.clustered:
        return design.unit, design.unit, group
    distinct, pair = np.unique(design.unit * groups + group, return_inverse=True)
    return pair, distinct // groups, distinct % groups


def sums(values: Floats, codes: NDArray[np.integer[Any]], groups: int) -> Floats:
    """Return the sums (..., G) of values (..., n) by group."""
    flat = np.reshape(values, (int(np.prod(np.shape(values)[:-1])), len(codes)))
    group_sums = [np.bincount(codes, scores, groups) for scores in flat]
    return np.reshape(np.asarray(group_sums, float), (*np.shape(values)[:-1], groups))


@dataclass(frozen=True, eq=False)
class SurveyCounts:
    """Weighted confusion counts of G groups, kept apart by cluster.

    Attributes
    ----------
    cells : (P, 4) weights of the rows in each cell, of every pair of a cluster and a group with
        rows in common.
    squares : (G, 4) sums of the squared weights.
    rows : (G, 4) numbers of rows.
    unit, group : (P,) the cluster and the group of each pair.
    shared : whether any cluster has rows of several groups.
    """

    cells: Floats
    squares: Floats
    rows: NDArray[np.int64]
    unit: Codes
    group: Codes
    shared: bool

    @classmethod
    def of(cls, cell: Codes, group: Codes, design: Design, *, groups: int) -> SurveyCounts:
        """Count rows by the cell of the confusion table (n,), 0 .. 3, and the group they are in."""
        pair, unit, of_pair = _pairs(design, group, groups)
        weight = design.weight
        cell_code = group * 4 + cell
        cells = np.bincount(pair * 4 + cell, weight, 4 * len(unit)).astype(np.float64)
        squares = np.bincount(cell_code, weight**2, 4 * groups).astype(np.float64).reshape(-1, 4)
        # Rows of weight 0 are not counted.
        rows = np.bincount(cell_code[weight > 0], minlength=4 * groups).reshape(-1, 4)
        shared = bool((np.bincount(unit) > 1).any())
        return cls(cells.reshape(-1, 4), squares, rows, unit, of_pair, shared)

    @cached_property
    def weighted(self) -> Floats:
        """The weights of every group's cells, (G, 4)."""
        return np.stack([self._by_group(self.cells[:, cell]) for cell in range(4)], axis=1)

    def _by_group(self, values: NDArray[np.floating[Any]]) -> Floats:
        return np.bincount(self.group, values, len(self.rows)).astype(np.float64)

    def linearised(self, rate: Rate) -> tuple[Floats, Floats, Floats]:
        """Return a rate (G,), its scores by pair (P,), and the pairs' shares of weight (P,)."""
        weight, whole = rate.size(self.cells), rate.size(self.weighted)
        with np.errstate(invalid="ignore", divide="ignore"):
            value = rate.successes(self.weighted) / whole
            scores = rate.successes(self.cells) - value[self.group] * weight
            of_whole = 1 / whole[self.group]
            return value, np.nan_to_num(scores * of_whole), np.nan_to_num(weight * of_whole)

    def _variance(self, scores: Floats, share: Floats) -> Floats:
        """Return variances (G,) mixed with what half an event in a whole cluster would add."""
        return self._by_group(scores**2) + PRIOR * self._by_group(share**2) ** 2

    def size(self, rate: Rate, *, level: float = 0.95) -> Floats:
        """Return the effective number of rows (G,) that a rate rests on."""
        value, scores, share = self.linearised(rate)
        kish = divide(rate.size(self.weighted) ** 2, rate.size(self.squares))
        return effective_size(
            value,
            self._by_group(scores**2),
            rows=rate.size(self.rows),
            kish=kish,
            share=self._by_group(share**2),
            units=self._by_group(1.0 * (share > 0)),
            level=level,
        )

    def limits(self, rate: Rate, *, level: float = 0.95) -> Limits:
        """Return the weighted shares (G,) of a rate's rows in its numerator's cells, with limits.

        The limits of a rate of whole counts at the effective size: the modified Jeffreys limits.
        """
        size = self.size(rate, level=level)
        return rate_limits(np.nan_to_num(self.linearised(rate)[0]) * size, size, level=level)

    def correlation(self, *rates: Rate) -> Floats:
        """Return the correlations (G, G) of a rate's errors in two groups; 0 of distinct clusters.

        As in :func:`effective_size`, half an event that only one of the two has is mixed in. Of
        several rates they are those of the errors of their mean.
        """
        if not self.shared:
            return np.zeros((len(self.rows), len(self.rows)))
        _, of_rates, shares = zip(*map(self.linearised, rates), strict=True)
        scores = sum(of_rates) / len(rates)
        variance = self._variance(scores, shares[0]) if len(rates) == 1 else None
        return _shared_correlation(scores, self.unit, self.group, len(self.rows), variance)

    def correlation_of(self, first: Rate, second: Rate) -> Floats:
        """Return the correlations (G,) of the errors of two rates of one group."""
        _, first_scores, first_share = self.linearised(first)
        _, second_scores, second_share = self.linearised(second)
        variances = self._variance(first_scores, first_share) * self._variance(
            second_scores, second_share
        )
        spread = np.sqrt(np.maximum(variances, _SMALLEST_VARIANCE))
        return np.clip(self._by_group(first_scores * second_scores) / spread, -1, 1)

    def counts(self) -> Floats:
        """Return effective counts (G, 4): the weighted shares times the effective group sizes.

        They replace the counts of independent rows, such as in posteriors. A group's effective size
        is that of its accuracy or of its selection rate, whichever is smaller.
        """
        size = np.minimum(self.size(accuracy), self.size(selection_rate))
        scale = np.nan_to_num(divide(size, self.weighted.sum(axis=1)))
        return self.weighted * scale[:, None]


# Rates of groups from few labels, assisted by scores of any quality.
#
# The rate of the labelled rows is corrected by the scores of the rows without a label. The better
# the scores have predicted labels within the group, the larger is the correction. Nothing is
# assumed of the scores: bad ones help less, and at worst not at all. The result is given as
# effective counts, the number of labels that would give the same variance without scores. All
# functions of counts can therefore use it.
#
# Difference estimators of survey sampling (Särndal, Swensson & Wretman 1992, "Model assisted survey
# sampling", chapter 6); with a fitted slope, prediction-powered inference (Angelopoulos, Duchi &
# Zrnic 2023, "PPI++").

# This many mean squared weights are added to the squared errors with and without scores. With few
# labels, which hardly show how well scores predict, it shrinks what scores explain towards 0.
UNSEEN = 2.0
# With n rows of a rate's rarer outcome, n / (n + FEW_EVENTS) of the fitted slope is kept: a few
# errors are predicted by chance as often as not.
FEW_EVENTS = 4.0
FEWEST = 5  # with fewer labels in a group, its scores are not used
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows of G groups with scores and decisions, some of them labelled at random.

    Attributes
    ----------
    score : (N,) scores of all rows, in [0, 1].
    decision : (N,) decisions on all rows, 0 or 1.
    group : (N,) groups of all rows, 0 .. G - 1.
    groups : G, the number of groups.
    rows : (n,) positions of the rows with a label.
    label : (n,) their labels, 0 or 1.
    weight : (n,) how many rows of its group each label stands for; None where all labels stand for
        equally many.
    copies : (N,) how many rows of the data each row stands for; None where each is one. `score` is
        the mean score of the rows it stands for.
    spread : (N,) the variance of the scores of these rows; None where it is 0.
    """

    score: Floats
    decision: Codes
    group: Codes
    groups: int
    rows: Codes
    label: Codes
    weight: Floats | None = None
    copies: Floats | None = None
    spread: Floats | None = None

    def of_group(self, group: int) -> LabelledRows:
        """Return the rows of one group, with its unlabelled rows merged by decision.

        The rates stay the same, because a row's expected influence is linear in its score.
        """
        of_this_group = np.flatnonzero(self.group[self.rows] == group)
        labelled_rows = self.rows[of_this_group]
        n_labelled = len(labelled_rows)
        unlabelled = self.group == group
        unlabelled[labelled_rows] = False
        by_decision = [unlabelled & (self.decision == decision) for decision in (0, 1)]
        merged = [mask for mask in by_decision if mask.any()]
        mean = np.array([self.score[mask].mean() for mask in merged], float)
        spread = np.array([self.score[mask].var() for mask in merged], float)
        merged_decision = np.array([self.decision[mask][0] for mask in merged], np.int64)
        copies = np.array([mask.sum() for mask in merged], float)
        return LabelledRows(
            score=np.concatenate([self.score[labelled_rows], mean]),
            decision=np.concatenate([self.decision[labelled_rows], merged_decision]),
            group=np.zeros(n_labelled + len(merged), np.int64),
            groups=1,
            rows=np.arange(n_labelled),
            label=self.label[of_this_group],
            weight=None if self.weight is None else self.weight[of_this_group],
            copies=np.concatenate([np.ones(n_labelled), copies]),
            spread=np.concatenate([np.zeros(n_labelled), spread]),
        )

    def effective_counts(self, rates: Sequence[Rate]) -> tuple[Floats, Floats]:
        """Return the effective successes and sizes (R, G) of each rate.

        A rate that rests on decisions alone is counted in all rows. A group without a row of the
        rate's denominator among its labels has a size of 0.
        """
        counts = []
        for rate in rates:
            if rate.needs_no_label:
                cells = _cells(rate.numerator), _cells(rate.denominator)
                counts.append([self._sum_all(counted[self.decision]) for counted in cells])
                continue
            share, size, denominator, events, *influences = self._from_labels(rate)
            moved, remaining = self._variance_reduction(events, *influences)
            size = size / remaining
            counts.append([np.clip(share + moved / denominator, 0, 1) * size, size])
        successes, sizes = np.array(counts, float).transpose(1, 0, 2)
        return successes, sizes

    def effective_counts_of_mean(self, rates: Sequence[Rate]) -> tuple[Floats, Floats]:
        """Return effective successes and sizes (R, G) whose mean over rates has the right variance.

        If every rate is assisted by itself, the errors of the rates become correlated: a high score
        moves the true positive and the true negative rate in opposite directions, so that it
        reduces the error of either but not that of their mean. Here the slope is fitted to the mean
        of the rates; each rate's effective size is scaled by the variance reduction of that mean.
        The errors of the rates then count as independent, as they are with labels alone. The counts
        are valid for the mean of the rates, not for a single one.

        Parameters
        ----------
        rates : the rates; no row is in the denominators of two of them.
        """
        parts = [self._from_labels(rate) for rate in rates]
        shares, sizes, denominators, events, influences, expected, by_score = zip(
            *parts, strict=True
        )
        # Influences are scaled to the smallest denominator of the rates.
        smallest = np.minimum.reduce(denominators)
        factors = [smallest / denominator for denominator in denominators]
        of_all = [factor[self.group] for factor in factors]
        of_labelled = [factor[self.rows] for factor in of_all]
        moved, remaining = self._variance_reduction(
            np.minimum.reduce(events),
            reduce(np.add, map(np.multiply, of_labelled, influences)),
            reduce(np.add, map(np.multiply, of_all, expected)),
            reduce(np.add, map(np.multiply, of_all, by_score)),
        )
        means = _move_together(np.array(shares), moved / smallest)
        effective = np.array(sizes) / remaining
        return means * effective, effective

    def rows_of(self, rates: Sequence[Rate]) -> Floats:
        """Return how many rows (R, G) each rate rests on, with labels where it needs them."""
        cell = 2 * self.label + self.decision[self.rows]
        sizes = [
            self._sum_all(_cells(rate.denominator)[self.decision])
            if rate.needs_no_label
            else self._sum(_cells(rate.denominator)[cell])
            for rate in rates
        ]
        return np.array(sizes)

    def _from_labels(self, rate: Rate) -> tuple[Floats, ...]:
        """Return a rate of the labelled rows, and the influence that scores predict for all.

        Returns
        -------
        share : (G,) the rates.
        size : (G,) effective numbers of labels that they rest on.
        denominator : (G,) how many rows of the group the labels in the denominator stand for.
        events : (G,) how many labels of the rarer outcome there are.
        influence : (n,) how far each labelled row moves its group's rate, times `denominator`.
        expected : (N,) the influence of every row that its score predicts.
        by_score : (N,) the slope of the expected influence in the score.
        """
        numerator_of, denominator_of = _cells(rate.numerator), _cells(rate.denominator)
        cell = 2 * self.label + self.decision[self.rows]
        in_numerator, in_denominator = numerator_of[cell], denominator_of[cell]
        weight = self._weights
        denominator = np.maximum(self._sum(weight * in_denominator), _TINY)
        squared_weights = np.maximum(self._sum((weight * in_denominator) ** 2), _TINY)
        kish_size = denominator**2 / squared_weights
        share = self._sum(weight * in_numerator) / denominator
        events = np.minimum(share, 1 - share) * kish_size
        has_rows = self._sum(in_denominator) > 0
        size = np.where(has_rows, kish_size * self._degrees_of_freedom_left, 0.0)
        influence = in_numerator - share[self.group[self.rows]] * in_denominator
        # The influence of every row if its label were 0, and 1.
        if_zero, if_one = (
            numerator_of[self.decision + 2 * label]
            - share[self.group] * denominator_of[self.decision + 2 * label]
            for label in (0, 1)
        )
        expected = (1 - self.score) * if_zero + self.score * if_one
        return share, size, denominator, events, influence, expected, if_one - if_zero

    def _variance_reduction(
        self, events: Floats, influence: Floats, expected: Floats, by_score: Floats
    ) -> tuple[Floats, Floats]:
        """Return how far scores move each group's rate, and how much of its variance remains.

        That is (G,) what they add to the sum of influences, and the share of the variance.

        Parameters
        ----------
        events : (G,) numbers of labels of the rarer outcome.
        influence : (n,) the influence of each labelled row.
        expected, by_score : (N,) what the scores predict of the influence of all rows, and its
            slope in the score.

        Notes
        -----
        In each group:

        1. Fit the slope b of influences on predictions, by least squares. The labelled rows i have
           weights w_i, influences y_i and predictions x_i. The predictor is
           a_i = w_i (x_i - mean of x), the response is z_i = w_i y_i, and the slope is
           sum(a z) / max(sum(a^2), V). V is the value of sum(a^2) if the predictions of labelled
           rows varied as much as those of all rows. Without V, if few rows have extreme scores and
           none of them is labelled yet, a slope fitted to small differences among the others would
           be extrapolated to them, and would be noise.
        2. Compute the errors of rows that are left out of the fit. With J = n / (n - 1) of a
           group's n labels, the slope without row i is
           (sum(a z) - J a_i z_i) / max(sum(a^2) - J a_i^2, V / J), and the errors of the row are
           J (z_i - slope a_i) and, without scores, J z_i.
        3. Shrink b by the factor s by which left-out rows are predicted worse than those in the
           fit. With the squared errors of left-out rows with and without scores, E and E0, and the
           same errors of the rows in the fit, E_in and E0_in, it is
           (1 - E / E0) / (1 - E_in / E0_in), limited to [0, 1].
        4. Estimate the share of the variance that remains, v = (E + u) / (E0 + u), at most 1, with
           u = UNSEEN times the mean squared weight.
        5. Keep the part q = e / (e + FEW_EVENTS) of the slope, where e is the number of events. The
           slope is then b s q, and the explained share of the variance (1 - v) (1 - (1 - q)^2).
        6. Leave the variance of labelled rows as it is: their labels are known.
        """
        group, weight, n_labels = self.group[self.rows], self._weights, self._labels
        rows = np.maximum(self._sum_all(np.ones(len(self.group))), 1)
        mean_of_all = self._sum_all(expected) / rows
        squares_of_all = (expected - mean_of_all[self.group]) ** 2
        if self.spread is not None:
            squares_of_all = squares_of_all + self.spread * by_score**2
        total_weight = np.maximum(self._sum(weight), _TINY)
        squared_weights = self._sum(weight**2)
        predicted = expected[self.rows]
        mean_of_labelled = self._sum(weight * predicted) / total_weight
        predictor = weight * (predicted - mean_of_labelled[group])
        response = weight * influence
        # Leaving a row out of its own mean enlarges its error by this factor, n / (n - 1).
        jackknife = np.maximum(n_labels, 2) / (np.maximum(n_labels, 2) - 1)
        variance_of_all = self._sum_all(squares_of_all) / rows
        least_squares = np.maximum(squared_weights * variance_of_all / jackknife, _TINY)
        squares, products = self._sum(predictor**2), self._sum(predictor * response)
        slope = products / np.maximum(squares, least_squares)

        factor = jackknife[group]
        squares_of_others = np.maximum(
            squares[group] - factor * predictor**2, (least_squares / jackknife)[group]
        )
        slope_of_others = (products[group] - factor * predictor * response) / squares_of_others
        with_scores = self._sum((factor * (response - slope_of_others * predictor)) ** 2)
        without_scores = self._sum((factor * response) ** 2)

        explained_left_out = 1 - with_scores / np.maximum(without_scores, _TINY)
        error_in_fit = self._sum((response - slope[group] * predictor) ** 2)
        explained_in_fit = 1 - error_in_fit / np.maximum(self._sum(response**2), _TINY)
        shrinkage = np.clip(explained_left_out / np.maximum(explained_in_fit, _TINY), 0, 1)
        unseen = UNSEEN * squared_weights / np.maximum(n_labels, 1)
        remaining = np.clip(
            (with_scores + unseen) / np.maximum(without_scores + unseen, _TINY), _TINY, 1
        )
        has_enough = n_labels >= FEWEST
        slope = np.where(has_enough, slope * shrinkage, 0)
        remaining = np.where(has_enough, remaining, 1.0)
        kept = events / (events + FEW_EVENTS)
        slope = slope * kept
        remaining = 1 - (1 - remaining) * kept * (2 - kept)
        labelled_share = n_labels / rows
        moved = slope * (mean_of_all - mean_of_labelled) * total_weight
        return moved, remaining + (1 - remaining) * labelled_share

    @property
    def _weights(self) -> Floats:
        """How many rows each label stands for, (n,)."""
        return np.ones(len(self.rows)) if self.weight is None else self.weight

    @property
    def _labels(self) -> Floats:
        """Numbers of labels (G,); Kish's effective numbers where labels have unequal weights."""
        total, squares = self._sum(self._weights), self._sum(self._weights**2)
        return total**2 / np.maximum(squares, _TINY)

    @property
    def _degrees_of_freedom_left(self) -> Floats:
        """The share (G,) of degrees of freedom that remains after one for each further weight.

        The parts of a group that were labelled at different rates have a mean each. Every mean that
        is estimated takes one degree of freedom from the estimate of the variance.
        """
        if self.weight is None:
            return np.ones(self.groups)
        n_labels = self._sum(np.ones(len(self.rows)))
        pairs = np.unique(np.stack([self.group[self.rows], self.weight]), axis=1)
        n_weights = np.bincount(pairs[0].astype(np.int64), minlength=self.groups)
        return np.asarray((n_labels - np.maximum(n_weights - 1, 0)) / np.maximum(n_labels, 1))

    def _sum(self, values: Floats) -> Floats:
        """Return the sums (G,) of values (n,) of labelled rows."""
        if self.groups == 1:
            return np.asarray(values.sum(keepdims=True))
        return sums(values, self.group[self.rows], self.groups)

    def _sum_all(self, values: Floats) -> Floats:
        """Return the sums (G,) of values (N,) of all rows."""
        counted = values if self.copies is None else values * self.copies
        return sums(counted, self.group, self.groups)


def _move_together(shares: Floats, sum_change: Floats) -> Floats:
    """Return shares (R, G) whose sum is changed, each by the same part of its way to 0 or 1.

    The scores determine the sum. How the change divides among the shares is known less well; this
    division keeps each share in [0, 1].
    """
    room = np.where(sum_change > 0, (1 - shares).sum(axis=0), shares.sum(axis=0))
    step = np.clip(sum_change / np.maximum(room, _TINY), -1, 1)
    return np.asarray(np.where(step > 0, shares + step * (1 - shares), shares * (1 + step)))


def _cells(weights: Sequence[int]) -> Floats:
    """Return 1 for each of the cells TN, FP, FN, TP that a rate counts, else 0."""
    return (np.array(weights) > 0).astype(float)
