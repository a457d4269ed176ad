"""Rates of groups from few labels, helped by scores of any quality.

A rate of labelled rows is corrected by the scores of the rows without a label, as far as scores
have predicted labels within the group. Nothing is assumed of the scores: those that are wrong help
less, and at worst not at all. The result is given as effective counts: as many labels as the labels
and the scores together are worth. Whatever takes counts can therefore take them.

Difference estimators of survey sampling (Särndal, Swensson & Wretman 1992, "Model assisted survey
sampling", chapter 6); with a fitted slope, prediction-powered inference (Angelopoulos, Duchi &
Zrnic 2023, "PPI++").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.inference.survey import sums
from fairbench.metrics.rates import Rate

Codes = NDArray[np.int64]
# The squared errors of so many rows are added to those with and without the scores. It draws what
# scores explain towards nothing where there are few labels, which show little of how well scores
# predict.
UNSEEN = 2.0
# With n rows of a rate's rarer outcome, n / (n + FEW_EVENTS) of the fitted slope is kept: a few
# errors are predicted by chance as often as not.
FEW_EVENTS = 4.0
FEWEST = 5  # labels of a group under which scores are not used
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows of G groups with scores and decisions, some of them labelled at random.

    Attributes
    ----------
    score, decision, group : (N,) of all rows: in [0, 1], 0 or 1, and 0 .. G - 1.
    rows : (n,) positions of the rows with a label.
    label : (n,) 0 or 1.
    weight : (n,) how many rows of its group each label stands for; None where all stand for as
        many.
    copies : (N,) how many rows each row of the table is; None where each is one.
    spread : (N,) the variance of the scores of these rows, whose mean `score` is; None where it
        is 0.
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
        """Return the rows of one group, with one row for all that have a decision but no label.

        The rates stay the same, as what is expected of a row is linear in its score.
        """
        of_this_group = np.flatnonzero(self.group[self.rows] == group)
        places = self.rows[of_this_group]
        unlabelled = self.group == group
        unlabelled[places] = False
        rows = [unlabelled & (self.decision == decision) for decision in (0, 1)]
        rows = [row for row in rows if row.any()]
        mean = np.array([self.score[row].mean() for row in rows], float)
        spread = np.array([self.score[row].var() for row in rows], float)
        decided = np.array([self.decision[row][0] for row in rows], np.int64)
        several = np.array([row.sum() for row in rows], float)
        size = len(places) + len(rows)
        return LabelledRows(
            np.concatenate([self.score[places], mean]),
            np.concatenate([self.decision[places], decided]),
            np.zeros(size, np.int64),
            1,
            np.arange(len(places)),
            self.label[of_this_group],
            None if self.weight is None else self.weight[of_this_group],
            np.concatenate([np.ones(len(places)), several]),
            np.concatenate([np.zeros(len(places)), spread]),
        )

    def effective_counts(self, rates: Sequence[Rate]) -> tuple[Floats, Floats]:
        """Return the counts that the labels are worth, successes and sizes (R, G) of each rate.

        A rate that rests on decisions alone is counted in all rows. A group without a row of the
        rate's denominator among its labels has a size of 0.
        """
        pairs = [
            self._counts_of_decisions(rate)
            if needs_no_label(rate)
            else self._effective_counts(rate)
            for rate in rates
        ]
        successes, sizes = np.array(pairs, float).transpose(1, 0, 2)
        return successes, sizes

    def effective_counts_of_mean(self, rates: Sequence[Rate]) -> tuple[Floats, Floats]:
        """Return the counts (R, G) of rates of distinct rows that are worth what their mean is.

        The errors of rates that are helped one by one go together. A score that says "rather 1"
        moves the true positive and the true negative rate in opposite directions: what it takes
        away of the error of either it does not take away of their mean's, and the two errors that
        are left are alike. So the slope is fitted to the mean, and the labels of each rate are
        worth so many times more as those of the mean are. The errors then count as independent, as
        those of labels alone are; it is the mean of the rates that is right, not either of them.

        Parameters
        ----------
        rates : of which no row is in the denominators of two.
        """
        parts = [self._labelled(rate) for rate in rates]
        # In rows of the rate that rests on fewest.
        least = np.minimum.reduce([part.whole for part in parts])
        factors = [least / part.whole for part in parts]
        influence = np.zeros(len(self.rows))
        expected = _Expected(np.zeros(len(self.score)), np.zeros(len(self.score)))
        for part, factor in zip(parts, factors, strict=True):
            influence += factor[self.group[self.rows]] * part.influence
            expected = expected.plus(part.expected, factor[self.group])
        events = np.minimum.reduce([part.events for part in parts])
        moved, left = self._explained(influence, expected, events)
        shares = _moved_together(np.array([part.share for part in parts]), moved / least)
        sizes = np.array([part.size for part in parts]) / left
        return shares * sizes, sizes

    def rows_of(self, rates: Sequence[Rate]) -> Floats:
        """Return how many rows (R, G) each rate rests on, with labels where it needs them."""
        cell = 2 * self.label + self.decision[self.rows]
        sizes = [
            self._sum_all(_cells(rate.denominator)[self.decision])
            if needs_no_label(rate)
            else self._sum(_cells(rate.denominator)[cell])
            for rate in rates
        ]
        return np.array(sizes)

    def _counts_of_decisions(self, rate: Rate) -> tuple[Floats, Floats]:
        """Return the counts of a rate that rests on decisions alone, in all rows."""
        top, bottom = (_cells(array)[self.decision] for array in (rate.numerator, rate.denominator))
        return self._sum_all(top), self._sum_all(bottom)

    def _effective_counts(self, rate: Rate) -> tuple[Floats, Floats]:
        """Return the counts that the labels and the scores are worth for a rate."""
        part = self._labelled(rate)
        moved, left = self._explained(part.influence, part.expected, part.events)
        size = part.size / left
        return np.clip(part.share + moved / part.whole, 0, 1) * size, size

    def _labelled(self, rate: Rate) -> _Labelled:
        """Return a rate of the labelled rows, and what scores lead one to expect of it."""
        cell = 2 * self.label + self.decision[self.rows]
        group, weight = self.group[self.rows], self._weights
        top, bottom = _cells(rate.numerator)[cell], _cells(rate.denominator)[cell]
        whole = np.maximum(self._sum(weight * bottom), _TINY)
        size = whole**2 / np.maximum(self._sum((weight * bottom) ** 2), _TINY)
        share = self._sum(weight * top) / whole
        events = np.minimum(share, 1 - share) * size
        size = np.where(self._sum(bottom) > 0, size * self._free, 0.0)
        influence = top - share[group] * bottom
        return _Labelled(share, size, whole, events, influence, self._expected(rate, share))

    def _expected(self, rate: Rate, share: Floats) -> _Expected:
        """Return what the scores lead one to expect of every row's influence on a rate."""
        top, bottom = _cells(rate.numerator), _cells(rate.denominator)
        if_zero, if_one = (
            top[self.decision + 2 * label] - share[self.group] * bottom[self.decision + 2 * label]
            for label in (0, 1)
        )
        return _Expected((1 - self.score) * if_zero + self.score * if_one, if_one - if_zero)

    def _variance(self, expected: _Expected, mean: Floats) -> Floats:
        """Return the variance (G,) over all rows of what is expected of them."""
        squares = (expected.influence - mean[self.group]) ** 2
        if self.spread is not None:
            squares = squares + self.spread * expected.by_score**2
        return self._sum_all(squares) / np.maximum(self._rows_of, 1)

    def _explained(
        self, influence: Floats, expected: _Expected, events: Floats
    ) -> tuple[Floats, Floats]:
        """Return how far the scores move each group's sum of influences, and what they leave.

        The slope of influences on what scores predict of them is fitted by least squares to the
        labelled rows of a group. It is reduced as far as it predicts rows that are left out of its
        fit worse than the others, and the more the fewer rows have the rarer outcome. The
        variance that it is divided by is at least that among all rows. Otherwise, where few rows
        have extreme scores and none of these has a label yet, a slope fitted to small differences
        among the others would be extrapolated to them, and be noise.

        Parameters
        ----------
        influence : (n,) of the labelled rows.
        expected : what the scores predict of the influence of all rows.
        events : (G,) labels of the rarer outcome.

        Returns
        -------
        (G,) what is added to the sums of influences, and the shares of their variance left.
        """
        group, weight, count = self.group[self.rows], self._weights, self._labels
        predicted = expected.influence[self.rows]
        mean = self._sum_all(expected.influence) / np.maximum(self._rows_of, 1)
        total, rows = np.maximum(self._sum(weight), _TINY), self._sum(weight**2)
        centre = self._sum(weight * predicted) / total
        away, weighted = weight * (predicted - centre[group]), weight * influence
        at_least_two = np.maximum(count, 2)
        jackknife = at_least_two / (
            at_least_two - 1
        )  # how much larger an error is of a row left out
        least = np.maximum(rows * self._variance(expected, mean) / jackknife, _TINY)
        squares, products = self._sum(away**2), self._sum(away * weighted)
        fitted = products / np.maximum(squares, least)
        squares_of_others = np.maximum(
            squares[group] - jackknife[group] * away**2, (least / jackknife)[group]
        )
        slope_of_others = (products[group] - jackknife[group] * away * weighted) / squares_of_others
        error_left_out = self._sum((jackknife[group] * (weighted - slope_of_others * away)) ** 2)
        error_without_scores = self._sum((jackknife[group] * weighted) ** 2)
        explained_left_out = 1 - error_left_out / np.maximum(error_without_scores, _TINY)
        explained_in_fit = 1 - self._sum((weighted - fitted[group] * away) ** 2) / np.maximum(
            self._sum(weighted**2), _TINY
        )
        kept = np.clip(explained_left_out / np.maximum(explained_in_fit, _TINY), 0, 1)
        slope = np.where(count >= FEWEST, fitted * kept, 0)
        unseen = UNSEEN * rows / np.maximum(count, 1)
        left = np.clip(
            (error_left_out + unseen) / np.maximum(error_without_scores + unseen, _TINY), _TINY, 1
        )
        left = np.where(count >= FEWEST, left, 1.0)
        trusted = events / (events + FEW_EVENTS)
        # Of a slope that is reduced to a share q, what it explains is reduced to 1 - (1 - q)^2.
        slope, left = slope * trusted, 1 - (1 - left) * trusted * (2 - trusted)
        labelled_share = count / np.maximum(self._rows_of, 1)
        return slope * (mean - centre) * total, left + (1 - left) * labelled_share

    @property
    def _weights(self) -> Floats:
        return np.ones(len(self.rows)) if self.weight is None else self.weight

    @property
    def _labels(self) -> Floats:
        """The labels of each group; where they stand for unequally many, Kish's number."""
        whole, squares = self._sum(self._weights), self._sum(self._weights**2)
        return whole**2 / np.maximum(squares, _TINY)

    @property
    def _free(self) -> Floats:
        """The share of each group's labels that is left less one for each further weight.

        Parts of a group that were labelled at rates of their own have their own mean each, and
        what is known of how labels scatter comes from the others: as degrees of freedom are lost.
        """
        if self.weight is None:
            return np.ones(self.groups)
        labels = self._sum(np.ones(len(self.rows)))
        pairs = np.unique(np.stack([self.group[self.rows], self.weight]), axis=1)
        weights = np.bincount(pairs[0].astype(np.int64), minlength=self.groups)
        return np.asarray((labels - np.maximum(weights - 1, 0)) / np.maximum(labels, 1))

    @property
    def _rows_of(self) -> Floats:
        """The rows of each group."""
        return self._sum_all(np.ones(len(self.group)))

    def _sum(self, values: Floats) -> Floats:
        if self.groups == 1:
            return np.asarray(values.sum(keepdims=True))
        return sums(values, self.group[self.rows], self.groups)

    def _sum_all(self, values: Floats) -> Floats:
        counted = values if self.copies is None else values * self.copies
        return sums(counted, self.group, self.groups)


class _Expected(NamedTuple):
    """What scores lead one to expect of the influence of all rows (N,), and its slope in them."""

    influence: Floats
    by_score: Floats

    def plus(self, other: _Expected, factor: Floats) -> _Expected:
        """Return the sum with so many times (N,) another."""
        return _Expected(
            self.influence + factor * other.influence, self.by_score + factor * other.by_score
        )


class _Labelled(NamedTuple):
    """A rate of the labelled rows of G groups.

    Attributes
    ----------
    share, size : (G,) the rates, and how many labels each rests on.
    whole : (G,) how many rows of the group these labels stand for.
    events : (G,) how many labels of the rarer outcome there are.
    influence : (n,) how far each labelled row moves its group's rate, times `whole`.
    expected : what the scores lead one to expect of every row's influence.
    """

    share: Floats
    size: Floats
    whole: Floats
    events: Floats
    influence: Floats
    expected: _Expected


def _moved_together(shares: Floats, by: Floats) -> Floats:
    """Return shares (R, G) whose sums are moved, each by its part of the way to 0 or to 1.

    What the scores move is the sum: by how much which of the shares is not known so well, and none
    can leave [0, 1].
    """
    room = np.where(by > 0, (1 - shares).sum(axis=0), shares.sum(axis=0))
    part = np.clip(by / np.maximum(room, _TINY), -1, 1)
    return np.asarray(np.where(part > 0, shares + part * (1 - shares), shares * (1 + part)))


def _cells(weights: Sequence[int]) -> Floats:
    """Return which of the cells TN, FP, FN, TP are counted."""
    return (np.array(weights) > 0).astype(float)


def needs_no_label(rate: Rate) -> bool:
    """Say whether a rate rests on decisions alone."""
    return all(array[:2] == array[2:] for array in (rate.numerator, rate.denominator))
