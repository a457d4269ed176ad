"""Lower and upper bounds of rates that rows alone cannot settle, and the bounds of their gaps.

Each bound is estimated like a rate of so many rows, so that limits of rates and of differences
serve for bounds too. Nothing in the rows says where between its bounds a rate is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import permutations, product
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairbench.core.arrays import Codes, Floats, Mask, divide
from fairbench.inference.gaps import pairs, simultaneous_level
from fairbench.inference.rates import Limits, difference_limits, rate_limits
from fairbench.inference.survey import LabelledRows
from fairbench.metrics.registry import FN, FP, TN, TP, Rate, binary_confusion


@dataclass(frozen=True, eq=False)
class RateBounds:
    """The least and the largest value that a rate of each of G groups may have.

    Attributes
    ----------
    value : (2, ..., G) the two values; NaN where nothing is known of the rate.
    rows : (2, ..., G) effective rows of each bound: an ordinary rate of so many rows has the same
        standard error.
    """

    value: Floats
    rows: Floats

    def limits(self, level: float) -> tuple[Limits, Limits]:
        """Return the lower and the upper bounds with their limits, each at this level."""
        both = rate_limits(self.value * self.rows, self.rows, level=level)
        return both.apply(itemgetter(0)), both.apply(itemgetter(1))

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return an interval (..., G) that holds both bounds, and so the rate between them."""
        lower_bound, upper_bound = self.limits(level)
        unknown = np.isnan(lower_bound.value)
        return np.where(unknown, 0.0, lower_bound.lower), np.where(unknown, 1.0, upper_bound.upper)

    @property
    def bounded_groups(self) -> NDArray[np.intp]:
        """The positions, along the last axis, of the groups whose rate has bounds."""
        return np.flatnonzero(np.isfinite(self.value.sum(axis=0)))

    def columns(self) -> dict[str, Floats]:
        """Return the table columns lowest and highest (the bounds), lower and upper (interval)."""
        names = "lowest", "highest", "lower", "upper"
        return dict(zip(names, (*self.value, *self.interval()), strict=True))

    def take(self, groups: ArrayLike) -> RateBounds:
        """Return the bounds of some groups, by their positions."""
        index = np.asarray(groups)
        return RateBounds(self.value[..., index], self.rows[..., index])

    def gap(self) -> dict[str, Any]:
        """Return the bounds of a gap between G groups, from the bounds (2, G) of their rates.

        Returns
        -------
        lower, upper : the bounds of the second group's rate minus the first's; of more than two
            groups, the bounds of the largest gap.
        interval : a 95 % interval of the gap, wherever between the bounds it is.
        """
        least, largest = self._differences(_LEVEL)
        if self.value.shape[-1] == 2:
            lower, upper, *interval = (
                array[1, 0] for array in (least.value, largest.value, least.lower, largest.upper)
            )
        else:
            *interval, _ = self.gap_size(_LEVEL)
            lower = max(0.0, _largest_of_pairs(least.value))
            upper = _largest_of_pairs(largest.value)
        ends = tuple(map(float, interval))
        return {"lower": float(lower), "upper": float(upper), "interval": ends}

    def gap_size(self, level: float) -> tuple[Floats, Floats, Floats]:
        """Return limits of the size of the largest gap, and of the lead of each group over another.

        Returns
        -------
        at_least : the largest lower limit of a pair; the limits of all pairs hold together.
        at_most : the largest upper limit of any one pair.
        leads : (G, G) the lower limits of all ordered pairs, which hold together.
        """
        least_together, _ = self._differences(simultaneous_level(level, self.value.shape[-1]))
        at_least = max(0.0, _largest_of_pairs(least_together.lower))
        at_most = _largest_of_pairs(self._differences(level)[1].upper)
        return np.asarray(at_least), np.asarray(at_most), least_together.lower

    def _differences(self, level: float) -> tuple[Limits, Limits]:
        """Return the least and the largest difference (G, G) of a group's rate from another's."""
        (lower, other_lower), (upper, other_upper) = map(pairs, self.limits(level))
        return difference_limits(lower, other_upper), difference_limits(upper, other_lower)


_LEVEL = 0.95


def size_bounds(lower: float, upper: float) -> tuple[float, float]:
    """Return the least and the largest size that a gap between two bounds may have."""
    return max(0.0, lower, -upper), max(abs(lower), abs(upper))


def _largest_of_pairs(values: Floats) -> float:
    """Return the largest entry off the diagonal."""
    of_distinct_groups = ~np.eye(len(values), dtype=bool)
    return float(values[of_distinct_groups].max())


# Labels that exist only for those who were selected: what follows for everyone.
#
# Whether somebody would have repaid a loan is known only of those who got one. Without an
# assumption the labels of the others may be anything. With one, they resemble those of similar
# people who were selected: the odds of label 1 differ by a factor at most.
#
# Manski (1989), "Anatomy of the selection problem"; Rambachan, Coston & Kennedy (2022), "Robust
# design and evaluation of predictive algorithms under unobserved confounding", with the odds
# bounded as in Rosenbaum's and Tan's models of sensitivity.


NOTHING = np.inf  # the factor that assumes nothing
_BANDS = 5
_LABELS_OF_BAND = 30
_QUANTILE = 1.96  # standard errors to either side of an interval


@dataclass(frozen=True, eq=False)
class SelectedLabels:
    """Rows of G groups by decision of the model (0, 1) and by B bands of similar people, (G, 2, B).

    Attributes
    ----------
    others : how many were not selected; no label of theirs is known.
    selected : how many were.
    labelled : how many of the selected have a label, chosen at random among those of their cell.
    positive : how many of these have label 1.
    """

    others: Floats
    selected: Floats
    labelled: Floats
    positive: Floats

    @classmethod
    def of(
        cls,
        label: Floats,
        decision: Codes,
        group: Codes,
        groups: int,
        *,
        selected: Mask,
        score: Floats | None = None,
    ) -> SelectedLabels:
        """Return counts of rows, in bands of scores with labels enough to say something.

        Parameters
        ----------
        label : (n,) 0, 1, or NaN where unknown.
        decision : (n,) 0 or 1.
        group : (n,) codes 0 .. G - 1.
        groups : G, the number of groups.
        selected : (n,) who was selected.
        score : (n,) the scores by which similar people are found; None puts all in one band.
        """
        known = np.isfinite(label)
        shape = (groups, 2, _BANDS)
        band = np.zeros(len(label), np.int64)
        if score is not None:
            for one_group, one_decision in product(range(groups), (0, 1)):
                in_cell = (group == one_group) & (decision == one_decision)
                band[in_cell] = _bands(score[in_cell], known[in_cell])
        cell = np.ravel_multi_index((group, decision, band), shape)

        def count(rows: Mask) -> Floats:
            counts = np.bincount(cell[rows], minlength=int(np.prod(shape)))
            return counts.reshape(shape).astype(np.float64)

        return cls(count(~selected), count(selected), count(known), count(known & (label == 1)))

    def bounds(self, rate: Rate, *, odds: float = NOTHING) -> RateBounds:
        """Return the least and the largest value (G,) of a rate among all rows.

        Parameters
        ----------
        rate : the rate.
        odds : the factor, at least 1, by which the odds of label 1 of those who were not selected
            differ at most from those of the selected of the same group, decision and band.

        Notes
        -----
        Sharp: a rate is a ratio of sums, so it is least and largest where the share of label 1
        among the others is least or largest, for each decision. Cells without any label leave
        everything open.
        """
        corners = [self._corner(rate, odds, high) for high in product((False, True), repeat=2)]
        values, rows = (np.stack(arrays) for arrays in zip(*corners, strict=True))
        # The corners of the least and of the largest value (2, G); NaN where there is none.
        ranked = np.where(np.isnan(values), np.inf, np.stack([values, -values]))
        extreme = ranked.argmin(axis=1), np.arange(values.shape[1])
        return RateBounds(values[extreme], rows[extreme])

    def _corner(self, rate: Rate, odds: float, largest: Sequence[bool]) -> tuple[Floats, Floats]:
        """Return a rate (G,) where the unknown labels are as extreme as the odds allow.

        Parameters
        ----------
        rate : the rate.
        odds : the factor between odds, as in :meth:`bounds`.
        largest : whether the others' share of label 1 is the largest, for decisions 0 and 1.

        Returns
        -------
        The rate, from the shares of label 1 as they are, and its effective rows (G,).

        Notes
        -----
        The delta method, for the squared error of numerator - r denominator at the rate r. A row
        with the probability p of label 1 adds z(p) = b + d p, on average, to
        numerator - r denominator. In a cell of n labels with the share p, the bound of the n_u
        rows of unknown label is h(p) and their n_k others have p, so that the variance is::

            sum over cells of  n_k z(p)^2 + n_u z(h)^2          which rows there are
                             + d^2 (n_k + n_u h'(p))^2 p (1 - p) / n    how well p is known

        The bound h is not straight in p: of few labels it lies too far inside by
        d n_u h''(p) p (1 - p) / 2n on average. That is added to the standard error, in units of
        the normal quantile of an interval.
        """
        high = np.array(largest)[:, None]
        has_labels = self.labelled > 0
        n_known = np.where(has_labels, self.selected, 0.0)
        n_unknown = self.others + self.selected - n_known
        (base, slope), (whole, whole_slope) = _lines(rate.numerator), _lines(rate.denominator)

        def shares(added: float) -> tuple[Floats, tuple[Floats, Floats, Floats]]:
            """Return shares of label 1 and bounds of the others', with so much more of each."""
            labelled = np.maximum(self.labelled + 2 * added, 1)
            share = np.where(has_labels, (self.positive + added) / labelled, 0.5)
            return share, _share_bound(share, odds, high, has_labels)

        def total(share: Floats, unknown: Floats, base: Floats, slope: Floats) -> Floats:
            """Return how many rows (G,) are expected in the cells of a line."""
            expected = n_known * (base + slope * share) + n_unknown * (base + slope * unknown)
            return np.asarray(expected.sum(axis=(-2, -1)))

        p, (bound, *_) = shares(0.0)
        numerator, denominator = total(p, bound, base, slope), total(p, bound, whole, whole_slope)
        corner = np.clip(divide(numerator, denominator), 0, 1)
        # Half a label is added to either side: of few labels, a share of 0 is not known to be 0.
        p, (bound, by_p, bend) = shares(0.5)
        numerator, denominator = total(p, bound, base, slope), total(p, bound, whole, whole_slope)
        with np.errstate(invalid="ignore", divide="ignore"):
            value = numerator / denominator
            at = np.where(denominator > 0, value, np.nan)[:, None, None]
            b, d = base - at * whole, slope - at * whole_slope
            between_rows = n_known * (b + d * p) ** 2 + n_unknown * (b + d * bound) ** 2
            by_share = d * (n_known + n_unknown * by_p)
            share_variance = np.where(has_labels, p * (1 - p) / np.maximum(self.labelled, 1), 0.0)
            variance = (between_rows + by_share**2 * share_variance).sum(axis=(-2, -1))
            bias = np.abs((d * n_unknown * bend * share_variance / 2).sum(axis=(-2, -1)))
            error = (np.sqrt(variance) + bias / _QUANTILE) ** 2
            rows = value * (1 - value) / (error / denominator**2)
        return corner, np.clip(np.nan_to_num(rows, nan=1.0, posinf=1.0), 1e-9, denominator)


def _bands(score: Floats, labelled: Mask) -> Codes:
    """Return the band of each score; bands have equally many labels."""
    bands = int(np.clip(labelled.sum() // _LABELS_OF_BAND, 1, _BANDS))
    if bands == 1:
        return np.zeros(len(score), np.int64)
    edges = np.quantile(score[labelled], np.arange(1, bands) / bands)
    return np.searchsorted(edges, score, side="right").astype(np.int64)


def _lines(cells: tuple[int, int, int, int]) -> tuple[Floats, Floats]:
    """Return what a row adds to a sum over cells, as a line (base, slope) in its label.

    Both are (2, 1): one line for each decision, broadcasting over bands.
    """
    table = (np.array(cells, float) > 0).astype(float).reshape(2, 2)  # by label, by decision
    return table[0][:, None], (table[1] - table[0])[:, None]


def _share_bound(
    share: Floats, odds: float, high: Mask, has_labels: Mask
) -> tuple[Floats, Floats, Floats]:
    """Return the largest (where `high`) or the least share of label 1 that the odds allow.

    Returns
    -------
    (G, 2, B) the extreme share of unknown rows, and its first and second derivative by the known
    share.

    Notes
    -----
    Odds that differ by the factor f from those of a share p are those of the share
    h(p) = f p / (1 + (f - 1) p), with h' = f / (1 + (f - 1) p)^2 and
    h'' = -2 h' (f - 1) / (1 + (f - 1) p). Without labels h is 0 or 1.
    """
    if np.isinf(odds):
        nothing = np.zeros_like(share)
        return np.broadcast_to(high * 1.0, share.shape), nothing, nothing
    factor = np.where(high, odds, 1 / odds)
    scale = 1 + (factor - 1) * share
    slope = factor / scale**2
    return (
        np.where(has_labels, factor * share / scale, high * 1.0),
        np.where(has_labels, slope, 0.0),
        np.where(has_labels, -2 * slope * (factor - 1) / scale, 0.0),
    )


# Bounds of groups' rates if groups are known only through a proxy's probabilities.
#
# Nobody's group is recorded, only the probability of each group given, say, a surname or a
# postcode. Among people with the same probabilities it is unknown which group those with positive
# decisions belong to; the bounds hold for every possible assignment.
#
# Kallus, Mao & Zhou (2022), "Assessing algorithmic fairness with unobserved protected class using
# data combination". The bounds are theirs (Fréchet's inequalities among people of equal
# probabilities), and sharp for the rate of a group and for the difference of two groups' rates,
# of any number of groups.

_FOLDS = 2
_ROWS_OF_CELL = 50  # rows on average in a cell of people with about the same probability
_MOST_CELLS = 50
_FEWEST = 20  # rows in a rate's denominator under which no bounds are given


@dataclass(frozen=True, eq=False)
class ProxyRows:
    """Rows whose group is known through probabilities.

    Attributes
    ----------
    group : (n, G) the probability of each group, which sum to 1.
    cell : (n,) which cell of the confusion table (TN, FP, FN, TP) a row is in, 0 .. 3.
    probability_cell : (n, G) for each group, the code of a row's cell; rows of one cell have about
        the same probability of the group.
    fold : (n,) 0 or 1, drawn at random.
    """

    group: Floats
    cell: Codes
    probability_cell: Codes
    fold: Codes

    @classmethod
    def of(cls, group: Floats, label: Codes, decision: Codes, fold: Codes) -> ProxyRows:
        """Return rows with labels and decisions (n,), in cells of about the same probability."""
        most = int(np.clip(len(group) // _ROWS_OF_CELL, 1, _MOST_CELLS))
        return cls(group, 2 * label + decision, _cells_of_equal_probability(group, most=most), fold)

    def weighted(self, rate: Rate) -> Floats:
        """Return a rate (G,) with rows counted by their probability of each group.

        It is right if, among people of equal probabilities, outcomes do not depend on the group
        (Chen et al. 2019, "Fairness under unawareness").
        """
        counts = np.stack([np.bincount(self.cell, weights, 4) for weights in self.group.T])
        return rate(counts)

    def bounds(self, rate: Rate) -> RateBounds:
        """Return the least and the largest value (G,) of a rate; NaN of too few rows.

        Notes
        -----
        A bound is a mean over people of the smaller of two numbers, their group's probability and
        their cell's share of successes. Which one is smaller is estimated from the other half of
        the rows, so that noise does not make bounds too narrow: a wrong choice only widens them.
        """
        numerator, denominator = np.array(rate.numerator) > 0, np.array(rate.denominator) > 0
        n_groups = self.group.shape[1]
        if denominator[self.cell].sum() < _FEWEST:
            return RateBounds(np.full((2, n_groups), np.nan), np.zeros((2, n_groups)))
        success = numerator[self.cell].astype(float)
        failure = (denominator & ~numerator)[self.cell].astype(float)
        bounds = []
        for g in range(n_groups):
            most_success, most_failure = self._at_most(g, success), self._at_most(g, failure)
            # What belongs to the group and is not in a set is at most what is not in the set.
            least_success = self.group[:, g] - self._at_most(g, 1 - success)
            least_failure = self.group[:, g] - self._at_most(g, 1 - failure)
            of_group = _share(least_success, most_failure), _share(most_success, least_failure)
            bounds.append(of_group)
        return RateBounds(*np.array(bounds).transpose(2, 1, 0))

    def _at_most(self, g: int, in_set: Floats) -> Floats:
        """Return (n,) numbers whose mean is at least the share of rows in group `g` and a set."""
        group, cells = self.group[:, g], self.probability_cell[:, g]
        n_cells = int(cells.max()) + 1
        group_is_smaller = np.zeros(len(group), bool)
        for fold in range(_FOLDS):
            learned = self.fold != fold
            excess = np.bincount(cells[learned], (group - in_set)[learned], n_cells)
            group_is_smaller[~learned] = (excess <= 0)[cells[~learned]]
        return np.where(group_is_smaller, group, in_set)


def _share(success: Floats, failure: Floats) -> tuple[float, float]:
    """Return mean(success) / (mean(success) + mean(failure)) with its effective rows.

    Notes
    -----
    The variance of the ratio v = s / (s + f) of two means over n rows, by linearisation, is
    mean((s_i - v (s_i + f_i))^2) / n / (s + f)^2.
    """
    n_rows = len(success)
    mean_success, mean_failure = max(float(success.mean()), 0.0), max(float(failure.mean()), 0.0)
    whole = mean_success + mean_failure
    if whole <= 0:
        return float("nan"), 0.0
    value = mean_success / whole
    variance = float(np.mean((success - value * (success + failure)) ** 2)) / n_rows / whole**2
    # Of a share near 0 or 1, half a row more is not ruled out.
    count = whole * n_rows
    smooth = (value * count + 0.5) / (count + 1)
    variance = max(variance, 0.0) + (smooth * (1 - smooth) - value * (1 - value)) / count
    rows = smooth * (1 - smooth) / max(variance, 1e-300)
    return value, float(np.clip(rows, 1e-9, count))


def _cells_of_equal_probability(group: Floats, *, most: int) -> Codes:
    """Return for each group (n, G) the cell of every row, of about the same probability.

    Rows of equal probability form one cell. If there are more than `most` distinct probabilities,
    quantiles delimit the cells.
    """
    codes = np.empty(group.shape, np.int64)
    for g, probability in enumerate(group.T):
        distinct, codes[:, g] = np.unique(probability, return_inverse=True)
        if len(distinct) > most:
            edges = np.unique(np.quantile(probability, np.arange(1, most) / most))
            codes[:, g] = np.searchsorted(edges, probability, side="right")
    return codes


# How far rates can be off if a share of the labels is wrong, whichever they are.
#
# A wrong label moves a row between true and false positives, or between true and false negatives:
# decisions are what they are. The bounds are sharp: for each end, there are labels that attain
# it.

# Whether wrong labels become 1 (1) or 0 (-1), at positive decisions and at negative ones.
_DIRECTIONS = ((1, 1), (1, -1), (-1, 1), (-1, -1))


def _correct_counts(counts: ArrayLike, wrong: ArrayLike, *, splits: int = 2) -> Floats:
    """Return the confusion counts that could be true if so many labels are wrong.

    Parameters
    ----------
    counts : (..., 4) counts of one group, TN, FP, FN, TP; or shares of them.
    wrong : (...) the largest number of wrong labels, or the largest share of all.
    splits : in how many ways the wrong labels are split between rows decided positive and negative;
        with more than two, labels are counted and not divided.

    Returns
    -------
    (4 * splits, ..., 4) with two splits, the corners of what is possible: every other table is a
    mean of these and of the one that is given.
    """
    table, most_wrong = np.asarray(counts, float), np.asarray(wrong, float)
    among_positive = np.multiply.outer(np.linspace(0, 1, splits), most_wrong)
    among_positive = among_positive if splits == 2 else np.floor(among_positive)
    ways = []
    for at_positive, at_negative in _DIRECTIONS:
        positive_room = table[..., FP if at_positive > 0 else TP]
        negative_room = table[..., TN if at_negative > 0 else FN]
        n_negative = np.minimum(
            most_wrong - np.minimum(among_positive, positive_room), negative_room
        )
        n_positive = np.minimum(most_wrong - n_negative, positive_room)
        positive, negative = at_positive * n_positive, at_negative * n_negative
        changes = {TN: -negative, FP: -positive, FN: negative, TP: positive}
        ways.append(
            np.stack([table[..., cell] + changes[cell] for cell in (TN, FP, FN, TP)], axis=-1)
        )
    return np.concatenate(ways)


@dataclass(frozen=True)
class Tipping:
    """With how many wrong labels a verdict still holds, whichever labels they are.

    Attributes
    ----------
    alone : for each group whose labels can undo the verdict, its name and the largest share of its
        labels that may be wrong, if all other groups' labels are right; the smallest share first.
    together : the largest share of the labels of every group that may be wrong at once; None where
        no share undoes the verdict.
    groups : the groups that the verdict is about; if one is ahead, it is the second.
    """

    alone: Sequence[tuple[str, float]]
    together: float | None
    groups: Sequence[str]


def _tipping_point(margin: Callable[[int], float], labels: int) -> int | None:
    """Return the largest number of wrong labels with which a verdict still holds.

    Parameters
    ----------
    margin : by how much the verdict holds with a number of wrong labels, whichever labels they
        are; at 0 and under, it does not. More wrong labels never make it larger.
    labels : how many labels there are.

    Returns
    -------
    None where the verdict holds even if all are wrong; -1 where it does not hold as it is. Of very
    many labels, the number may be too low by up to one in 50.

    Notes
    -----
    The margin's root by the Illinois method of false position (Dowell & Jarratt 1971), which needs
    few evaluations where the margin is almost straight.
    """
    low, high = 0, labels
    low_margin, high_margin = margin(low), margin(high)
    if low_margin <= 0:
        return -1
    if high_margin > 0:
        return None
    previous_side = 0
    while high - low > max(1, low // 50):
        root = low + low_margin / (low_margin - high_margin) * (high - low)
        middle = min(max(round(root), low + 1), high - 1)
        middle_margin = margin(middle)
        side = 1 if middle_margin > 0 else -1
        # Illinois: an end that stays twice in a row has its margin halved.
        if side > 0:
            low, low_margin = middle, middle_margin
            if previous_side == side:
                high_margin = high_margin / 2
        else:
            high, high_margin = middle, middle_margin
            if previous_side == side:
                low_margin = low_margin / 2
        previous_side = side
    return low


# The function of a number of wrong labels and a side (1 for a large rate, -1 for a small one) that
# returns the effective successes and sizes of a rate in each way to be wrong that is tried.
PossibleCounts: TypeAlias = Callable[[int, int], tuple[Floats, Floats]]
_SHARE_STEPS = 1000  # of 0 to 1, where a share of all groups' labels is wrong
_SPLITS = 9  # ways to split wrong labels between positive and negative decisions


def wrong_labels(group: NDArray[np.int64] | LabelledRows, rate: Rate) -> PossibleCounts:
    """Return the counts that a rate of one group may have.

    Parameters
    ----------
    group : the confusion counts (4,) of the group, where all its rows have labels, or its rows.
    rate : the rate.
    """
    if isinstance(group, LabelledRows):
        return _wrong_rows(group, rate)

    def possible(wrong: int, side: int) -> tuple[Floats, Floats]:
        tables = _correct_counts(group, wrong, splits=_SPLITS)
        return rate.successes(tables), rate.size(tables)

    return possible


def _wrong_rows(labels: LabelledRows, rate: Rate) -> PossibleCounts:
    """Choose which rows are wrong, too, by their scores.

    Effective counts from few labels and scores depend on which rows are wrong. In every cell of the
    confusion table the rows of the lowest scores are tried, and those of the highest.
    """
    by_score = np.argsort(labels.score[labels.rows], kind="stable")
    decision, label = labels.decision[labels.rows], labels.label
    (counts,) = binary_confusion(label, decision, np.zeros_like(label), n_groups=1)
    cell_of_row = 2 * label + decision
    rows_of_cell = [by_score[cell_of_row[by_score] == cell] for cell in (TN, FP, FN, TP)]

    def effective_counts(change: Floats, lowest: bool) -> tuple[float, float]:
        """Return effective counts with labels changed, of the lowest or of the highest scores."""
        changed = label.copy()
        n_changed = np.maximum(-change, 0).astype(int)
        for rows, number in zip(rows_of_cell, n_changed, strict=True):
            wrong = rows[:number] if lowest else rows[len(rows) - number :]
            changed[wrong] = 1 - changed[wrong]
        (successes,), (sizes,) = replace(labels, label=changed).effective_counts([rate])
        return float(successes[0]), float(sizes[0])

    def possible(wrong: int, side: int) -> tuple[Floats, Floats]:
        tables = _correct_counts(counts, wrong).astype(np.int64)
        values = side * rate(tables)
        tried = tables if np.isnan(values).any() else tables[[int(values.argmax())]]
        found = [
            effective_counts(table - counts, lowest) for table in tried for lowest in (True, False)
        ]
        successes, sizes = np.array(found).T
        return successes, sizes

    return possible


def tipping(
    names: Sequence[str],
    told_apart: Sequence[int],
    possible: Sequence[PossibleCounts],
    labels: NDArray[np.int64],
    limits: Callable[[Floats, Floats], Limits],
    *,
    large: bool,
    epsilon: float,
) -> Tipping:
    """Return with how many wrong labels a verdict on the gap of G groups still holds.

    Parameters
    ----------
    names : (G,) the names of the groups.
    told_apart : the two groups of which the verdict says that the second is ahead, if any.
    possible : for each group, the counts that its rate may have if a number of labels is wrong.
    labels : (G,) numbers of labels.
    limits : makes the interval of a rate from counts, as those of the verdict were made.
    large : whether the verdict is that two groups surely differ by more than epsilon; otherwise it
        is that none do.
    epsilon : the gap that matters.
    """

    @cache
    def extremes(group: int, wrong: int, side: int) -> Limits:
        """Return the extreme limits of a group's rate with wrong labels, to one side."""
        # Most ways to be wrong come to the same.
        found = limits(*np.unique(possible[group](wrong, side), axis=1))
        # Without a row of its denominator, a rate may be anything.
        found = found._replace(value=np.where(np.isnan(found.value), 0.5, found.value))
        places = {int(index) for array in found for index in (array.argmin(), array.argmax())}
        return found.take(sorted(places))

    def margin(groups: Sequence[int], wrong: Mapping[int, int]) -> float:
        """Return by how much the verdict on some groups holds, with so many wrong labels of each.

        Groups that are left out of `wrong` have none.
        """

        def limits_of(some_groups: Sequence[int], side: int) -> Limits:
            each = [extremes(g, wrong.get(g, 0), side) for g in some_groups]
            return Limits(*map(np.concatenate, zip(*each, strict=True)))

        def difference(first: int, second: Sequence[int], side: int) -> Limits:
            """Return the differences with the first group's rate large (1) or small (-1)."""
            first_column = limits_of([first], side).apply(lambda array: array[:, None])
            return difference_limits(first_column, limits_of(second, -side))

        if large:
            low, high = groups
            return float(difference(high, [low], -1).lower.min()) - epsilon
        widest = []
        for g in wrong or groups:
            others = [other for other in groups if other != g]
            widest.append(difference(g, others, 1).upper.max())
            widest.append(-difference(g, others, -1).lower.min())
        return epsilon - float(max(widest))

    groups: Sequence[int] = range(len(names))
    if large:
        # Without such groups, those of which the second is the most surely ahead.
        ordered = permutations(groups, 2)
        sure = margin(told_apart, {}) > 0
        groups = told_apart if sure else max(ordered, key=lambda pair: margin(pair, {}))

    def one_wrong(group: int, wrong: int) -> float:
        return margin(groups, {group: wrong})

    def all_wrong(steps: int) -> float:
        return margin(groups, {g: steps * int(labels[g]) // _SHARE_STEPS for g in groups})

    alone = []
    for g in groups:
        n_labels = int(labels[g])
        most_wrong = _tipping_point(partial(one_wrong, g), n_labels)
        if most_wrong is not None:
            alone.append((names[g], max(most_wrong, 0) / n_labels))
    steps = _tipping_point(all_wrong, _SHARE_STEPS)
    together = None if steps is None else max(steps, 0) / _SHARE_STEPS
    return Tipping(sorted(alone, key=itemgetter(1)), together, [names[g] for g in groups])
